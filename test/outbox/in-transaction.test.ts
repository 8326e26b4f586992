// An effect and its record that commit with the caller's transaction, through every kind of transaction.

import pg from 'pg';
import { createSemel, NotLanded, type SemelError } from 'semel';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';
import { kinds, type Opened } from './transaction-kinds.ts';

interface Order {
  readonly id: string;
  readonly cents: number;
}

let url: string;
let schema: string;
let pool: pg.Pool;

beforeAll(async () => {
  ({ url, schema } = await ownSchema());
  pool = new pg.Pool({ connectionString: url, max: 6 });
  pool.on('error', () => {});
  await pool.query(`CREATE TABLE ${schema}.orders (id text, cents integer, by text)`);
});

afterAll(() => pool.end());

const orders = async (id: string) =>
  (await pool.query(`SELECT cents FROM ${schema}.orders WHERE id = $1`, [id])).rows.map((row) => row.cents);

describe.each(kinds)('$name', ({ name, open, send }) => {
  let opened: Opened;
  const semel = () =>
    createSemel({ store: postgresStore({ url, schema }), namespace: name.replace(/\W+/g, '-') });
  const insert = (tx: unknown, { id, cents }: Order) =>
    send(tx as never, `INSERT INTO ${schema}.orders VALUES ('${name} ${id}', ${cents})`);
  const place = (
    core: ReturnType<typeof semel>,
    more: (order: Order, tx: unknown) => unknown = () => 'placed',
  ) =>
    core.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      identity: ['id'],
      async run(order: Order, ctx) {
        await insert(ctx.tx, order);
        return more(order, ctx.tx);
      },
    });

  beforeAll(async () => {
    opened = await open(url);
  });
  afterAll(() => opened.end());

  const call = async (core: ReturnType<typeof semel>, tx: unknown, order: Order, tool = place(core)) => {
    const result = await tool.inTransaction.try(tx, order);
    if (result.ok) return result;
    throw result.error;
  };

  test('effect and record commit together, and a second transaction replays', async () => {
    await using core = semel();
    const first = await opened.transaction((tx) => call(core, tx, { id: 'a', cents: 5 }));
    expect(first).toMatchObject({ value: 'placed', receipt: { executed: true, uncommitted: true } });
    const second = await opened.transaction((tx) => call(core, tx, { id: 'a', cents: 5 }));
    expect(second).toMatchObject({ value: 'placed', receipt: { executed: false, replayed: true } });
    // An ordinary call knows it too.
    expect(await place(core)({ id: 'a', cents: 5 })).toBe('placed');
    expect(await orders(`${name} a`)).toEqual([5]);
  });

  test('a rollback leaves neither effect nor record, and the same call runs again', async () => {
    await using core = semel();
    const rolledBack = opened.transaction(async (tx) => {
      await call(core, tx, { id: 'b', cents: 1 });
      throw new Error('out of stock');
    });
    await expect(rolledBack).rejects.toThrow('out of stock');
    expect(await orders(`${name} b`)).toEqual([]);
    expect((await core.records.list({ contract: 'order.place' })).items.map(({ key }) => key)).not.toContain(
      'b',
    );
    const again = await opened.transaction((tx) => call(core, tx, { id: 'b', cents: 2 }));
    expect(again.receipt.executed).toBe(true);
    expect(await orders(`${name} b`)).toEqual([2]);
  });

  test('what `run` throws comes out as it is, and nothing of it stays if the caller commits', async () => {
    await using core = semel();
    const broken = new Error('the template is broken');
    const failing = place(core, () => {
      throw broken;
    });
    await opened.transaction(async (tx) => {
      await insert(tx, { id: 'c-before', cents: 1 });
      await expect(call(core, tx, { id: 'c', cents: 1 }, failing)).rejects.toBe(broken);
      await insert(tx, { id: 'c-after', cents: 1 });
    });
    expect(await orders(`${name} c`)).toEqual([]);
    expect(await orders(`${name} c-before`)).toEqual([1]);
    expect(await orders(`${name} c-after`)).toEqual([1]);
    await opened.transaction((tx) => call(core, tx, { id: 'c', cents: 3 }));
    expect(await orders(`${name} c`)).toEqual([3]);
  });

  test('a statement of `run` that the database refuses does not spoil the transaction', async () => {
    await using core = semel();
    const failing = place(core, (_order, tx) => send(tx as never, 'SELECT 1 / 0'));
    await opened.transaction(async (tx) => {
      await expect(call(core, tx, { id: 'd', cents: 1 }, failing)).rejects.toThrow();
      await insert(tx, { id: 'd-after', cents: 1 });
    });
    expect(await orders(`${name} d`)).toEqual([]);
    expect(await orders(`${name} d-after`)).toEqual([1]);
  });

  test('without an open transaction it is refused, and says what to do', async () => {
    await using core = semel();
    const refused = call(core, opened.outside, { id: 'e', cents: 1 });
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGS' });
    await expect(refused).rejects.toThrow(/Begin a transaction first/);
    expect(await orders(`${name} e`)).toEqual([]);
  });

  test('of eight transactions at once with one key, one runs and the others replay', async () => {
    await using core = semel();
    const results = await Promise.all(
      Array.from({ length: 8 }, () => opened.transaction((tx) => call(core, tx, { id: 'f', cents: 7 }))),
    );
    expect(results.filter(({ receipt }) => receipt.executed)).toHaveLength(1);
    expect(await orders(`${name} f`)).toEqual([7]);
  });
});

