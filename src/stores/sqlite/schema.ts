// The tables, and how a file of an earlier schema becomes one of this. test/stores/schema.sql shows the result.

import type { Anchor } from '../../store/anchor.ts';
import { isInTransaction, query, type SqliteLike, single } from './driver.ts';
import { storeError } from './failure.ts';

/** 'smel', at byte 68 of the file: `file ledger.db` shows it. */
export const applicationId = 0x73_6d_65_6c;

/** `sum` is a checksum over the record and its name, verified whenever it is read. */
const recordColumns = `
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
  sum INTEGER NOT NULL`;

/** One list of statements per version; a list that was released never changes. */
export const migrations: readonly (readonly string[])[] = [
  [
    // One row, in the first page after the schema's: log.ts reads `writes` there. `writes` counts the transactions that
    // wrote, see complete.ts. loss_*: who accepted last that some of them are gone. backup_at: only in a backup.
    // open_sum: of the checksums in `open`, so that one that is missing there is noticed. `schema` is read in every transaction: a program that an upgrade has left behind must notice. moved_to,
    // came_from, filling: whether it may be used, see src/store/standing.ts.
    `CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  writes INTEGER NOT NULL DEFAULT 0,
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
    // What is running or unknown. created: milliseconds since the epoch; settled, expires: since created.
    `CREATE TABLE open (
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,${recordColumns},
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID`,
    // Everything else, in the order in which it came, with its key apart: digests are spread at random, and to
    // write a whole record among its neighbours would move them about. expires: in seconds, for retention.
    `CREATE TABLE closed (
  id INTEGER PRIMARY KEY,${recordColumns}
) STRICT`,
    `CREATE TABLE keys (
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  id INTEGER NOT NULL,
  expires INTEGER,
  sum INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID`,
    // The closed records in `scope` whose key starts with `prefix` expire in this hour, from minute to minute.
    `CREATE TABLE expiry (
  hour INTEGER NOT NULL,
  scope INTEGER NOT NULL,
  prefix TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (hour, scope, prefix)
) STRICT, WITHOUT ROWID`,
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
