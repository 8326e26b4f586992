// Opens a ledger file durably, or refuses it and says why. Never deletes anything.

import { resolve } from 'node:path';
import { isSemelError } from '../../../core/errors.ts';
import { isInTransaction, query, type SqliteLike, single } from '../client.ts';
import { InTransaction, storeError } from '../failure.ts';
import type { Machine } from '../machine.ts';
import { createMetaTable } from '../meta.ts';
import { type Description, isCurrent, migrate, refuseForeignParts } from '../schema.ts';
import { refuseDamaged } from '../verify.ts';
import { refuseIncomplete, refuseTruncated } from './complete.ts';
import {
  createPrivate,
  fileSize,
  openWriteRecord,
  readId,
  refuseLost,
  type WriteRecord,
  writeId,
} from './identity.ts';
import { createOwnWritesReader, type OwnWrites } from './own-file.ts';
import { preparePlace } from './place.ts';
import { makePrivate } from './privacy.ts';
import { watch } from './watch.ts';

interface OpenOptions {
  readonly path: string;
  /** The user's own handle, which we never close. */
  readonly database: SqliteLike | undefined;
  readonly shared: boolean;
  /** A person accepted that the last writes may be missing. */
  readonly isLossAccepted: boolean;
  readonly machine: Machine;
  /** For a new ledger. */
  readonly describe: () => Description;
  /** Retries while the database is locked. */
  readonly whenUnlocked: <T>(run: () => T) => Promise<T>;
}

export interface Connection {
  readonly database: SqliteLike;
  readonly path: string;
  readonly isLocal: boolean;
  readonly forgets: string | undefined;
  /** A sentence if the place is risky. */
  readonly warning: string | undefined;
  /** Whether the paths still lead to the open files. Cheaper if the current write count is passed. */
  readonly isInPlace: (writes?: number) => boolean;
  readonly tip: WriteRecord;
  readonly isOurs: boolean;
}

export async function openLedger(options: OpenOptions): Promise<Connection> {
  const { machine, whenUnlocked, shared, database: handle } = options;
  // Nothing would be durable inside a transaction, and the file may not show its writes yet.
  if (handle !== undefined) await whenUnlocked(() => refuseTransaction(handle));
  const wanted = resolve(
    handle === undefined ? options.path : await whenUnlocked(() => readFileName(handle)),
  );
  const { path, isLocal, forgets, behindLink } = preparePlace(wanted, machine, shared);
  refuseLost(path);
  if (handle === undefined) createPrivate(path);
  const ownWrites = await createOwnWritesReader(path, handle);
  const database = await openDatabase(path, ownWrites, options);
  const warnings = [makePrivate(path, machine, shared), behindLink].filter((each) => each !== undefined);
  return {
    database,
    path,
    isLocal,
    forgets,
    warning: warnings.length === 0 ? undefined : warnings.join(' '),
    isInPlace: watch({ wanted, path, ownWrites }),
    tip: openWriteRecord(path),
    isOurs: handle === undefined,
  };
}

async function openDatabase(path: string, ownWrites: OwnWrites, options: OpenOptions): Promise<SqliteLike> {
  const { machine, describe, whenUnlocked, database: handle, isLossAccepted } = options;
  const refuseLoss = (database: SqliteLike) => {
    refuseTruncated(database, path);
    if (!isLossAccepted) refuseIncomplete(database, { path, ownWrites });
  };
  // The user's handle may belong to another SQLite library; node:sqlite must not open the file as well.
  if (handle === undefined) checkReadOnly(await machine.looker(), path, refuseLoss);
  const database = handle ?? (await machine.connect(path));
  try {
    database.exec('PRAGMA busy_timeout = 0');
    await whenUnlocked(() => refuseOldSqlite(database));
    await whenUnlocked(() => refuseTruncated(database, path));
    if (!(await whenUnlocked(() => isCurrent(database))))
      await whenUnlocked(() => migrate(database, path, describe()));
    await whenUnlocked(() => refuseForeignParts(database, path));
    await whenUnlocked(() => refuseLoss(database));
    await whenUnlocked(() => refuseDamaged(database));
    await whenUnlocked(() => makeDurable(database, path));
    await whenUnlocked(() => confirmId(database, path, isLossAccepted ? describe().incarnation : undefined));
    return database;
  } catch (error) {
    if (handle === undefined) database.close();
    throw error;
  }
}

