// The page that lists what each hunt found, one row per mutant. A row holds as long as the mutant, the source that it changes
// and the test that found it stay as they were, so a hunt can be stopped and continued, and repeats only what has changed.
// Old rows fail no test, or nobody could plant a mutant; `npm run verify` prints the sentence.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './copy.ts';
import type { Finding } from './hunt.ts';
import { harmless, type Mutant, planted } from './mutant.ts';

export const evidenceFile = 'docs/internals/evidence/mutants.md';

export interface Row {
  readonly name: string;
  readonly finder: string;
  readonly seeds: string;
  readonly what: string;
  readonly time: string;
  /** Where it was hunted. */
  readonly commit: string;
  /** A digest of all that the finding depends on. */
  readonly state: string;
}

const columns = ['name', 'finder', 'seeds', 'what', 'time', 'commit', 'state'] as const;
const none = '–';

export const head: string =
  '| mutant | found by | seeds to find | invariant or test | time | commit | state |\n|---|---|--:|---|--:|---|---|';

export function toRow({ mutant, by, seeds, what, seconds }: Finding, commit: string): Row {
  return {
    name: mutant.name,
    finder: by === undefined ? none : by === 'sim' ? 'simulator' : 'suites',
    seeds: seeds?.toLocaleString('en') ?? '',
    what: what.replaceAll('|', '/'),
    time: `${Math.round(seconds)} s`,
    commit,
    state: digestState(mutant),
  };
}

export function printRow(row: Row): string {
  return `| ${columns.map((column) => row[column]).join(' | ')} |`;
}

export function readRows(page: string): readonly Row[] {
  return page.split('\n').flatMap((line) => {
    const cells = line.split('|').map((cell) => cell.trim());
    // Nothing before the first bar and behind the last one.
    if (cells.length !== columns.length + 2 || !/^[0-9a-f]{12}$/.test(cells[columns.length] ?? '')) return [];
    return [Object.fromEntries(columns.map((column, at) => [column, cells[at + 1]])) as unknown as Row];
  });
}

/** The finding holds while this stays the same. Who finds it is part of it, other words about why are not. */
export function digestState({ foundBy, changes }: Mutant, folder: string = root): string {
  const finder = foundBy === 'sim' ? listSimulator(folder) : foundBy.endsWith('.test.ts') ? [foundBy] : [];
  const files = [...new Set([...changes.map(({ file }) => file), ...finder])].sort();
  const hash = createHash('sha256').update(JSON.stringify([foundBy, changes]));
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(folder, file)));
  return hash.digest('hex').slice(0, 12);
}

function listSimulator(folder: string): string[] {
  const names = readdirSync(join(folder, 'test/sim')).filter((name) => name.endsWith('.ts'));
  return names.filter((name) => !name.endsWith('.test.ts')).map((name) => `test/sim/${name}`);
}

/** Rows that still hold. A planted bug that was missed, or a harmless change that was reported, is hunted again. */
export function selectCurrent(rows: readonly Row[]): readonly Row[] {
  const quiet = new Map(harmless().map((mutant) => [mutant.name, mutant]));
  const bugs = new Map(planted().map((mutant) => [mutant.name, mutant]));
  return rows.filter(({ name, finder, state }) => {
    const known = finder === none ? quiet.get(name) : bugs.get(name);
    return known !== undefined && digestState(known) === state;
  });
}

export function readEvidence(): readonly Row[] {
  return readRows(readFileSync(join(root, evidenceFile), 'utf8'));
}

/** One sentence, for people. */
export function describeEvidence(): string {
  const existing = planted().length + harmless().length;
  const missing = existing - selectCurrent(readEvidence()).length;
  if (missing === 0) return `${evidenceFile}: all ${existing} mutants were hunted as they are now.`;
  return `${evidenceFile} is OLD: ${missing} of ${existing} mutants were not hunted as they are now. Run: npm run mutants -- --evidence`;
}

/** Written after every finding: a hunt takes long, and can be cut off. */
export function writeEvidence(
  rows: readonly Row[],
  hunt: { readonly how: string; readonly sentence: string },
): void {
  const sorted = rows.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const isHarmless = new Set(harmless().map(({ name }) => name));
  const count = (finder: string) =>
    sorted.filter((row) => row.finder === finder && !isHarmless.has(row.name)).length;
  const all = planted().length;
  const quiet = sorted.filter(({ name, finder }) => isHarmless.has(name) && finder === none).length;
  writeFileSync(
    join(root, evidenceFile),
    `# Mutants: planted bugs, and who finds them

Written by \`scripts/mutants.ts\`; not edited. Each bug is a change of production source in test/mutants/planted, with the
trace that it re-creates, and who must find it: the simulator or the test file that it names. A row names the commit of its
hunt and a digest of the mutant, the changed source and its finder: \`npm run mutants -- --evidence\` hunts those whose digest
no longer fits, and \`npm run verify\` counts them.

${hunt.how}

${count('simulator') + count('suites')} of ${all} mutants found: ${count('simulator')} by the simulator, ${count('suites')} by the suites; ${count(none)} missed, ${all - count('simulator') - count('suites') - count(none)} not hunted as they are now; ${quiet} of ${isHarmless.size} harmless changes not reported. ${hunt.sentence}

${head}
${sorted.map(printRow).join('\n')}
`,
  );
}
