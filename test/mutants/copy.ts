// A throw-away copy of the tree, in which a mutant lives. Only what the simulator and the suites need is copied; the
// dependencies are linked.

import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Mutant, mutate } from './mutant.ts';

export const root: string = join(import.meta.dirname, '../..');

const needed = [
  'src',
  'scripts',
  'test',
  'docs',
  'examples',
  'package.json',
  'semel.policy.schema.json',
  'tsconfig.json',
  'vitest.config.ts',
];

export interface Copy {
  readonly folder: string;
  apply(mutant: Mutant): void;
  remove(): void;
}

export function copyTree(): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'semel-mutant-'));
  // Some tests start a process of another user, which must be able to read it.
  chmodSync(folder, 0o755);
  for (const path of needed)
    if (existsSync(join(root, path))) cpSync(join(root, path), join(folder, path), { recursive: true });
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
