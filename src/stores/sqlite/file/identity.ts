// Is this still the ledger that was here, and all of it? A file beside it, `<ledger>.id`, remembers which one it was and
// how many writes it has had: a ledger that was lost, swapped, or put back as an older copy would do things once more.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { storeError } from '../failure.ts';

const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;

export function idPath(path: string): string {
  return `${path}.id`;
}

export interface Remembered {
  readonly incarnation: string;
  /** Writes that were on the disk before this was written. Not flushed, so it may lag behind; it never runs ahead. */
  readonly writes: number;
}

const digits = 16;

/** Undefined where no ledger was opened yet. */
export function rememberedId(path: string): Remembered | undefined {
  try {
    const [incarnation = '', writes] = readFileSync(idPath(path), 'utf8').split('\n');
    return { incarnation: incarnation.trim(), writes: Number(writes) || 0 };
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
      evidence: { path, remembered: remembered?.incarnation },
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

/**
 * Whole or not at all, so that nobody reads half of it; drafted under a name that nobody can have laid a link at. A new
 * one leaves alone what another process, which makes the same ledger, has written meanwhile.
 */
export function writeId(path: string, { incarnation, writes }: Remembered, how: 'new' | 'replace'): void {
  const draft = `${idPath(path)}.${randomBytes(8).toString('hex')}`;
  const file = openSync(draft, 'wx', 0o600);
  try {
    try {
      writeFileSync(file, `${incarnation}\n${padded(writes)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (how === 'replace' || !isLinked(draft, idPath(path))) renameSync(draft, idPath(path));
    syncFolder(path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** False where the file system has no links. */
function isLinked(draft: string, name: string): boolean {
  try {
    linkSync(draft, name);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST';
  }
}

/** Without it a power cut could take the name back after the first claim: a ledger without its id is refused. */
function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

export interface Tip {
  /** After a commit is on the disk. Not flushed: a process that is killed loses nothing, and a flush would cost a write. */
  remember(writes: number): void;
  close(): void;
}

export function openTip(path: string): Tip {
  let file: number | undefined = openSync(idPath(path), 'r+');
  const offset = readFileSync(file, 'utf8').indexOf('\n') + 1;
  return {
    remember(writes) {
      try {
        if (file !== undefined) writeSync(file, padded(writes), offset);
      } catch {
        // What was committed stays so; only less would be noticed if it were lost.
      }
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

function padded(writes: number): string {
  return String(writes).padStart(digits, '0');
}

export function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
