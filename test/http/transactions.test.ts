// The handler in the caller's own transaction, on each framework and a real Postgres: response and effect commit together.

import pg from 'pg';
import { type AttemptContext, createSemel, type Semel } from 'semel';
import { idempotent } from 'semel/http';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';
import { frameworks, type Running, type Said } from './frameworks.ts';

let table: string;
let pool: pg.Pool;
let semel: (namespace: string) => Semel;

beforeAll(async () => {
  const { url, schema } = await ownSchema();
  table = `${schema}.orders`;
  pool = new pg.Pool({ connectionString: url, max: 8 });
  await pool.query(`CREATE TABLE ${table} (id text)`);
  semel = (namespace) => createSemel({ store: postgresStore({ url, schema }), namespace });
});
afterAll(() => pool.end());

/** As libraries do that try a transaction again after a serialization failure: the first commits fail. */
function transactions(failures: number) {
  let left = failures;
  return async <T>(work: (tx: unknown) => Promise<T>): Promise<T> => {
    for (;;) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const value = await work(client);
        const fails = left > 0;
        left -= 1;
        await client.query(fails ? 'ROLLBACK' : 'COMMIT');
        if (!fails) return value;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    }
  };
}

describe.each(frameworks)('$name', (framework) => {
  async function api(answers: (Said | Error)[], failures = 0) {
    const namespace = `${framework.name} ${answers.length} ${failures}`.replace(/\W+/g, '-');
    const core = semel(namespace);
    const terms = { transaction: transactions(failures), onError: () => undefined };
    const running: Running = await framework.start(core, terms, async (_order, ctx) => {
      const { tx } = ctx as AttemptContext;
      await (tx as pg.PoolClient).query(`INSERT INTO ${table} VALUES ($1)`, [namespace]);
      const answer = answers.shift() ?? { body: '{"done":true}' };
      if (answer instanceof Error) throw answer;
      return answer;
    });
    return {
      async post() {
        const headers = { 'content-type': 'application/json', 'idempotency-key': 'k', 'x-user': 'ann' };
        const response = await fetch(`${running.url}/orders`, { method: 'POST', headers, body: '{}' });
        await response.text();
        return response.status;
      },
      rows: async () => (await pool.query(`SELECT FROM ${table} WHERE id = $1`, [namespace])).rowCount,
      async [Symbol.asyncDispose]() {
        await running.close();
        await core.close();
      },
    };
  }

  test('what throws, or answers 5xx, is rolled back and leaves the key free', async () => {
    await using shop = await api([new Error('no'), { status: 502 }]);
    expect(await shop.post()).toBe(503);
    expect(await shop.post()).toBe(502);
    expect(await shop.rows()).toBe(0);
    expect([await shop.post(), await shop.post()]).toEqual([201, 201]);
    expect(await shop.rows()).toBe(1);
  });

  test('a transaction that is tried again lands once, now or at the next request', async () => {
    await using shop = await api([], 1);
    // Fastify sends a reply once, so the second try is refused.
    expect(await shop.post()).toBe(framework.name.startsWith('Fastify') ? 503 : 201);
    expect(await shop.post()).toBe(201);
    expect(await shop.rows()).toBe(1);
  });

  test('an answer below 500 commits, also a refusal; 401, 403 and 429 are rolled back', async () => {
    await using shop = await api([{ status: 429 }, { status: 409 }, { body: '{}' }]);
    expect(await shop.post()).toBe(429);
    expect(await shop.rows()).toBe(0);
    expect([await shop.post(), await shop.post()]).toEqual([409, 409]);
    expect(await shop.rows()).toBe(1);
  });

  test('two at once wait for each other, and one effect lands', async () => {
    await using shop = await api([{}]);
    const statuses = await Promise.all([shop.post(), shop.post()]);
    expect(statuses).toContain(201);
    for (const status of statuses) expect([201, 409]).toContain(status);
    expect(await shop.rows()).toBe(1);
  });
});

test('`transaction` must return what its work returned, and the message says so', async () => {
  const said: unknown[] = [];
  const commit = transactions(0);
  const post = idempotent(
    semel('forgot'),
    {
      name: 'orders.create',
      caller: 'anonymous',
      transaction: (async (work: (tx: unknown) => Promise<unknown>) => void (await commit(work))) as never,
      onError: (error) => said.push(error),
    },
    () => Response.json({}),
  );
  const request = new Request('https://shop.example/orders', {
    method: 'POST',
    headers: { 'idempotency-key': 'k' },
  });
  expect((await post(request)).status).toBe(500);
  const message = expect.stringContaining('Write transaction: (work) => db.transaction(work).');
  expect(said).toMatchObject([{ code: 'CONTRACT_INVALID', path: 'transaction', message }]);
});
