// A folder for one test or one run, gone with everything in it when it is disposed of.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Scratch extends Disposable {
  readonly folder: string;
  path(name: string): string;
}

export function newScratch(name: string, parent: string = tmpdir()): Scratch {
  const folder = mkdtempSync(join(parent, `semel-${name}-`));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  return {
    folder,
    path: (file) => join(folder, file),
    [Symbol.dispose]() {
      process.off('exit', remove);
      remove();
    },
  };
}
