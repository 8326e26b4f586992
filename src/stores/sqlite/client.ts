// The SQLite library by its shape: node:sqlite, or a better-sqlite3 handle from the user. No driver is imported.

import type { DatabaseSync as NodeDatabase } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { SemelError } from '../../core/errors.ts';

export type SqliteValue = string | number | null | Uint8Array;

export interface SqliteStatement {
  run(...values: SqliteValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  /** node:sqlite: rows as arrays. */
  setReturnArrays?(enabled: boolean): void;
  /** better-sqlite3: rows as arrays. */
  raw?(enabled: boolean): unknown;
  /** node:sqlite: integers as BigInt, which a handle may have as its default. */
  setReadBigInts?(enabled: boolean): void;
  /** better-sqlite3: the same. */
  safeIntegers?(enabled: boolean): unknown;
}

/** An open SQLite database, as `node:sqlite` and `better-sqlite3` provide it. */
export interface SqliteLike {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  close(): unknown;
  /** node:sqlite: a transaction is open. */
  readonly isTransaction?: boolean;
  /** better-sqlite3: a transaction is open. */
  readonly inTransaction?: boolean;
}

/** A prepared read that returns rows as arrays, which cost less than objects. */
interface Query {
  get(...values: SqliteValue[]): readonly SqliteValue[] | undefined;
  all(...values: SqliteValue[]): readonly (readonly SqliteValue[])[];
}

export function query(database: SqliteLike, sql: string): Query {
  const statement = database.prepare(sql);
  if (statement.setReturnArrays) statement.setReturnArrays(true);
  else if (statement.raw) statement.raw(true);
  else {
    throw new SemelError('STORE_UNSAFE', 'The database handle cannot return rows as arrays.', {
      next: 'Pass a handle of node:sqlite or better-sqlite3.',
    });
  }
  statement.setReadBigInts?.(false);
  statement.safeIntegers?.(false);
  return statement as unknown as Query;
}

/** The first column of the first row. */
export function single(database: SqliteLike, sql: string, ...values: SqliteValue[]): SqliteValue | undefined {
  return query(database, sql).get(...values)?.[0];
}

export function isInTransaction(database: SqliteLike): boolean {
  return (database.isTransaction ?? database.inTransaction) === true;
}

/** Runs several reads on one snapshot. While it is open, no checkpoint can restart the log. */
export function inSnapshot<T>(database: SqliteLike, look: () => T): T {
  if (isInTransaction(database)) return look();
  database.exec('BEGIN');
  try {
    single(database, 'SELECT count(*) FROM sqlite_schema');
    return look();
  } finally {
    database.exec('COMMIT');
  }
}

/** Without SQLite's own busy timeout, which would block the event loop. */
export async function connect(path: string): Promise<SqliteLike> {
  const { DatabaseSync } = await load();
  return new DatabaseSync(path, { timeout: 0 });
}

/** Opens read-only, and leaves the log as it is when it closes. */
export async function looker(): Promise<(path: string) => SqliteLike> {
  const { DatabaseSync } = await load();
  return (path) => new DatabaseSync(path, { timeout: 0, readOnly: true });
}

/** Opens the file alone, as if it had no log, without a lock. */
export async function openWithoutLog(): Promise<(path: string) => SqliteLike> {
  const { DatabaseSync } = await load();
  return (path) => {
    const file = pathToFileURL(path);
    file.searchParams.set('immutable', '1');
    const database = new DatabaseSync(file, { timeout: 0, readOnly: true, defensive: false });
    // During a checkpoint the file may be shorter than its header says; without this SQLite calls that damage.
    database.exec('PRAGMA writable_schema = ON');
    return database;
  };
}

/** False for another library's handle, or if there is no node:sqlite. */
export async function isNodeSqlite(database: SqliteLike): Promise<boolean> {
  const node = await load().catch(() => undefined);
  return node !== undefined && database instanceof node.DatabaseSync;
}

/** Copies all pages in one step: a write between two steps would restart it. */
export async function backupDatabase(source: SqliteLike, to: string): Promise<void> {
  const { backup } = await load();
  await backup(source as NodeDatabase, to, { rate: 2 ** 30 });
}

type NodeSqlite = Pick<typeof import('node:sqlite'), 'DatabaseSync' | 'backup'>;

let loading: Promise<NodeSqlite> | undefined;

function load(): Promise<NodeSqlite> {
  // `import` would start the ES module loader, which may not be needed otherwise.
  loading ??= withoutExperimentalWarning(async () => {
    const found = process.getBuiltinModule('node:sqlite');
    if (found === undefined) throw new Error('there is no such module');
    return found;
  }).catch((cause) => {
    loading = undefined;
    throw new SemelError('STORE_UNSAFE', `Node ${process.version} cannot load node:sqlite.`, {
      next: 'Use Node ^22.22.3 or >=24.15.0, or pass a better-sqlite3 handle as `database`.',
      cause,
    });
  });
  return loading;
}

/** Older Nodes warn when node:sqlite is loaded. Hides that warning only, and only while `run` is pending. */
export async function withoutExperimentalWarning<T>(run: () => Promise<T>): Promise<T> {
  const emitWarning = process.emitWarning;
  const filtered = (warning: string | Error, ...rest: never[]) => {
    if (/SQLite is an experimental feature/.test(String(warning))) return;
    emitWarning.call(process, warning as string, ...rest);
  };
  process.emitWarning = filtered as typeof process.emitWarning;
  try {
    return await run();
  } finally {
    if (process.emitWarning === (filtered as typeof process.emitWarning)) process.emitWarning = emitWarning;
  }
}
