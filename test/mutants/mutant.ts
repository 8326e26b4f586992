// A planted bug: one exact text of a source file and what stands there instead. A file per mutant, `planted/*.mutant`:
//
//   why: the trace or incident that it re-creates
//   found by: sim | test/library/identity.test.ts
//
//   --- src/rules/settle.ts
//   the text as it is, which must occur once
//   +++
//   the text as a mistake would have it
//
// `sim`: the simulator must find it. A test file: that one must. `contract`: nobody knows yet which test does; a hunt asks the
// suites, and writes the file that found it here.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** `sim`, `contract`, or the path of a test file. */
export type Finder = string;

export interface Change {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly name: string;
  readonly why: string;
  readonly foundBy: Finder;
  readonly changes: readonly Change[];
  /** Where it is written down, for whoever has to mend it. */
  readonly path: string;
}

const here = import.meta.dirname;

/** Bugs: every one must be found. */
export const planted = (): readonly Mutant[] => mutantsIn(join(here, 'planted'));

/** No bugs: none may be reported. */
export const harmless = (): readonly Mutant[] => mutantsIn(join(here, 'harmless'));

/** Makes the simulator report nothing, whatever it sees. */
export const emptyChecker = (): Mutant => readMutant(join(here, 'empty-checker.mutant'));

function mutantsIn(folder: string): readonly Mutant[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.mutant'))
    .sort()
    .map((file) => readMutant(join(folder, file)));
}

function readMutant(path: string): Mutant {
  const [head = '', ...parts] = readFileSync(path, 'utf8').split(/^--- (?=\S+$)/m);
  const field = (name: string) => new RegExp(`^${name}: (.+)$`, 'm').exec(head)?.[1]?.trim();
  const why = field('why');
  const foundBy = field('found by');
  const changes = parts.map(changeOf);
  const isWhole =
    why !== undefined &&
    /^(sim|contract|\S+\.test\.ts)$/.test(foundBy ?? '') &&
    changes.length > 0 &&
    changes.every(({ file, find }) => file !== '' && find.trim() !== '');
  if (!isWhole) throw new Error(`${path} is no mutant: see the head of test/mutants/mutant.ts.`);
  return { name: basename(path, '.mutant'), why, foundBy: foundBy as Finder, changes, path };
}

/** The next hunt asks this test file. */
export function remember({ path }: Mutant, file: string): void {
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/^found by: .*$/m, `found by: ${file}`));
}

function changeOf(part: string): Change {
  const end = part.indexOf('\n');
  const [find = '', replace = ''] = part.slice(end + 1).split(/^\+\+\+$\n?/m);
  const withoutLastBreak = (text: string) => text.replace(/\n+$/, '');
  return { file: part.slice(0, end), find: withoutLastBreak(find), replace: withoutLastBreak(replace) };
}

/** The files as the mutant has them. A text that is not there exactly once is an error: the mutant must be mended. */
export function mutate(mutant: Mutant, read: (file: string) => string): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const { file, find, replace } of mutant.changes) {
    const text = files.get(file) ?? read(file);
    const times = text.split(find).length - 1;
    if (times !== 1)
      throw new Error(
        `${mutant.name}: its text is ${times} times in ${file}, not once. Mend ${mutant.path}:\n${find}`,
      );
    files.set(
      file,
      text.replace(find, () => replace),
    );
  }
  return files;
}
