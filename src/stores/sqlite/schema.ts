// The tables, and how an older file is migrated. test/stores/schema.sql shows the result. Refuses other programs' databases.

import { existsSync } from 'node:fs';
import type { Anchor } from '../../store/clock-check.ts';
import type { Migration } from '../../store/store.ts';
import { isInTransaction, query, type SqliteLike, single } from './client.ts';
import { storeError } from './failure.ts';

/** 'smel', at byte 68 of the file; `file ledger.db` prints it. */
export const applicationId = 0x73_6d_65_6c;

/** Running or unknown. SQLite uses the partial index only for exactly this expression. */
export const openRows = 'status IN (0, 4)';
/** When a record expires, as the index has it. Rounded down, so pruning looks too early rather than too late. */
export const expirySecond = '(created + expires) / 1000';

/** One list of statements per version. A released list never changes. */
export const migrations: readonly (readonly string[])[] = [
  [
    // One row, on the first page after the schema: log.ts reads `writes` from there. `writes` counts the transactions that
    // wrote, see complete.ts. all_sum, open_sum: sums over the checksums of all and of the open records, which reveal a
    // missing one. `schema` is read in every transaction, so that an outdated program notices an upgrade. moved_to,
    // came_from, filling: see src/store/move/ledger-state.ts. loss_*: who last accepted lost writes. backup_at: backups only.
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
    // A key starts with its contract and a slash. Each pair is stored once; records refer to it by number.
    `CREATE TABLE scopes (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  contract TEXT NOT NULL,
  sum INTEGER NOT NULL,
  UNIQUE (namespace, contract)
) STRICT`,
    // Rows are in the order of their claims; settling updates them in place. The unique index is in key order, so keys of
    // one period or run are neighbours. created: milliseconds since the epoch; settled, expires: since created.
    // sum: checksum over the record and its name, verified on every read. key_sum: checksum of the key alone, so that an
    // index entry can be verified without its row.
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
    // Running or unknown: few at a time.
    `CREATE INDEX open_records ON records (status) WHERE ${openRows}`,
    // For pruning.
    `CREATE INDEX record_expiry ON records (${expirySecond}) WHERE expires IS NOT NULL`,
    // For people with an SQL shell. A lease is an instant of its boot's clock, which the anchor leads to the wall clock.
    `CREATE VIEW operations AS SELECT
  namespace,
  contract || key AS key,
  CASE status WHEN 0 THEN 'running' WHEN 1 THEN 'succeeded' WHEN 2 THEN 'failed' WHEN 3 THEN 'released'
    ELSE 'unknown' END AS status,
  coalesce(rare ->> '$.attempts', 1) AS attempts,
  CASE WHEN status = 0 AND rare ->> '$.lease[0]' = anchor_boot THEN
    datetime((anchor_wall + (rare ->> '$.lease[1]') - anchor_uptime) / 1000, 'unixepoch') END AS locked_until,
  owner,
  args,
  result,
  rare ->> '$.error.message' AS error,
  datetime(created / 1000, 'unixepoch') AS created_at,
  datetime((created + settled) / 1000, 'unixepoch') AS settled_at,
  datetime((created + expires) / 1000, 'unixepoch') AS expires_at
FROM (SELECT *, CASE WHEN json_valid(more) THEN more END AS rare FROM records)
  JOIN scopes ON scopes.id = scope CROSS JOIN meta`,
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
  [
    // n is never reused: a relay may still hold the number of a row that is gone. state: see src/store/outbox.ts. due: not
    // taken before. call: with a checksum over what was staged.
    `CREATE TABLE outbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  contract TEXT NOT NULL,
  version TEXT NOT NULL,
  group_name TEXT,
  fingerprint TEXT,
  caller TEXT,
  call TEXT NOT NULL,
  staged INTEGER NOT NULL,
  due INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  generation INTEGER,
  reason TEXT,
  drift TEXT,
  UNIQUE (namespace, key)
) STRICT`,
    'CREATE INDEX outbox_due ON outbox (namespace, due, n) WHERE state < 2',
    'CREATE INDEX outbox_groups ON outbox (namespace, group_name, n) WHERE group_name IS NOT NULL',
  ],
];

export const schemaVersion: number = migrations.length;

/** Needs no lock: a schema never goes back, and `migrate` checks again under the lock. */
export function isCurrent(database: SqliteLike): boolean {
  return (
    single(database, 'PRAGMA application_id') === applicationId &&
    single(database, 'PRAGMA user_version') === schemaVersion
  );
}

/** What a new ledger starts with. */
export interface Description {
  /** Unique per ledger. */
  readonly incarnation: string;
  readonly anchor: Anchor;
}

/** Takes the write lock, or throws busy. */
export function migrate(
  database: SqliteLike,
  path: string,
  { incarnation, anchor }: Description,
  lists: readonly (readonly string[])[] = migrations,
): void {
  // Refuse another program's database before locking it.
  readVersion(database, path, lists.length);
  database.exec('BEGIN IMMEDIATE');
  try {
    const from = readVersion(database, path, lists.length);
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

/** The file's schema version; 0 if it is new and empty. Refuses another program's database. */
export function readVersion(database: SqliteLike, path: string, known: number): number {
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
    throw storeError('STORE_UNSAFE', `${path} is another program's database (${signs}).`, {
      next: "Nothing was changed. Give the ledger its own file with `store: 'sqlite:…'` or SEMEL_STORE. For tables and ledger in one file, let semel create the file first: docs/guides/outbox.md.",
      evidence: { path, applicationId: id, tables: found.slice(0, 10) },
    });
  }
  refuseNewer(version, known, path);
  return version;
}

export const tables = ['meta', 'scopes', 'records', 'events', 'outbox'] as const;

/** What a claim and a staging depend on. */
export const guarded: string = `(${[...tables, 'record_keys'].map((name) => `'${name}'`).join(', ')})`;

/** The file is also the user's own database. */
export function hasForeignTables(database: SqliteLike): boolean {
  const found = single(
    database,
    `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
     AND name COLLATE NOCASE NOT IN ${guarded}`,
  );
  return found !== undefined;
}

/**
 * A trigger on our tables would run with every claim; a view in place of a table can return anything, even endless rows. With
 * another index of the keys, or another column in a table, two claims of one key could both win.
 */
export function refuseForeignParts(database: SqliteLike, path: string): void {
  const ours = new Set(migrations.flat());
  const foreign = query(
    database,
    `SELECT type, name, sql FROM sqlite_schema
     WHERE (type = 'trigger' AND tbl_name COLLATE NOCASE IN ${guarded}) OR name COLLATE NOCASE IN ${guarded}`,
  )
    .all()
    .find(([, , sql]) => !ours.has(String(sql)));
  if (foreign === undefined) return;
  const [type, name] = foreign;
  throw storeError(
    'STORE_UNSAFE',
    `The ledger ${path} has ${type === 'index' ? 'an' : 'a'} ${type} that is not semel's (${name}).`,
    {
      next: 'Nothing was deleted. Find out who changed the ledger, then restore a backup; if nothing else was changed, drop it.',
      evidence: { path, [String(type)]: name },
    },
  );
}

export function refuseNewer(version: number, known: number, path: string): void {
  if (version <= known) return;
  throw storeError(
    'STORE_UNSAFE',
    `The ledger ${path} has schema ${version}; this version of semel supports up to ${known}.`,
    {
      next: 'Nothing was changed. Upgrade semel in this program, then start it again.',
      evidence: { path, schema: version, known },
    },
  );
}

interface MigrationOptions {
  readonly path: string;
  connect(path: string): Promise<SqliteLike>;
  whenUnlocked<T>(run: () => T): Promise<T>;
  /** Opening a ledger migrates it. */
  open(): Promise<unknown>;
}

/** Reads the version without opening the ledger, which would create or migrate it. */
export async function planMigration(options: MigrationOptions): Promise<Migration> {
  const from = await readFileVersion(options);
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

async function readFileVersion({ path, connect, whenUnlocked }: MigrationOptions): Promise<number> {
  if (!existsSync(path)) return 0;
  const database = await connect(path);
  try {
    return await whenUnlocked(() => readVersion(database, path, schemaVersion));
  } finally {
    database.close();
  }
}
