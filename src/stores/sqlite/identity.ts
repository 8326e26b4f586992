// Is this still the ledger that was here? A file beside it, `<ledger>.id`, remembers which one it was, so that a
// ledger that was lost, emptied or swapped is not taken for a new one: a new one would do everything once more.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { storeError } from './failure.ts';

const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;

export function idPath(path: string): string {
  return `${path}.id`;
}

/** Undefined where there was no ledger yet, or where a person removed the id to accept what is there. */
export function rememberedId(path: string): string | undefined {
  try {
    return readFileSync(idPath(path), 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Before SQLite sees the file: it takes an empty file for a new database, and would delete its log. */
export function refuseLost(path: string): void {
  // The signs first: whoever makes a ledger writes it before them, so a file that is empty now was not so then.
  const remembered = rememberedId(path);
  const hasLog = (sizeOf(`${path}-wal`) ?? 0) > 0;
  const size = sizeOf(path);
  if ((size !== undefined && size > 0) || (remembered === undefined && !hasLog)) return;
  const sign = remembered === undefined ? `${path}-wal` : idPath(path);
  throw storeError(
    'STORE_UNSAFE',
    `The ledger ${path} is ${size === undefined ? 'missing' : 'empty'}, but ${sign} says that there was one.`,
    {
      next: `Put the ledger back from a backup. To start with an empty one, which may repeat everything that was done, delete ${sign}.`,
      evidence: { path, remembered },
    },
  );
}

/** The file is there before SQLite opens it, so that it and its side files are for this user only. */
export function createPrivate(path: string): void {
  if (sizeOf(path) !== undefined) return;
  // Not through a link that somebody laid there meanwhile.
  const file = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  try {
    fchmodSync(file, 0o600);
  } finally {
    closeSync(file);
  }
}

export function confirmId(path: string, incarnation: string): void {
  const remembered = rememberedId(path);
  if (remembered === incarnation) return;
  if (remembered === undefined) {
    writeId(path, incarnation);
    return;
  }
  throw storeError('STORE_UNSAFE', `${path} is another ledger than the one that was here.`, {
    next: `Put the right one back. To go on with this one, which does not know what was done meanwhile, delete ${idPath(path)}.`,
    evidence: { path, remembered, found: incarnation },
  });
}

/** By rename, so that nobody reads half of it; under a name that nobody can have laid a link at. */
function writeId(path: string, incarnation: string): void {
  const draft = `${idPath(path)}.${randomBytes(8).toString('hex')}`;
  const file = openSync(draft, 'wx', 0o600);
  try {
    try {
      writeFileSync(file, `${incarnation}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(draft, idPath(path));
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/**
 * Tells whether the files under these names are still the ones that are open: after `rm` or `mv`, or once somebody
 * took himself for the last one and removed the log, claims would go into a file that no other process sees. While
 * they are open, no other file gets their numbers.
 *
 * As long as nothing came or went in the folder, it need not look at the files. It had better not: a log whose times
 * were looked at gets new ones with every write, and every commit would have to write them to the disk too.
 */
export function watch(path: string): () => boolean {
  const folder = dirname(path);
  const log = `${path}-wal`;
  const ledgerNode = nodeOf(path);
  const logNode = nodeOf(log);
  let folderNode: number | undefined;
  let changedAt: number | undefined;
  return () => {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found?.ino === folderNode && found?.mtimeMs === changedAt) return true;
    if (nodeOf(path) !== ledgerNode || nodeOf(log) !== logNode) return false;
    folderNode = found?.ino;
    // While the moment of a change is not over, another one may get the same time.
    changedAt = Math.abs(Date.now() - (found?.mtimeMs ?? 0)) > 100 ? found?.mtimeMs : undefined;
    return true;
  };
}

function nodeOf(path: string): string | number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
