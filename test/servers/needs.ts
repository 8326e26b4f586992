// What the chosen test files use, by what they and the files that they name say: one file is started without building the
// command or starting servers that it never asks for. A hunt for mutants starts hundreds of single files.

import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { TestProject } from 'vitest/node';

const root = join(import.meta.dirname, '../..');

const signs = {
  /** The built command; see test/cli/build.ts. */
  command: /SEMEL_BUILT_COMMAND/,
  /** The shared servers; see shared.ts. */
  postgres: /'postgresUrl'/,
  redis: /'redisUrl'/,
} as const;

export type Need = keyof typeof signs;

const told = new WeakMap<TestProject['vitest'], Promise<ReadonlySet<Need>>>();

/** Everything, if all files are to be run. */
export function findNeeds(project: TestProject): Promise<ReadonlySet<Need>> {
  const { vitest } = project;
  const found =
    told.get(vitest) ?? chosen(vitest).then((files) => (files === undefined ? all() : needsOf(files)));
  told.set(vitest, found);
  return found;
}

function all(): ReadonlySet<Need> {
  return new Set(Object.keys(signs) as Need[]);
}

async function chosen(vitest: TestProject['vitest']): Promise<readonly string[] | undefined> {
  // Vitest calls it internal. Without it, everything is started as before.
  const { filenamePattern } = vitest as unknown as { filenamePattern?: string[] };
  // Watching, other files may follow.
  if (filenamePattern === undefined || vitest.config.watch) return undefined;
  return (await vitest.globTestSpecifications(filenamePattern)).map(({ moduleId }) => moduleId);
}

export function needsOf(files: readonly string[]): ReadonlySet<Need> {
  const needs = new Set<Need>();
  for (const file of reach(files)) {
    const text = readFileSync(file, 'utf8');
    for (const need of all()) if (signs[need].test(text)) needs.add(need);
  }
  return needs;
}

/** The files and all that they import, start or name, as far as it is not production code. */
function reach(files: readonly string[]): ReadonlySet<string> {
  const reached = new Set(files.filter((file) => !isProduction(file) || file.endsWith('.test.ts')));
  // A set that grows is visited to its end.
  for (const file of reached)
    for (const named of filesNamedIn(file)) if (!isProduction(named) && named !== self) reached.add(named);
  return reached;
}

const self = import.meta.filename;

function isProduction(file: string): boolean {
  return !/^(?:test|examples|scripts|bench)\//.test(relative(root, file));
}

function filesNamedIn(file: string): readonly string[] {
  const folder = dirname(file);
  const text = readFileSync(file, 'utf8');
  const names = [...text.matchAll(/['"`]([^'"`\s]+\.ts)['"`]/g)].map(([, name]) => name as string);
  const known = names.flatMap((name) =>
    [join(folder, name), join(root, name), ...beside(folder, name)].filter(isFile),
  );
  // A name that is put together can be any file near it.
  const isUnknown = names.some((name) => name.includes('${')) || /\.(?:map|join)\(.*\.ts/.test(text);
  return isUnknown ? [...known, ...globSync(join(folder, '**/*.ts'))] : known;
}

/** `join(import.meta.dirname, '../crash', 'victim.ts')`: the last part alone. */
function beside(folder: string, name: string): readonly string[] {
  return name.includes('/') ? [] : globSync(join(folder, '*', name));
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