type Look = Awaited<ReturnType<Machine['looker']>>;

/**
 * Checks a read-only connection first: closing a writable one would fold the readable part of a damaged log into the
 * ledger and delete the rest. If read-only fails, opening the ledger tells what is wrong, or repairs it.
 */
function checkReadOnly(look: Look, path: string, refuse: (database: SqliteLike) => void): void {
  if ((fileSize(`${path}-wal`) ?? 0) === 0) return;
  try {
    const database = look(path);
    try {
      refuse(database);
    } finally {
      database.close();
    }
  } catch (error) {
    if (isSemelError(error)) throw error;
  }
}

/**
 * An accepted loss gives the ledger a new identity: an earlier copy may have more writes, but lacks what is done from now
 * on.
 */
function confirmId(database: SqliteLike, path: string, anew: string | undefined): void {
  const table = createMetaTable(database);
  const meta = table.read();
  if (meta === undefined) throw lostMetaError(path);
  if (anew !== undefined) {
    table.setIncarnation(anew);
    writeId(path, { ...meta, incarnation: anew }, 'replace');
  } else if (readId(path) === undefined) writeId(path, meta, 'new');
  // From now on a copy of the file alone is recognised: it has at least one write, and no id file.
  if (meta.writes === 0)
    database.exec('UPDATE meta SET writes = 1 WHERE writes = 0; PRAGMA wal_checkpoint(FULL)');
}

function refuseTransaction(database: SqliteLike): void {
  if (isInTransaction(database)) throw new InTransaction();
}

function readFileName(database: SqliteLike): string {
  const file = query(database, 'PRAGMA database_list').get()?.[2];
  if (typeof file === 'string' && file !== '') return file;
  throw storeError('STORE_UNSAFE', 'The database handle is not on a file.', {
    next: 'Open it on a file, or use `memoryStore()` if the records may be lost.',
  });
}

/** Earlier versions can corrupt a WAL database when a checkpoint and a log reset coincide. */
const oldest = [3, 51, 3] as const;

function refuseOldSqlite(database: SqliteLike): void {
  const version = String(single(database, 'SELECT sqlite_version()'));
  const parts = version.split('.').map(Number);
  const difference = oldest.map((part, index) => (parts[index] ?? 0) - part).find((step) => step !== 0) ?? 0;
  if (difference >= 0) return;
  throw storeError(
    'STORE_UNSAFE',
    `This SQLite is ${version}; before ${oldest.join('.')} it can damage a database that several processes write.`,
    {
      next: 'Use Node ^22.22.3 or >=24.15.0, or a newer better-sqlite3.',
      evidence: { version },
    },
  );
}

/** Reads each setting back: SQLite does not report one that the file system or the build cannot provide. */
function makeDurable(database: SqliteLike, path: string): void {
  const mode = single(database, 'PRAGMA journal_mode = WAL');
  if (mode !== 'wal') refuse(`has journal_mode = ${mode}, not wal`);
  database.exec('PRAGMA synchronous = FULL');
  const synchronous = single(database, 'PRAGMA synchronous');
  if (synchronous !== 2) refuse(`has synchronous = ${synchronous}, not 2 (FULL)`);
  // On macOS a plain fsync leaves the data in the drive's cache.
  database.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
  database.exec(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
  // Keys are spread over the pages of their period: cache those pages, and checkpoint each once for many changes.
  database.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 1000');

  function refuse(what: string): never {
    throw storeError(
      'STORE_UNSAFE',
      `The ledger ${path} ${what}: a power cut could lose committed records.`,
      {
        next: "Choose a place on a local disk with `store: 'sqlite:…'` or SEMEL_STORE.",
        evidence: { path, mode, synchronous: single(database, 'PRAGMA synchronous') },
      },
    );
  }
}

export function lostMetaError(path: string): Error {
  return storeError('STORE_UNSAFE', `The ledger ${path} has lost its description (table meta).`, {
    next: 'Nothing was deleted. Stop all programs that use it, keep a copy, and restore a backup.',
    evidence: { path },
  });
}

export function replacedError(path: string): Error {
  return storeError(
    'STORE_UNSAFE',
    `The ledger ${path} or its log was deleted or replaced while this process used it, or a link on its path points elsewhere.`,
    {
      next: 'Put the right file back, then restart this process. Open the ledger with only one SQLite library per process.',
      evidence: { path },
    },
  );
}
