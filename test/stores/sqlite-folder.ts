// A folder of its own for each test that needs ledgers, removed with everything in it.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];

export function newFolder(parent: string = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'semel-sqlite-'));
  folders.push(folder);
  return folder;
}

export function newPath(): string {
  return join(newFolder(), 'ledger.db');
}

/** For tests that open many ledgers and are not about disks. */
export function newPathInMemory(): string {
  return join(newFolder(existsSync('/dev/shm') ? '/dev/shm' : tmpdir()), 'ledger.db');
}

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