describe('the rules of every call hold inside a transaction', () => {
  const connected = async () => {
    const client = new pg.Client(url);
    await client.connect();
    return client;
  };
  const create = (namespace: string) => createSemel({ store: postgresStore({ url, schema }), namespace });
  const pay = (
    core: ReturnType<typeof create>,
    run: (ctx: { readonly tx?: unknown }) => unknown = () => 'paid',
  ) =>
    core.tool({
      name: 'pay',
      effect: 'irreversible',
      per: 'ever',
      identity: ['id'],
      run: async (_args: { id: string; note?: string }, ctx) => run(ctx),
    });
  const refusal = (calling: Promise<{ readonly ok: boolean; readonly error?: SemelError }>) =>
    calling.then(
      (result) => (result.ok ? expect.unreachable() : result.error),
      (error: SemelError) => error,
    );

  test('a record in doubt is not run, and stays as it is', async () => {
    await using core = create('doubt');
    const lost = pay(core, () => {
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    });
    await expect(lost({ id: '1' })).rejects.toMatchObject({ code: 'IN_DOUBT' });
    const client = await connected();
    await client.query('BEGIN');
    expect(await refusal(lost.inTransaction.try(client, { id: '1' }))).toMatchObject({ code: 'IN_DOUBT' });
    // The transaction goes on.
    await client.query('SELECT 1');
    await client.query('COMMIT');
    await client.end();
    expect(await core.doubts.list()).toMatchObject({ items: [{ contract: 'pay' }] });
  });

  test('a call that runs elsewhere is IN_FLIGHT at once, and the caller does not wait in its transaction', async () => {
    await using core = create('busy');
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let started = (): void => {};
    const running = new Promise<void>((resolve) => {
      started = resolve;
    });
    const slow = pay(core, async () => {
      started();
      await gate;
      return 'paid';
    });
    const elsewhere = slow({ id: '1' });
    await running;
    const client = await connected();
    await client.query('BEGIN');
    expect(await refusal(slow.inTransaction.try(client, { id: '1' }))).toMatchObject({ code: 'IN_FLIGHT' });
    await client.query('ROLLBACK');
    await client.end();
    finish();
    expect(await elsewhere).toBe('paid');
  });

  test("a caller's own key with other args is a conflict in the caller's transaction", async () => {
    await using core = create('conflict');
    const tool = pay(core);
    await tool({ id: '1' }, { key: 'k' });
    const client = await connected();
    await client.query('BEGIN');
    const error = await refusal(tool.inTransaction.try(client, { id: '2' }, { key: 'k' }));
    expect(error).toMatchObject({ code: 'KEY_CONFLICT' });
    await client.query('COMMIT');
    await client.end();
  });

  test('nothing uncommitted gets into the cache of the process', async () => {
    await using core = create('cache');
    let runs = 0;
    const tool = pay(core, () => ++runs);
    const client = await connected();
    await client.query('BEGIN');
    expect(await tool.inTransaction.try(client, { id: '1' })).toMatchObject({ value: 1 });
    await client.query('ROLLBACK');
    await client.end();
    expect(await tool({ id: '1' })).toBe(2);
  });

  test('an ordinary call meanwhile does not run, and replays after the commit', async () => {
    await using core = create('meanwhile');
    let runs = 0;
    const tool = pay(core, () => ++runs);
    const client = await connected();
    await client.query('BEGIN');
    await tool.inTransaction.try(client, { id: '1' });
    const meanwhile = tool({ id: '1' });
    await new Promise((resolve) => setTimeout(resolve, 300));
    await client.query('COMMIT');
    await client.end();
    expect(await meanwhile).toBe(1);
    expect(runs).toBe(1);
  });

  test('other calls of the process continue while a transaction holds a key', async () => {
    await using core = create('strangers');
    const tool = pay(core);
    const client = await connected();
    await client.query('BEGIN');
    await tool.inTransaction.try(client, { id: 'held' });
    const held = tool({ id: 'held' });
    await Promise.all(Array.from({ length: 50 }, (_, n) => tool({ id: `free ${n}` })));
    await client.query('COMMIT');
    await client.end();
    expect(await held).toBe('paid');
  });

  test("the caller's lock_timeout is left as it was, and bounds the wait for another transaction", async () => {
    await using core = create('locks');
    const tool = pay(core);
    const [one, two] = [await connected(), await connected()];
    await one.query('BEGIN');
    await tool.inTransaction.try(one, { id: '1' });
    await two.query('BEGIN');
    await two.query("SET LOCAL lock_timeout = '80ms'");
    expect(await refusal(tool.inTransaction.try(two, { id: '1' }))).toMatchObject({ code: 'IN_FLIGHT' });
    expect((await two.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '80ms' }]);
    await tool.inTransaction.try(two, { id: '2' });
    expect((await two.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '80ms' }]);
    await one.query('ROLLBACK');
    await two.query('COMMIT');
    expect((await one.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '0' }]);
    await Promise.all([one.end(), two.end()]);
  });

  test('a commit is durable even where the session does not wait for the disk', async () => {
    await using core = create('sync');
    const client = await connected();
    await client.query('SET synchronous_commit = off');
    await client.query('BEGIN');
    await pay(core).inTransaction.try(client, { id: '1' });
    expect((await client.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }]);
    await client.query('COMMIT');
    await client.end();
  });

  test('another isolation level is refused before anything is written', async () => {
    await using core = create('isolation');
    const client = await connected();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    const error = await refusal(pay(core).inTransaction.try(client, { id: '1' }));
    expect(error).toMatchObject({ code: 'STORE_UNSAFE' });
    expect(error?.message).toMatch(/repeatable read.*Begin it at isolation level read committed/s);
    await client.query('ROLLBACK');
    await client.end();
  });

  test('a transaction in another database is refused, even one restored from a backup of this one', async () => {
    await using core = create('elsewhere');
    await core.open();
    const other = `copy_${schema}`;
    await pool.query(`CREATE DATABASE ${other}`);
    const there = new pg.Client(url.replace(/\/[^/?]*(\?|$)/, `/${other}$1`));
    await there.connect();
    await there.query('BEGIN');
    const absent = await refusal(pay(core).inTransaction.try(there, { id: '1' }));
    expect(absent).toMatchObject({ code: 'STORE_UNSAFE' });
    await there.query('ROLLBACK');
    await there.query(`CREATE SCHEMA ${schema}`);
    const copied = createSemel({
      store: postgresStore({ url: url.replace(/\/[^/?]*(\?|$)/, `/${other}$1`), schema }),
      namespace: 'elsewhere',
    });
    await copied.open();
    const { rows } = await pool.query(`SELECT incarnation FROM ${schema}.meta`);
    await there.query(`UPDATE ${schema}.meta SET incarnation = $1`, [rows[0].incarnation]);
    await there.query('BEGIN');
    const error = await refusal(pay(core).inTransaction.try(there, { id: '1' }));
    expect(error?.message).toMatch(/not in the database of the ledger/);
    await there.query('ROLLBACK');
    await copied.close();
    await there.end();
  });

  test('calls on one transaction come one after the other, also from inside a run', async () => {
    await using core = create('order');
    await using other = create('order-2');
    const client = await connected();
    const inner = core.tool({
      name: 'inner',
      effect: 'write-non-idempotent',
      per: 'ever',
      run: async ({ n }: { n: number }) => n,
    });
    const outer = pay(core, async ({ tx }) => {
      const results = await Promise.all([1, 2].map((n) => inner.inTransaction.try(tx, { n })));
      return results.map((result) => result.ok && result.value);
    });
    await client.query('BEGIN');
    const results = await Promise.all([
      outer.inTransaction.try(client, { id: '1' }),
      pay(other).inTransaction(client, { id: '2' }),
      inner.inTransaction.try(client, { n: 3 }),
    ]);
    await client.query('COMMIT');
    await client.end();
    expect(results[0]).toMatchObject({ value: [1, 2] });
    expect(results[2]).toMatchObject({ value: 3 });
    expect(await inner({ n: 2 })).toBe(2);
  });

  test('a deadlock comes out as it is: the whole transaction is to be retried', async () => {
    await using core = create('deadlock');
    await pool.query(`INSERT INTO ${schema}.orders VALUES ('x', 0), ('y', 0)`);
    const touch = (client: pg.Client, id: string) =>
      client.query(`UPDATE ${schema}.orders SET cents = cents + 1 WHERE id = $1`, [id]);
    const [one, two] = [await connected(), await connected()];
    await Promise.all([one.query('BEGIN'), two.query('BEGIN')]);
    await touch(one, 'x');
    await touch(two, 'y');
    const cross = (client: pg.Client, id: string) => pay(core, () => touch(client, id).then(() => 'ok'));
    const run = (client: pg.Client, id: string) =>
      cross(client, id)
        .inTransaction.try(client, { id })
        .finally(() => client.query('ROLLBACK'));
    const ends = await Promise.allSettled([run(one, 'y'), run(two, 'x')]);
    const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.code] : []));
    expect(errors).toEqual(['40P01']);
    await Promise.all([one.end(), two.end()]);
  });
});

