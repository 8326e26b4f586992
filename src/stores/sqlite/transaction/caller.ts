// The caller's connection to the ledger's file, inside a transaction: recognised by its shape, checked and locked. Refuses one on
// which effect and record could not commit together, durably.

import { statSync } from 'node:fs';
import { SemelError } from '../../../core/errors.ts';
import { isInTransaction, isNodeSqlite, query, type SqliteLike, single } from '../client.ts';
import { classifyFailure, storeError } from '../failure.ts';
import { formatInode } from '../file/own-file.ts';
import { guarded, refuseForeignParts } from '../schema.ts';
import type { Ledger } from './ledger.ts';
import { createSession, type Session } from './session.ts';

/** A session on the caller's connection, which holds the write lock from now until the caller's transaction ends. */
export async function enterTransaction(ledger: Ledger, tx: unknown): Promise<Session> {
  const database = toHandle(tx);
  const { connection } = ledger.session();
  const { path } = connection;
  if (database === connection.database)
    throw refusal(
      'The handle is the one that the store itself uses: other calls would read what is not committed yet.',
      'Open a second handle on the file for your transactions.',
    );
  if ((await isNodeSqlite(database)) !== (await isNodeSqlite(connection.database)))
    throw refusal(
      `The handle belongs to another SQLite library than the store's: in one process, only one library may open ${path}.`,
      'Give the store a handle of the same library, for itself alone: `createSemel({ store: new Database(file) })`.',
    );
  refuseOtherFile(database, path);
  refuseShadows(database);
  const session = sessionOn(ledger, database);
  await lock(ledger, database);
  refuseUnsafe(ledger, session);
  return session;
}

/** Before each step, and at the end: SQLite lets a transaction attach a database, which commits separately. */
export function refuseAttached(database: SqliteLike): void {
  const attached = listDatabases(database).find(([, name]) => name !== 'main' && name !== 'temp');
  if (attached === undefined) return;
  throw refusal(
    `The handle has another database attached (${attached[1]}): after a crash, one file could have committed without the other.`,
    'Detach it, and keep your tables in the file of the ledger.',
  );
}

export function refuseEnded(database: SqliteLike): void {
  if (isInTransaction(database)) return;
  throw new SemelError(
    'STORE_UNAVAILABLE',
    'The transaction ended while the call was running: `run` ended it, or SQLite rolled it back.',
    {
      next: 'Check what is in the database. Leave COMMIT and ROLLBACK to the caller of the tool.',
      retriable: false,
    },
  );
}

function toHandle(tx: unknown): SqliteLike {
  const handle = tx as SqliteLike | null | undefined;
  const isKnown =
    typeof handle === 'object' &&
    handle !== null &&
    ['prepare', 'exec'].every((name) => typeof handle[name as 'exec'] === 'function') &&
    ('isTransaction' in handle || 'inTransaction' in handle);
  if (!isKnown)
    throw new SemelError('INVALID_ARGS', 'The first argument is not a SQLite handle that semel knows.', {
      path: 'tx',
      next:
        'Nothing was run. The ledger of this Semel instance is SQLite: pass the `DatabaseSync` of node:sqlite or the database of ' +
        'better-sqlite3 itself, after BEGIN; not an object of an ORM. For a transaction on Postgres, keep the ledger there: ' +
        'createSemel({ store: pool }).',
    });
  if (isOpenIn(handle)) return handle;
  throw new SemelError('INVALID_ARGS', 'There is no open transaction on this handle.', {
    path: 'tx',
    next:
      "Nothing was run. Begin a transaction first: `database.exec('BEGIN IMMEDIATE')`. Commit it after the call: " +
      "better-sqlite3's `transaction(fn)` commits before a promise resolves, so use BEGIN and COMMIT.",
  });
}

function isOpenIn(handle: SqliteLike): boolean {
  try {
    return isInTransaction(handle);
  } catch (cause) {
    throw new SemelError('INVALID_ARGS', 'The handle is closed.', {
      path: 'tx',
      next: 'Nothing was run. Open it, and begin a transaction.',
      cause,
    });
  }
}

function refuseOtherFile(database: SqliteLike, path: string): void {
  refuseAttached(database);
  const file = listDatabases(database)[0]?.[2];
  if (file && inode(file) === inode(path)) return;
  throw refusal(
    `The handle is on ${file ? file : 'a database in memory'}, and the ledger is ${path}: they could not commit together.`,
    'Keep your tables in the file of the ledger, or the ledger in the file of your tables.',
  );
}

