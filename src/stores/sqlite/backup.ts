// Backs up a ledger into one file, and restores it. Uses SQLite's own backup, which is consistent while programs write.
// Never overwrites or deletes a file.

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
import { backupDatabase, type SqliteLike, single } from './client.ts';
import { createPrivate, idPath, readId } from './file/identity.ts';
import { createLists, measureLedger } from './list.ts';
import { type Machine, thisMachine } from './machine.ts';
import { createMetaTable } from './meta.ts';
import { applicationId, readVersion, refuseForeignParts, schemaVersion } from './schema.ts';
import { createScopes } from './scopes.ts';
import { findDamage } from './verify.ts';

export interface Backup {
  readonly path: string;
  readonly records: number;
  /** When it was made, in milliseconds; undefined if `backup` did not make this file. */
  readonly at: number | undefined;
}

export async function backupLedger(
  from: string,
  to: string,
  at: number,
  machine: Machine = thisMachine,
): Promise<Backup> {
  if (existsSync(to)) throw existsError(to);
  const draft = await makeDraft(from, to, machine);
  try {
    const count = stampBackup(await machine.connect(draft), at);
    publishDraft(draft, to);
    return { path: to, records: count, at };
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Folds the log into the file and writes down when the backup was made. */
function stampBackup(database: SqliteLike, at: number): number {
  try {
    database.exec('PRAGMA journal_mode = DELETE');
    createMetaTable(database).setBackup(at);
    return measureLedger(database).records;
  } finally {
    database.close();
  }
}

export interface Restoring extends Backup {
  /** What is wrong with the backup; empty if nothing is. */
  readonly damage: readonly string[];
  /** Writes to the current ledger since the backup; undefined if unknown. */
  readonly writesSince: number | undefined;
  /** Replaces the ledger. Returns the path to which the previous one was moved. */
  put(): string | undefined;
  drop(): void;
}

/**
 * Leaves the ledger's id file as it is. If it counts more writes than the backup has, the restored ledger is refused
 * until a person accepts the loss (`acceptLoss`).
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
  const draft = await makeDraft(backup, path, machine);
  const drop = () => rmSync(draft, { force: true });
  try {
    const database = await machine.connect(draft);
    try {
      const facts = inspectBackup(database, path, backup);
      // Ledgers use WAL. Closing the only connection leaves no log behind.
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

function inspectBackup(database: SqliteLike, path: string, backup: string): Omit<Restoring, 'put' | 'drop'> {
  readVersion(database, backup, schemaVersion);
  if (single(database, 'PRAGMA application_id') !== applicationId) throw notLedgerError(backup);
  // Before anything is read from its tables: a view could have endless rows. And a ledger that every program refuses must not
  // replace one that works.
  refuseForeignParts(database, backup);
  const meta = createMetaTable(database);
  const found = meta.read();
  if (found === undefined) throw notLedgerError(backup);
  const scopes = createScopes(database);
  const remembered = readId(path);
  return {
    path,
    records: measureLedger(database).records,
    at: meta.backupAt(),
    damage: findDamage({ database, scopes, lists: createLists(database, scopes) }),
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
    // Move the ledger first: semel refuses a log without its ledger, and running processes notice that it is gone.
    for (const side of ['', '-wal', '-shm', '-journal'])
      if (existsSync(path + side)) renameSync(path + side, kept + side);
  }
  renameSync(draft, path);
  sync(dirname(path));
  return kept;
}

/** In the target's folder, so that a rename can move it there. */
async function makeDraft(from: string, to: string, { looker }: Machine): Promise<string> {
  const draft = `${to}.${randomBytes(8).toString('hex')}`;
  createPrivate(draft);
  const source = (await looker())(from);
  try {
    await backupDatabase(source, draft);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    source.close();
  }
  return draft;
}

function publishDraft(draft: string, to: string): void {
  sync(draft);
  try {
    linkSync(draft, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw existsError(to);
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

function existsError(to: string): SemelError {
  return new SemelError('INVALID_ARGS', `${to} already exists. Nothing was changed.`, {
    next: 'Name a new file.',
  });
}

function notLedgerError(backup: string): SemelError {
  return new SemelError('INVALID_ARGS', `${backup} is not a semel ledger.`, {
    next: 'Name a backup that `semel store backup` made.',
  });
}