test('a call from inside one on another handle, back on the first, does not wait for itself', async () => {
  const { inOrder } = await import('../../src/outbox/in-order.ts');
  const [tx, savepoint] = [{}, {}];
  const innermost = () => inOrder(tx, async () => 'done');
  expect(await inOrder(tx, () => inOrder(savepoint, innermost))).toBe('done');
});

test('an error whose causes go in a circle ends the call', async () => {
  await using core = createSemel({ store: postgresStore({ url, schema }), namespace: 'circle' });
  const tool = core.tool({ name: 'x', effect: 'write-non-idempotent', per: 'ever', run: async () => 1 });
  const circle = new Error('proxy lost');
  circle.cause = new Error('again', { cause: circle });
  const query = async (text: string) => {
    if (/^SELECT/.test(text)) throw circle;
    return { rows: [] };
  };
  // Without an end, this would never return.
  await expect(tool.inTransaction.try({ query }, {})).rejects.toThrow('proxy lost');
});

test('a pool or an address as the store is enough', async () => {
  for (const store of [pool, `${url}?schema=${schema}`]) {
    await using core = createSemel({ store, namespace: 'as-given' });
    const tool = core.tool({ name: 'x', effect: 'write-non-idempotent', per: 'ever', run: async () => 1 });
    const client = await pool.connect();
    await client.query('BEGIN');
    expect(await tool.inTransaction(client, {})).toBe(1);
    await client.query('ROLLBACK');
    client.release();
  }
});