function listDatabases(database: SqliteLike): readonly (readonly [number, string, string | null])[] {
  return query(database, 'PRAGMA database_list').all() as never;
}

function inode(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && formatInode(found);
}

/** A temporary table hides the one of the same name, and a temporary trigger runs with its writes. */
function refuseShadows(database: SqliteLike): void {
  const [shadow] =
    query(
      database,
      `SELECT name FROM sqlite_temp_schema
       WHERE name COLLATE NOCASE IN ${guarded} OR tbl_name COLLATE NOCASE IN ${guarded}`,
    ).get() ?? [];
  if (shadow !== undefined)
    throw refusal(
      `The handle has a temporary table, view or trigger (${shadow}) in the way of semel's tables.`,
      'Drop it.',
    );
}

interface Known {
  readonly ledger: Ledger;
  readonly session: Session;
  /** Reads no table, so the transaction gets no snapshot by it. */
  readonly probe: ReturnType<typeof query>;
}

/** Preparing its statements costs more than the rest of a call. */
const sessions = new WeakMap<SqliteLike, Known>();

function sessionOn(ledger: Ledger, database: SqliteLike): Session {
  const known = sessions.get(database);
  if (known?.ledger === ledger && isUsable(known)) return known.session;
  const { connection } = ledger.session();
  const session = createSession({ ...connection, database, isOurs: true }, ledger.machine);
  sessions.set(database, { ledger, session, probe: query(database, 'SELECT 1') });
  return session;
}

/** Statements are invalid after their handle was closed and reopened. */
function isUsable({ probe }: Known): boolean {
  try {
    probe.get();
    return true;
  } catch {
    return false;
  }
}

/**
 * Before anything is read: after a read, the transaction could not see what others have committed since. Never blocks the
 * event loop, whatever the handle's timeout: the lock may be held by another transaction of this process.
 */
async function lock(ledger: Ledger, database: SqliteLike): Promise<void> {
  const patience = single(database, 'PRAGMA busy_timeout') as number;
  await ledger.lockWait.whenUnlocked(() => {
    refuseEnded(database);
    database.exec('PRAGMA busy_timeout = 0');
    try {
      database.exec('UPDATE meta SET writes = writes WHERE 0');
    } catch (error) {
      throw explainLock(error);
    } finally {
      database.exec(`PRAGMA busy_timeout = ${patience}`);
    }
  });
}

function explainLock(error: unknown): unknown {
  const { errcode, code } = error as { errcode?: number; code?: string };
  if (errcode === 517 || code === 'SQLITE_BUSY_SNAPSHOT')
    return new SemelError(
      'STORE_UNAVAILABLE',
      'The transaction has read before, and others have written since: it cannot write any more.',
      {
        next: 'Nothing was run. Roll it back and run it again as a whole; with BEGIN IMMEDIATE this cannot happen.',
        retriable: false,
        cause: error,
      },
    );
  if (classifyFailure(error) === 'read-only')
    return storeError('STORE_UNSAFE', 'The handle cannot write: it is read-only.', {
      next: 'Nothing was run. Open it without `readOnly`, and without PRAGMA query_only.',
      cause: error,
    });
  return error;
}

function refuseUnsafe(ledger: Ledger, { database, description, forget }: Session): void {
  const { database: own, connection, meta } = ledger.session();
  if (isInTransaction(own))
    throw refusal("The store's own handle is inside a transaction.", 'End it before the call.');
  const synchronous = single(database, 'PRAGMA synchronous') as number;
  if (synchronous < 2)
    throw refusal(
      `The handle has synchronous = ${synchronous}, not 2 (FULL): a power cut could undo what was committed.`,
      'Run `PRAGMA synchronous = FULL` on it, before BEGIN.',
    );
  refuseForeignParts(database, connection.path);
  forget();
  const here = meta.read();
  const there = description();
  const ahead = (there?.writes ?? 0) - (here?.writes ?? 0);
  // The lock is the proof: the path may lead to another file by now, and a copy has the same content.
  if (here?.incarnation !== there?.incarnation || ahead < 0 || ahead > 1 || !ledger.isLockedByAnother())
    throw refusal(
      `The handle is not on the ledger that is at ${connection.path} now: they could not commit together.`,
      'Close it, and open it again.',
    );
}

function refusal(happened: string, next: string): SemelError {
  return storeError('STORE_UNSAFE', happened, { next: `Nothing was run. ${next}` });
}
