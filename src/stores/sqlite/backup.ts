// A copy of the whole ledger in one file, and a ledger from such a copy. Through SQLite's own backup, which sees the ledger
// and its log as one, also while programs write. Nothing is overwritten or deleted.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { SemelError } from '../../core/errors.ts';
import { makeFolder } from '../../store/files.ts';
import { copyDatabase, type SqliteLike, single } from './client.ts';
import { createPrivate, idPath, rememberedId } from './file/identity.ts';
import { lists, sizesIn } from './list.ts';
import { type Machine, thisMachine } from './machine.ts';
import { metaTable } from './meta.ts';
import { applicationId, schemaVersion, versionOf } from './schema.ts';
import { scopes } from './scopes.ts';
import { damageIn } from './verify.ts';

export interface Backup {
  readonly path: string;
  readonly records: number;
  /** When it was made, in milliseconds; undefined for a file that `backup` did not make. */
  readonly at: number | undefined;
}

export async function backupLedger(
  from: string,
  to: string,
  at: number,
  machine: Machine = thisMachine,
): Promise<Backup> {
  if (existsSync(to)) throw exists(to);
  const draft = await drafted(from, to, machine);
  try {
    const count = stamped(await machine.connect(draft), at);
    moveNew(draft, to);
    return { path: to, records: count, at };
  } finally {
    rmSync(draft, { force: true });
  }
}

/** One file, without a log, that knows when it was made. */
function stamped(database: SqliteLike, at: number): number {
  try {
    database.exec('PRAGMA journal_mode = DELETE');
    metaTable(database).setBackup(at);
    return sizesIn(database).records;
  } finally {
    database.close();
  }
}

export interface Restoring extends Backup {
  /** What is wrong with it; empty: nothing. */
  readonly damage: readonly string[];
  /** How many writes the ledger in its place has had since; undefined where nobody knows. */
  readonly writesSince: number | undefined;
  /** Puts it in place of the ledger. What was there is kept beside it, under the name that is answered. */
  put(): string | undefined;
  drop(): void;
}

/**
 * The id of the ledger stays: what it remembers and the backup does not know keeps the restored ledger closed, until
 * somebody accepts that (`acceptLoss`).
 */
export async function restoreLedger(
  wanted: string,
  backup: string,
  machine: Machine = thisMachine,
): Promise<Restoring> {
  const path = existsSync(wanted) ? realpathSync(wanted) : wanted;
  if (!existsSync(backup))
    throw new SemelError('INVALID_ARGS', `There is no file ${backup}.`, {
      next: 'Name a backup that `semel store backup` made.',
    });
  if (!statSync(backup).isFile())
    throw new SemelError('INVALID_ARGS', `${backup} is not a regular file.`, {
      next: 'Name a backup that `semel store backup` made.',
    });
  makeFolder(dirname(path));
  const draft = await drafted(backup, path, machine);
  const drop = () => rmSync(draft, { force: true });
  try {
    const database = await machine.connect(draft);
    try {
      const facts = factsOf(database, path, backup);
      // As every ledger is written. Closing the only connection leaves no log behind.
      database.exec('PRAGMA journal_mode = WAL');
      return { ...facts, put: () => put(draft, path), drop };
    } finally {
      database.close();
    }
  } catch (error) {
    drop();
    throw error;
  }
}

function factsOf(database: SqliteLike, path: string, backup: string): Omit<Restoring, 'put' | 'drop'> {
  versionOf(database, backup, schemaVersion);
  if (single(database, 'PRAGMA application_id') !== applicationId) throw notLedger(backup);
  const meta = metaTable(database);
  const found = meta.read();
  if (found === undefined) throw notLedger(backup);
  const known = scopes(database);
  const remembered = rememberedId(path);
  return {
    path,
    records: sizesIn(database).records,
    at: meta.backupAt(),
    damage: damageIn({ database, scopes: known, lists: lists(database, known) }),
    writesSince:
      remembered?.incarnation === found.incarnation
        ? Math.max(0, remembered.writes - found.writes)
        : undefined,
  };
}

function put(draft: string, path: string): string | undefined {
  const kept = existsSync(path)
    ? `${path}.replaced-${new Date().toISOString().replace(/[:.]/g, '-')}`
    : undefined;
  if (kept !== undefined) {
    if (existsSync(idPath(path))) copyFileSync(idPath(path), idPath(kept));
    // The ledger first: without it its log is refused, and a process that uses it notices.
    for (const side of ['', '-wal', '-shm', '-journal'])
      if (existsSync(path + side)) renameSync(path + side, kept + side);
  }
  renameSync(draft, path);
  sync(dirname(path));
  return kept;
}

/** Beside the place where it goes, so that a rename brings it there. */
async function drafted(from: string, to: string, { looker }: Machine): Promise<string> {
  const draft = `${to}.${randomBytes(8).toString('hex')}`;
  createPrivate(draft);
  const source = (await looker())(from);
  try {
    await copyDatabase(source, draft);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    source.close();
  }
  return draft;
}

function moveNew(draft: string, to: string): void {
  sync(draft);
  try {
    linkSync(draft, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw exists(to);
    renameSync(draft, to);
  }
  sync(dirname(to));
}

function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function exists(to: string): SemelError {
  return new SemelError('INVALID_ARGS', `${to} exists already. Nothing was changed.`, {
    next: 'Name a new file.',
  });
}

function notLedger(backup: string): SemelError {
  return new SemelError('INVALID_ARGS', `${backup} is not a ledger of semel.`, {
    next: 'Name a backup that `semel store backup` made.',
  });
}
