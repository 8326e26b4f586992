// A throw-away copy of the tree, in which a mutant lives. All of it, because a test that misses a file fails as if it had found
// something; the dependencies are linked.

import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type Mutant, mutate } from './mutant.ts';

export const root: string = join(import.meta.dirname, '../..');

/** Other trees, and what is made. */
const left = new Set(['.git', '.cache', 'node_modules', 'dist']);

export interface Copy {
  readonly folder: string;
  apply(mutant: Mutant): void;
  remove(): void;
}

function isNoDependency(path: string): boolean {
  return basename(path) !== 'node_modules';
}

export function copyTree(): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'semel-mutant-'));
  // Some tests start a process of another user, which must be able to read it.
  chmodSync(folder, 0o755);
  for (const path of readdirSync(root))
    if (!left.has(path))
      cpSync(join(root, path), join(folder, path), { recursive: true, filter: isNoDependency });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return {
    folder,
    apply(mutant) {
      const read = (file: string) => readFileSync(join(folder, file), 'utf8');
      for (const [file, text] of mutate(mutant, read)) writeFileSync(join(folder, file), text);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
