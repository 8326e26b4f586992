// The limit: two durable writes per call and nothing around them, the claim and the ending. Each by itself, or all that
// arrived while the last ones were written together.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { rawConnections } from './raw-postgres.ts';

export interface Write {
  readonly key: string;
  readonly token: string;
  readonly text: string;
}

export interface RawPairs {
  claim(write: Write): Promise<unknown>;
  settle(write: Write): Promise<unknown>;
}

type WriteAll = (writes: readonly Write[]) => Promise<unknown> | unknown;

export async function rawPairs(address: string, isGrouped: boolean): Promise<RawPairs> {
  const { claim, settle } = address.startsWith('sqlite:')
    ? onSqlite(address.slice('sqlite:'.length))
    : await onPostgres(address);
  if (isGrouped) return { claim: group(claim), settle: group(settle) };
  return { claim: async (write) => claim([write]), settle: async (write) => settle([write]) };
}

function group(writeAll: WriteAll): (write: Write) => Promise<void> {
  let waiting: { write: Write; done: () => void; fail: (error: unknown) => void }[] = [];
  let isBusy = false;
  const flush = async () => {
    while (waiting.length > 0) {
      const now = waiting;
      waiting = [];
      try {
        await writeAll(now.map(({ write }) => write));
        for (const { done } of now) done();
      } catch (error) {
        for (const { fail } of now) fail(error);
      }
    }
    isBusy = false;
  };
  return (write) =>
    new Promise((done, fail) => {
      waiting.push({ write, done, fail });
      if (isBusy) return;
      isBusy = true;
      setImmediate(flush);
    });
}

function onSqlite(path: string): { claim: WriteAll; settle: WriteAll } {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
    CREATE TABLE pairs (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, state INTEGER NOT NULL, token TEXT NOT NULL,
      lease INTEGER, args TEXT, result TEXT)`);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const claim = database.prepare(
    'INSERT INTO pairs (key, state, token, lease, args) VALUES (?, 0, ?, ?, ?) ON CONFLICT (key) DO NOTHING',
  );
  const settle = database.prepare(
    'UPDATE pairs SET state = 1, lease = NULL, result = ? WHERE key = ? AND token = ? AND state = 0',
  );
  const together =
    (one: (write: Write) => void): WriteAll =>
    (writes) => {
      begin.run();
      for (const write of writes) one(write);
      commit.run();
    };
  return {
    claim: together(({ key, token, text }) => void claim.run(key, token, Date.now() + 60_000, text)),
    settle: together(({ key, token, text }) => void settle.run(text, key, token)),
  };
}

async function onPostgres(url: string): Promise<{ claim: WriteAll; settle: WriteAll }> {
  const pool = new pg.Pool({ connectionString: url, max: rawConnections });
  await pool.query(`CREATE TABLE IF NOT EXISTS pairs (key text PRIMARY KEY, state smallint NOT NULL, token text NOT NULL,
    lease timestamptz, args text, result text)`);
  const send = (name: string, text: string) => (writes: readonly Write[]) =>
    pool.query({
      name,
      text,
      values: [
        writes.map(({ key }) => key),
        writes.map(({ token }) => token),
        writes.map((write) => write.text),
      ],
    });
  return {
    claim: send(
      'claim',
      `INSERT INTO pairs (key, state, token, lease, args)
        SELECT key, 0, token, clock_timestamp() + interval '60 s', args
        FROM unnest($1::text[], $2::text[], $3::text[]) AS new (key, token, args) ON CONFLICT (key) DO NOTHING`,
    ),
    settle: send(
      'settle',
      `UPDATE pairs AS p SET state = 1, lease = NULL, result = new.result
        FROM unnest($1::text[], $2::text[], $3::text[]) AS new (key, token, result)
        WHERE p.key = new.key AND p.token = new.token AND p.state = 0`,
    ),
  };
}
