// The limit: what node:sqlite does with the same durability and rows of the same size, and no library around it.

import { DatabaseSync } from 'node:sqlite';

export interface Bare extends Disposable {
  /** A claim and a settle, each in its own durable transaction. */
  execute(key: string, result: string): void;
  /** All claims in one transaction, then all settles in one: what no library on this table can exceed. */
  executeTogether(keys: readonly string[], result: string): void;
  read(key: string): unknown;
}

export function bare(path: string): Bare {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  database.exec(
    `CREATE TABLE records (namespace TEXT, key TEXT, status INTEGER, token BLOB, fence INTEGER, lease INTEGER,
      created INTEGER, settled INTEGER, expires INTEGER, owner TEXT, args TEXT, result TEXT,
      PRIMARY KEY (namespace, key)) STRICT, WITHOUT ROWID`,
  );
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const claim = database.prepare(
    `INSERT INTO records VALUES ('bench', ?, 0, randomblob(8), 1, ?, ?, NULL, NULL, 'host:1234', '{"lead":"l-000001","n":1}', NULL)`,
  );
  const settle = database.prepare(
    `UPDATE records SET status = 1, settled = ?, expires = ?, result = ? WHERE namespace = 'bench' AND key = ?`,
  );
  const read = database.prepare(`SELECT status, result FROM records WHERE namespace = 'bench' AND key = ?`);

  function executeTogether(keys: readonly string[], result: string): void {
    const now = Date.now();
    begin.run();
    for (const key of keys) claim.run(key, now + 60_000, now);
    commit.run();
    begin.run();
    for (const key of keys) settle.run(now, now + 86_400_000, result, key);
    commit.run();
  }

  return {
    execute: (key, result) => executeTogether([key], result),
    executeTogether,
    read(key) {
      const row = read.get(key) as { result: string };
      return JSON.parse(row.result);
    },
    [Symbol.dispose]: () => database.close(),
  };
}