test('a store without transactions refuses, and a value that is not a transaction is named', async () => {
  await using memory = createSemel({ store: 'memory:', namespace: 'a' });
  const tool = memory.tool({ name: 'x', effect: 'write-non-idempotent', per: 'ever', run: async () => 1 });
  await expect(tool.inTransaction.try({}, {})).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
  await using core = createSemel({ store: postgresStore({ url, schema }), namespace: 'shape' });
  const other = core.tool({ name: 'x', effect: 'write-non-idempotent', per: 'ever', run: async () => 1 });
  for (const tx of [undefined, null, 'BEGIN', 7, {}, { query: 'text' }])
    await expect(other.inTransaction.try(tx, {})).rejects.toThrow(/not a transaction that semel knows/);
});

describe('a `run` that ends the transaction itself', () => {
  test.each(['COMMIT', 'ROLLBACK', 'COMMIT; BEGIN', 'ROLLBACK; BEGIN'])(
    'by %s: is reported neither as done nor as not run, and nothing is recorded as done',
    async (ends) => {
      await using core = createSemel({ store: postgresStore({ url, schema }), namespace: 'ends' });
      const order = { id: `ends ${ends}`, cents: 1 };
      let first: 'refuse' | 'end' | 'run' = 'refuse';
      const tool = core.tool({
        name: 'order.place',
        effect: 'write-non-idempotent',
        per: 'ever',
        identity: ['id'],
        async run({ id, cents }: Order, ctx) {
          if (first === 'refuse') throw new NotLanded('the shop is closed');
          const tx = (ctx.tx ?? pool) as pg.ClientBase;
          await tx.query(`INSERT INTO ${schema}.orders VALUES ($1, $2)`, [id, cents]);
          if (first === 'end') for (const each of ends.split('; ')) await tx.query(each);
          return 'placed';
        },
      });
      // An earlier attempt left a record: a success that is reported to it late would count.
      await tool.try(order);
      first = 'end';
      const client = await pool.connect();
      await client.query('BEGIN');
      const told = await tool.inTransaction.try(client, order).catch((error: SemelError) => ({ error }));
      await client.query('COMMIT');
      client.release();
      expect(told).toMatchObject({
        error: { code: 'STORE_UNSAFE', message: expect.stringContaining("ended its caller's transaction") },
      });
      first = 'run';
      const isCommitted = ends.startsWith('COMMIT');
      expect(await orders(order.id)).toEqual(isCommitted ? [1] : []);
      // What was undone runs, and what was committed is not repeated.
      const later = await tool.try(order, { signal: AbortSignal.timeout(2_000) });
      expect(later.ok).toBe(!isCommitted);
      expect(await orders(order.id)).toEqual([1]);
    },
  );
});

test("a `run` that rolls back to its caller's savepoint is not told as done", async () => {
  await using core = createSemel({ store: postgresStore({ url, schema }), namespace: 'undoes' });
  const order = { id: 'undone', cents: 1 };
  let isUndone = true;
  const tool = core.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['id'],
    async run({ id, cents }: Order, ctx) {
      const tx = (ctx.tx ?? pool) as pg.ClientBase;
      await tx.query(`INSERT INTO ${schema}.orders VALUES ($1, $2)`, [id, cents]);
      if (isUndone) await tx.query('ROLLBACK TO SAVEPOINT mine');
      return 'placed';
    },
  });
  const client = await pool.connect();
  await client.query('BEGIN; SAVEPOINT mine');
  await expect(tool.inTransaction.try(client, order)).rejects.toMatchObject({
    code: 'STORE_UNSAFE',
    message: expect.stringContaining('which undid its claim and its effect'),
  });
  await client.query('ROLLBACK');
  client.release();
  isUndone = false;
  expect((await tool.try(order)).ok).toBe(true);
  expect(await orders(order.id)).toEqual([1]);
});
