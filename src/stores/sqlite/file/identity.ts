// The id file, `<ledger>.id`: which ledger belongs here, and how many writes it has had. A ledger that was lost, swapped or
// put back as an older copy would repeat effects.

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
  /** A lower bound: counted after each commit and not flushed, so it may lag behind but never runs ahead. */
  readonly writes: number;
}

const digits = 16;

/** Undefined if there is no id file. */
export function readId(path: string): Remembered | undefined {
  try {
    const [incarnation = '', writes] = readFileSync(idPath(path), 'utf8').split('\n');
    return { incarnation: incarnation.trim(), writes: Number(writes) || 0 };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Call before SQLite opens the file: it takes an empty file for a new database, and would delete its log. */
export function refuseLost(path: string): void {
  // Check id and log first: they are created after the ledger's file, so if they exist the file must not be empty.
  const remembered = readId(path);
  const hasLog = (fileSize(`${path}-wal`) ?? 0) > 0;
  const size = fileSize(path);
  if ((size !== undefined && size > 0) || (remembered === undefined && !hasLog)) return;
  const sign = remembered === undefined ? `${path}-wal` : idPath(path);
  throw storeError(
    'STORE_UNSAFE',
    `The ledger ${path} is ${size === undefined ? 'missing' : 'empty'}, but ${sign} shows that there was one.`,
    {
      next: `Restore the ledger from a backup. To start with an empty one, which may repeat everything done so far, delete ${sign}.`,
      evidence: { path, remembered: remembered?.incarnation },
    },
  );
}

/** Creates the file before SQLite does, so that only this user can access it and its side files. */
export function createPrivate(path: string): void {
  if (fileSize(path) !== undefined) return;
  // O_NOFOLLOW: somebody may have put a link there meanwhile.
  const file = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  try {
    fchmodSync(file, 0o600);
  } finally {
    closeSync(file);
  }
}

/**
 * Atomic, so that nobody reads half of it; the draft's random name cannot be a link that somebody prepared. With `new`, an
 * id that another process has written meanwhile stays.
 */
export function writeId(path: string, { incarnation, writes }: Remembered, how: 'new' | 'replace'): void {
  const draft = `${idPath(path)}.${randomBytes(8).toString('hex')}`;
  const file = openSync(draft, 'wx', 0o600);
  try {
    try {
      writeFileSync(file, `${incarnation}\n${padCount(writes)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (how === 'replace' || !linkIfNew(draft, idPath(path))) renameSync(draft, idPath(path));
    syncFolder(path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** False if the file system has no hard links. */
function linkIfNew(draft: string, name: string): boolean {
  try {
    linkSync(draft, name);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST';
  }
}

/** Otherwise a power cut after the first claim could undo the rename, and a ledger without its id is refused. */
function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

export interface WriteRecord {
  /** Call after a commit is on disk. Not flushed: that would cost a disk write, and a killed process loses nothing. */
  remember(writes: number): void;
  close(): void;
}

export function openWriteRecord(path: string): WriteRecord {
  let file: number | undefined = openSync(idPath(path), 'r+');
  const offset = readFileSync(file, 'utf8').indexOf('\n') + 1;
  return {
    remember(writes) {
      try {
        if (file !== undefined) writeSync(file, padCount(writes), offset);
      } catch {
        // The commit is valid. Only a later loss could go unnoticed.
      }
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

function padCount(writes: number): string {
  return String(writes).padStart(digits, '0');
}

export function fileSize(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
