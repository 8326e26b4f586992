// A process with rows and ledger in one Postgres that is killed at each point of a call in its transaction.

import pg from 'pg';
import { expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { ownSchema } from '../servers/own-place.ts';
import { type CallJob, openShop } from './postgres-crash-worker.ts';
import { callPoints } from './sqlite-worker.ts';

const worker = new URL('postgres-crash-worker.ts', import.meta.url);

test.concurrent.each(callPoints)(
  'a process that dies %s leaves data, effect and record, or none of them',
  async (dieAt) => {
    const place = await ownSchema();
    const client = new pg.Client(place.url);
    await client.connect();
    await client.query(`CREATE TABLE ${place.schema}.orders (id text)`);
    const victim = startNode(worker, { ...place, dieAt } satisfies CallJob);
    expect(await victim.ended, victim.errors()).toMatchObject({ signal: 'SIGKILL' });
    const ids = async () =>
      (await client.query(`SELECT id FROM ${place.schema}.orders ORDER BY id DESC`)).rows.map(({ id }) => id);
    const isCommitted = dieAt === 'after commit';
    expect(await ids()).toEqual(isCommitted ? ['data', 'a'] : []);

    const shop = openShop(place);
    expect((await shop.semel.records.list()).items).toHaveLength(isCommitted ? 1 : 0);
    // Postgres may not have noticed the death yet: this call waits for its locks.
    await client.query('BEGIN');
    const result = await shop.place.inTransaction.try(client, { id: 'a' });
    await client.query('COMMIT');
    expect(result.receipt.executed).toBe(!isCommitted);
    expect((await ids()).filter((id) => id === 'a')).toEqual(['a']);
    expect((await shop.semel.doubts.list()).items).toEqual([]);
    await shop.semel.close();
    await client.end();
  },
);
