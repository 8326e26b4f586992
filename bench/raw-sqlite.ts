// The limit: node:sqlite as durable, with the table that suits this work best and no library around it. Rows in order of
// arrival, a unique key, inserted by the claim and updated in place by the ending.

import { hash, randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { type Args, callers, next, resultText } from './calls.ts';

export interface RawSqlite extends Disposable {
  /** A claim and an ending, each a durable transaction. */
  execute(args: Args, conversation: number): void;
  /** The claims of many in one transaction, then their endings in another; how many. */
  executeTogether(): number;
  read(args: Args): unknown;
}

export function rawSqlite(path: string): RawSqlite {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
    CREATE TABLE records (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, form INTEGER NOT NULL, state INTEGER NOT NULL,
      fence INTEGER NOT NULL, token INTEGER NOT NULL, lease INTEGER, created INTEGER NOT NULL, done INTEGER,
      args TEXT, content TEXT, result TEXT)`);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const claim = database.prepare(
    `INSERT INTO records (key, form, state, fence, token, lease, created, args)
      VALUES (?, 1, 0, 1, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
  );
  const settle = database.prepare(
    'UPDATE records SET state = 1, result = ?, done = ?, lease = NULL WHERE id = ? AND token = ? AND fence = 1 AND state = 0',
  );
  const read = database.prepare('SELECT state, result FROM records WHERE key = ?');
  const token = randomBytes(8).readBigInt64BE();

  /** As much of a digest as tells all keys apart, behind the conversation that it belongs to. */
  function keyFor(args: Args, conversation: number): Buffer {
    const key = Buffer.from(hash('sha256', JSON.stringify(args), 'buffer').subarray(0, 20));
    key.writeUInt32BE(conversation);
    return key;
  }

  function execute(work: readonly { args: Args; conversation: number }[]): void {
    const now = Date.now();
    begin.run();
    const ids = work.map(
      ({ args, conversation }) =>
        claim.run(keyFor(args, conversation), token, now + 60_000, now, JSON.stringify(args)).lastInsertRowid,
    );
    commit.run();
    begin.run();
    for (const id of ids) settle.run(resultText, now, id, token);
    commit.run();
  }

  return {
    execute: (args, conversation) => execute([{ args, conversation }]),
    executeTogether() {
      execute(Array.from({ length: callers }, (_, conversation) => ({ args: next(), conversation })));
      return callers;
    },
    read: (args) => JSON.parse((read.get(keyFor(args, 0)) as { result: string }).result),
    [Symbol.dispose]: () => database.close(),
  };
}
