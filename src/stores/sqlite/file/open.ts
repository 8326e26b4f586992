// Opens a ledger file so that what it is told is kept, or refuses with what is wrong and what to do. Never deletes.

import { resolve } from 'node:path';
import { isSemelError } from '../../../core/errors.ts';
import { isInTransaction, query, type SqliteLike, single } from '../client.ts';
import { InTransaction, storeError } from '../failure.ts';
import type { Machine } from '../machine.ts';
import { metaTable } from '../meta.ts';
import { type Description, isCurrent, migrate, refuseForeignParts } from '../schema.ts';
import { refuseDamaged } from '../verify.ts';
import { refuseIncomplete, refuseTruncated } from './complete.ts';
import { createPrivate, openTip, refuseLost, rememberedId, sizeOf, type Tip, writeId } from './identity.ts';
import { type OwnWrites, ownWritesOf } from './own-file.ts';
import { prepare } from './place.ts';
import { makePrivate } from './privacy.ts';
import { watch } from './watch.ts';

export interface OpenOptions {
  readonly path: string;
  /** The user's own handle; it is not ours to close. */
  readonly database: SqliteLike | undefined;
  readonly shared: boolean;
  /** A person has accepted that it may lack what was written last. */
  readonly isLossAccepted: boolean;
  readonly machine: Machine;
  /** For a ledger that is new. */
  readonly describe: () => Description;
  /** Runs what may find the database locked, again until it is not. */
  readonly unlocked: <T>(run: () => T) => Promise<T>;
}

export interface Connection {
  readonly database: SqliteLike;
  readonly path: string;
  readonly forgets: string | undefined;
  /** A sentence where others can get at it. */
  readonly warning: string | undefined;
  /** The open files are still the ones under their names. Cheaper where it is told how many writes the ledger has had. */
  readonly isInPlace: (writes?: number) => boolean;
  readonly tip: Tip;
  readonly isOurs: boolean;
}

export async function openLedger(options: OpenOptions): Promise<Connection> {
  const { machine, unlocked, shared, database: handle } = options;
  // In it nothing could be made durable, and the file may not show yet what it holds.
  if (handle !== undefined) await unlocked(() => refuseTransaction(handle));
  const wanted = resolve(handle === undefined ? options.path : await unlocked(() => fileOf(handle)));
  const { path, forgets, behindLink } = prepare(wanted, machine, shared);
  refuseLost(path);
  if (handle === undefined) createPrivate(path);
  const ownWrites = await ownWritesOf(path, handle);
  const database = await openDatabase(path, ownWrites, options);
  const warnings = [makePrivate(path, machine, shared), behindLink].filter((each) => each !== undefined);
  return {
    database,
    path,
    forgets,
    warning: warnings.length === 0 ? undefined : warnings.join(' '),
    isInPlace: watch({ wanted, path, ownWrites }),
    tip: openTip(path),
    isOurs: handle === undefined,
  };
}

async function openDatabase(path: string, ownWrites: OwnWrites, options: OpenOptions): Promise<SqliteLike> {
  const { machine, describe, unlocked, database: handle, isLossAccepted } = options;
  const refuseLoss = (database: SqliteLike) => {
    refuseTruncated(database, path);
    if (!isLossAccepted) refuseIncomplete(database, { path, ownWrites });
  };
  // A handle may be of another library, beside which ours must not open the file.
  if (handle === undefined) lookFirst(await machine.looker(), path, refuseLoss);
  const database = handle ?? (await machine.connect(path));
  try {
    database.exec('PRAGMA busy_timeout = 0');
    await unlocked(() => refuseOldSqlite(database));
    await unlocked(() => refuseTruncated(database, path));
    if (!(await unlocked(() => isCurrent(database))))
      await unlocked(() => migrate(database, path, describe()));
    await unlocked(() => refuseForeignParts(database, path));
    await unlocked(() => refuseLoss(database));
    await unlocked(() => refuseDamaged(database));
    await unlocked(() => makeDurable(database, path));
    await unlocked(() => confirmId(database, path, isLossAccepted ? describe().incarnation : undefined));
    return database;
  } catch (error) {
    if (handle === undefined) database.close();
    throw error;
  }
}

type Look = Awaited<ReturnType<Machine['looker']>>;

/**
 * Closing a connection that may write would fold what it could read of a damaged log into the ledger, and delete the
 * rest. What cannot be looked at so is opened: that says what is wrong, or mends it.
 */
function lookFirst(look: Look, path: string, refuse: (database: SqliteLike) => void): void {
  if ((sizeOf(`${path}-wal`) ?? 0) === 0) return;
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
 * Where a loss is accepted, it goes on as another ledger: a copy from before, though it may have had more writes, lacks
 * what is done from now on.
 */
function confirmId(database: SqliteLike, path: string, anew: string | undefined): void {
  const table = metaTable(database);
  const meta = table.read();
  if (meta === undefined) throw lostDescription(path);
  if (anew !== undefined) {
    table.setIncarnation(anew);
    writeId(path, { ...meta, incarnation: anew }, 'replace');
  } else if (rememberedId(path) === undefined) writeId(path, meta, 'new');
  // From here on a copy of the ledger's own file is known to be one: it counts at least this write, and has no id.
  if (meta.writes === 0)
    database.exec('UPDATE meta SET writes = 1 WHERE writes = 0; PRAGMA wal_checkpoint(FULL)');
}

function refuseTransaction(database: SqliteLike): void {
  if (isInTransaction(database)) throw new InTransaction();
}

function fileOf(database: SqliteLike): string {
  const file = query(database, 'PRAGMA database_list').get()?.[2];
  if (typeof file === 'string' && file !== '') return file;
  throw storeError('STORE_UNSAFE', 'The database handle is not on a file.', {
    next: 'Open it on a file, or use `memoryStore()` where forgetting is accepted.',
  });
}

/** Earlier ones can corrupt a database in WAL mode when a checkpoint and a reset meet. */
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

/** What was asked for is read back: a file system or a build that cannot do it says nothing otherwise. */
function makeDurable(database: SqliteLike, path: string): void {
  const mode = single(database, 'PRAGMA journal_mode = WAL');
  if (mode !== 'wal') refuse(`keeps its log as "${mode}", not as "wal"`);
  database.exec('PRAGMA synchronous = FULL');
  const synchronous = single(database, 'PRAGMA synchronous');
  if (synchronous !== 2) refuse(`has synchronous = ${synchronous}, not 2 (FULL)`);
  // On a Mac, a plain fsync leaves the data in the drive's memory.
  database.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
  database.exec(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
  // Digests are spread over the pages of their period: keep those at hand, and write each back once for many changes.
  database.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 1000');

  function refuse(what: string): never {
    throw storeError('STORE_UNSAFE', `The ledger ${path} ${what}: a power cut could lose what was told.`, {
      next: "Name a place on a local disk by `store: 'sqlite:…'` or SEMEL_STORE.",
      evidence: { path, mode, synchronous: single(database, 'PRAGMA synchronous') },
    });
  }
}

export function lostDescription(path: string): Error {
  return storeError('STORE_UNSAFE', `The ledger ${path} has lost its own description.`, {
    next: 'Stop all programs that use it, keep a copy, and restore a backup. Nothing was deleted.',
    evidence: { path },
  });
}

export function replaced(path: string): Error {
  return storeError(
    'STORE_UNSAFE',
    `The ledger ${path} or its log was deleted or replaced while this process used it, or a link on its path points elsewhere.`,
    {
      next: 'Put the right file back, then start this process again. Open the ledger with one SQLite library per process only.',
      evidence: { path },
    },
  );
}
