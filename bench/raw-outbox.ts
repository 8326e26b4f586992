// The limit: an outbox by hand through `pg`. One INSERT in the caller's transaction; one relay that locks rows while their
// effects run, then deletes them. After a crash it runs all of them again.

import pg from 'pg';
import { pause } from './calls.ts';
import type { Intent, Queue, QueueOptions } from './peers/queue.ts';

const batchSize = 250;
const idleMs = 5;

export async function rawOutbox({ url, deliver }: QueueOptions): Promise<Queue> {
  const relay = new pg.Client({ connectionString: url });
  await relay.connect();
  await relay.query(
    'CREATE TABLE raw_outbox (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, intent json NOT NULL)',
  );
  let isOver = false;
  const working = work();
  return {
    name: 'by hand',
    stage: (tx, intent) => tx.query('INSERT INTO raw_outbox (intent) VALUES ($1)', [JSON.stringify(intent)]),
    async [Symbol.asyncDispose]() {
      isOver = true;
      await working;
      await relay.end();
    },
  };

  async function work(): Promise<void> {
    while (!isOver) {
      await relay.query('BEGIN');
      const { rows } = await relay.query<{ n: string; intent: Intent }>(
        'SELECT n, intent FROM raw_outbox ORDER BY n LIMIT $1 FOR UPDATE SKIP LOCKED',
        [batchSize],
      );
      await Promise.all(rows.map(({ intent }) => deliver(intent)));
      if (rows.length > 0)
        await relay.query('DELETE FROM raw_outbox WHERE n = ANY ($1)', [rows.map(({ n }) => n)]);
      await relay.query('COMMIT');
      if (rows.length === 0) await pause(idleMs);
    }
  }
}
