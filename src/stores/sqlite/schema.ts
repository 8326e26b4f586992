// The tables, and how a file of an earlier schema becomes one of this. test/stores/schema.sql shows the result.

import { existsSync } from 'node:fs';
import type { Anchor } from '../../store/clock-check.ts';
import type { Migration } from '../../store/store.ts';
import { isInTransaction, query, type SqliteLike, single } from './client.ts';
import { storeError } from './failure.ts';

/** 'smel', at byte 68 of the file: `file ledger.db` shows it. */
export const applicationId = 0x73_6d_65_6c;

/** Running or unknown, as the index on them says it: SQLite uses the index only for the same words. */
export const openRows = 'status IN (0, 4)';
/** When a record expires, as the index on it says it. Rounded down: looked at a moment too early, never too late. */
export const expirySecond = '(created + expires) / 1000';

/** One list of statements per version; a list that was released never changes. */
export const migrations: readonly (readonly string[])[] = [
  [
    // One row, in the first page after the schema's: log.ts reads `writes` there. `writes` counts the transactions that
    // wrote, see complete.ts. all_sum, open_sum: of the checksums of all records and of the open ones, so that a missing
    // one is noticed. `schema` is read in every transaction: a program that an upgrade has left behind must notice.
    // moved_to, came_from, filling: whether it may be used, see src/store/move/ledger-state.ts. loss_*: who accepted last that
    // some writes are gone. backup_at: only in a backup.
    `CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  writes INTEGER NOT NULL DEFAULT 0,
  all_sum INTEGER NOT NULL DEFAULT 0,
  open_sum INTEGER NOT NULL DEFAULT 0,
  schema INTEGER NOT NULL,
  incarnation TEXT NOT NULL,
  floor INTEGER NOT NULL DEFAULT 0,
  moved_to TEXT,
  came_from TEXT,
  filling INTEGER NOT NULL DEFAULT 0,
  anchor_boot TEXT NOT NULL,
  anchor_wall INTEGER NOT NULL,
  anchor_uptime INTEGER NOT NULL,
  anchor_seen INTEGER NOT NULL,
  loss_at INTEGER,
  loss_by TEXT,
  loss_note TEXT,
  backup_at INTEGER
) STRICT`,
    // A key starts with its contract and a slash. Both are here once, and a small number in each record.
    `CREATE TABLE scopes (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  contract TEXT NOT NULL,
  sum INTEGER NOT NULL,
  UNIQUE (namespace, contract)
) STRICT`,
    // In the order of the claims; settling updates the row in place. The unique index is in the order of the keys, so
    // those of one period or run are neighbours. created: milliseconds since the epoch; settled, expires: since created.
    // sum: a checksum over the record and its name, verified whenever it is read. key_sum: one of the key alone, so that
    // an entry of the index can be verified without its row.
    `CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  key_sum INTEGER NOT NULL,
  status INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  token BLOB,
  version TEXT NOT NULL,
  owner TEXT NOT NULL,
  created INTEGER NOT NULL,
  settled INTEGER,
  expires INTEGER,
  args TEXT,
  content TEXT,
  result TEXT,
  asker TEXT,
  more TEXT,
  sum INTEGER NOT NULL
) STRICT`,
    'CREATE UNIQUE INDEX record_keys ON records (scope, key, key_sum)',
    // What is running or unknown: few at a time.
    `CREATE INDEX open_records ON records (status) WHERE ${openRows}`,
    // In seconds, for retention.
    `CREATE INDEX record_expiry ON records (${expirySecond}) WHERE expires IS NOT NULL`,
    // For people with an SQL shell.
    `CREATE VIEW ledger AS SELECT
  namespace,
  contract || key AS key,
  CASE status WHEN 0 THEN 'running' WHEN 1 THEN 'succeeded' WHEN 2 THEN 'failed' WHEN 3 THEN 'released'
    ELSE 'unknown' END AS status,
  fence,
  version,
  owner,
  datetime(created / 1000, 'unixepoch') AS created,
  datetime((created + settled) / 1000, 'unixepoch') AS settled,
  datetime((created + expires) / 1000, 'unixepoch') AS expires,
  args,
  result,
  asker,
  more
FROM records JOIN scopes ON scopes.id = scope`,
    `CREATE TABLE events (
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  n INTEGER NOT NULL,
  at INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  type TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (scope, key, n)
) STRICT, WITHOUT ROWID`,
  ],
];

export const schemaVersion: number = migrations.length;

/** Needs no lock: true is final, and false is asked again under the lock. */
export function isCurrent(database: SqliteLike): boolean {
  return (
    single(database, 'PRAGMA application_id') === applicationId &&
    single(database, 'PRAGMA user_version') === schemaVersion
  );
}

/** What a new ledger says of itself. */
export interface Description {
  /** No two ledgers have the same. */
  readonly incarnation: string;
  readonly anchor: Anchor;
}

/** Takes the write lock at once, or throws busy. */
export function migrate(
  database: SqliteLike,
  path: string,
  { incarnation, anchor }: Description,
  lists: readonly (readonly string[])[] = migrations,
): void {
  // What is not ours is refused before it is locked.
  versionOf(database, path, lists.length);
  database.exec('BEGIN IMMEDIATE');
  try {
    const from = versionOf(database, path, lists.length);
    for (const list of lists.slice(from)) for (const statement of list) database.exec(statement);
    if (from === 0) {
      const { boot, wall, uptime, seen } = anchor;
      database
        .prepare(
          `INSERT INTO meta (one, schema, incarnation, anchor_boot, anchor_wall, anchor_uptime, anchor_seen)
           VALUES (1, ?, ?, ?, ?, ?, ?)`,
        )
        .run(lists.length, incarnation, boot, wall, uptime, seen);
      database.exec(`PRAGMA application_id = ${applicationId}`);
    }
    database.prepare('UPDATE meta SET schema = ?').run(lists.length);
    database.exec(`PRAGMA user_version = ${lists.length}`);
    database.exec('COMMIT');
  } catch (error) {
    if (isInTransaction(database)) database.exec('ROLLBACK');
    throw error;
  }
}

/** Which schema the file has; 0: it is new and empty. Refuses what is not ours. */
export function versionOf(database: SqliteLike, path: string, known: number): number {
  const id = single(database, 'PRAGMA application_id') as number;
  const version = single(database, 'PRAGMA user_version') as number;
  if (id !== applicationId) {
    const tables = query(
      database,
      "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    );
    const found = tables.all().map(([name]) => String(name));
    if (id === 0 && version === 0 && found.length === 0) return 0;
    const signs = found.length === 0 ? `application id ${id}` : `it holds ${found.slice(0, 3).join(', ')}`;
    throw storeError('STORE_UNSAFE', `${path} is a database of another program (${signs}).`, {
      next: "Name a file of its own for the ledger by `store: 'sqlite:…'` or SEMEL_STORE. Nothing was changed.",
      evidence: { path, applicationId: id, tables: found.slice(0, 10) },
    });
  }
  refuseNewer(version, known, path);
  return version;
}

/** A trigger would run with every claim; a view in a table's place gives what it likes, without end too. */
export function refuseForeignParts(database: SqliteLike, path: string): void {
  const [type, name] =
    query(
      database,
      `SELECT type, name FROM sqlite_schema
       WHERE type = 'trigger' OR (type = 'view' AND name COLLATE NOCASE IN ('meta', 'scopes', 'records', 'events'))`,
    ).get() ?? [];
  if (type === undefined) return;
  throw storeError('STORE_UNSAFE', `The ledger ${path} has a ${type} that is not semel's (${name}).`, {
    next: 'Find out who changed it. Restore a backup, or, where nothing else was changed, drop it. Nothing was deleted.',
    evidence: { path, [String(type)]: name },
  });
}

export function refuseNewer(version: number, known: number, path: string): void {
  if (version <= known) return;
  throw storeError(
    'STORE_UNSAFE',
    `The ledger ${path} has schema ${version}; this version of semel knows up to ${known}.`,
    {
      next: 'Upgrade semel here and start this program again. Nothing was changed.',
      evidence: { path, schema: version, known },
    },
  );
}

export interface MigrationOptions {
  readonly path: string;
  connect(path: string): Promise<SqliteLike>;
  unlocked<T>(run: () => T): Promise<T>;
  /** Opening a ledger brings it up to date. */
  open(): Promise<unknown>;
}

/** Looks without opening the ledger, which would make or change it. */
export async function planMigration(options: MigrationOptions): Promise<Migration> {
  const from = await versionIn(options);
  const statements = migrations.slice(from).flat();
  return {
    from,
    to: schemaVersion,
    statements: from === 0 ? [...statements, `PRAGMA application_id = ${applicationId}`] : statements,
    async run() {
      await options.open();
    },
  };
}

async function versionIn({ path, connect, unlocked }: MigrationOptions): Promise<number> {
  if (!existsSync(path)) return 0;
  const database = await connect(path);
  try {
    return await unlocked(() => versionOf(database, path, schemaVersion));
  } finally {
    database.close();
  }
}
