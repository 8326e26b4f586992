// Staged intents: they commit with the caller's data, and relays deliver each of them once.

import pg from 'pg';
import { createSemel, type Delivery, NotLanded, Rejected, type Semel, systemClock } from 'semel';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';
import { kinds } from './transaction-kinds.ts';

interface Mail {
  readonly to: string;
  readonly body?: string;
}

let url: string;
let schema: string;
let pool: pg.Pool;
let namespaces = 0;

beforeAll(async () => {
  ({ url, schema } = await ownSchema());
  pool = new pg.Pool({ connectionString: url, max: 20 });
  pool.on('error', () => {});
});
afterAll(() => pool.end());

function create(): Semel {
  namespaces += 1;
  return createSemel({
    store: postgresStore({ url, schema }),
    namespace: `outbox-${namespaces}`,
    prune: false,
  });
}

/** A tool that counts what it sends. */
function mailer(semel: Semel, send: (mail: Mail, attempt: number) => unknown = () => 'sent') {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    identity: ['to'],
    failureWindow: '1s',
    async run(mail: Mail) {
      sent.push(mail.to);
      return send(mail, sent.length);
    },
  });
  return { tool, sent };
}

async function transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

const rows = async ({ namespace }: Semel) =>
  (await pool.query(`SELECT * FROM ${schema}.outbox WHERE namespace = $1 ORDER BY n`, [namespace])).rows;

const sql = (text: string) => pool.query(text.replaceAll('semel.', `${schema}.`));

describe('staging', () => {
  test.each(kinds)(
    'through $name: commits with the transaction, and a rollback leaves nothing',
    async (kind) => {
      await using semel = create();
      const { tool, sent } = mailer(semel);
      const opened = await kind.open(url);
      const rolledBack = opened.transaction(async (tx) => {
        expect(await tool.stage(tx, { to: 'ada' })).toMatchObject({ status: 'staged' });
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      expect(await rows(semel)).toEqual([]);
      await opened.transaction((tx) => tool.stage(tx, { to: 'ada' }));
      await expect(tool.stage(opened.outside, { to: 'eve' })).rejects.toThrow(/Begin a transaction first/);
      expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
      expect(sent).toEqual(['ada']);
      expect(await rows(semel)).toEqual([]);
      await opened.end();
    },
  );

  test('ten stagings of one intent in ten transactions at once leave one row', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    const staged = await Promise.all(
      Array.from({ length: 10 }, () => transaction((tx) => tool.stage(tx, { to: 'ada' }))),
    );
    expect(staged.filter(({ status }) => status === 'staged')).toHaveLength(1);
    expect(await rows(semel)).toHaveLength(1);
    await semel.outbox.drain();
    expect(sent).toEqual(['ada']);
  });

  test("other identity args under a caller's key are a conflict in the caller's transaction", async () => {
    await using semel = create();
    const { tool } = mailer(semel);
    await transaction(async (tx) => {
      await tool.stage(tx, { to: 'ada' }, { key: 'order 7' });
      await expect(tool.stage(tx, { to: 'bob' }, { key: 'order 7' })).rejects.toMatchObject({
        code: 'KEY_CONFLICT',
      });
      // The transaction goes on.
      await tx.query('SELECT 1');
    });
    expect(await rows(semel)).toHaveLength(1);
    await semel.outbox.drain();
    await transaction(async (tx) => {
      await expect(tool.stage(tx, { to: 'bob' }, { key: 'order 7' })).rejects.toMatchObject({
        code: 'KEY_CONFLICT',
      });
    });
  });

  test('another wording is noted, and the first one is delivered', async () => {
    await using semel = create();
    const bodies: unknown[] = [];
    const { tool } = mailer(semel, ({ body }) => bodies.push(body));
    await transaction((tx) => tool.stage(tx, { to: 'ada', body: 'Hello' }));
    const again = await transaction((tx) => tool.stage(tx, { to: 'ada', body: 'Dear Ada' }));
    expect(again).toMatchObject({ status: 'staged before', drift: ['body'] });
    expect((await rows(semel))[0].drift).toBe('["body"]');
    await semel.outbox.drain();
    expect(bodies).toEqual(['Hello']);
  });

  test('what was delivered is not staged again, and a call made directly counts', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    await tool({ to: 'ada' });
    expect(await transaction((tx) => tool.stage(tx, { to: 'ada' }))).toMatchObject({ status: 'delivered' });
    expect(await rows(semel)).toEqual([]);
    expect(sent).toEqual(['ada']);
  });

  test('one that is staged and then called directly is done once', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    await tool({ to: 'ada' });
    // Its row went with the settlement: it cannot outlive the record.
    expect(await rows(semel)).toEqual([]);
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 0 });
    expect(sent).toEqual(['ada']);
  });

  test('a repeatable write is one of its own: a direct call leaves what is staged alone', async () => {
    await using semel = create();
    const written: string[] = [];
    const tool = semel.tool({
      name: 'setting.put',
      effect: 'write-idempotent',
      run: async ({ value }: { value: string }) => void written.push(value),
    });
    await transaction((tx) => tool.stage(tx, { value: 'a' }));
    await tool({ value: 'a' });
    await tool({ value: 'b' });
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(written).toEqual(['a', 'b', 'a']);
    expect(await rows(semel)).toEqual([]);
  });

  test('works at every isolation level', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    for (const level of ['REPEATABLE READ', 'SERIALIZABLE'])
      await transaction(async (tx) => {
        await tx.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
        await tool.stage(tx, { to: level });
      });
    await semel.outbox.drain();
    expect(sent).toHaveLength(2);
  });

  test('in another database is refused, with or without a copy of the ledger', async () => {
    await using semel = create();
    const { tool } = mailer(semel);
    await semel.open();
    const other = `copy_${schema}`;
    await pool.query(`CREATE DATABASE ${other}`);
    const otherUrl = url.replace(/\/[^/?]*(\?|$)/, `/${other}$1`);
    const there = new pg.Client(otherUrl);
    await there.connect();
    const refuse = async () => {
      await there.query('BEGIN');
      await expect(tool.stage(there, { to: 'ada' })).rejects.toMatchObject({
        code: 'STORE_UNSAFE',
        message: expect.stringMatching(/not in the database of the ledger/),
      });
      await there.query('ROLLBACK');
    };
    await refuse();
    await there.query(`CREATE SCHEMA ${schema}`);
    await refuse();
    await using copied = createSemel({
      store: postgresStore({ url: otherUrl, schema }),
      namespace: 'copied',
    });
    await copied.open();
    const { rows: meta } = await sql('SELECT incarnation FROM semel.meta');
    await there.query(`UPDATE ${schema}.meta SET incarnation = $1`, [meta[0].incarnation]);
    await refuse();
    await there.end();
    expect(await rows(semel)).toEqual([]);
  });

  test('of redacted args is refused: a relay could not run it', async () => {
    await using semel = create();
    const tool = semel.tool({
      name: 'login',
      effect: 'irreversible',
      per: 'ever',
      redact: ['password'],
      identity: ['user'],
      run: async (_args: { user: string; password: string }) => 1,
    });
    await transaction(async (tx) => {
      await expect(tool.stage(tx, { user: 'a', password: 'b' })).rejects.toMatchObject({
        code: 'CONTRACT_INVALID',
      });
    });
  });
});

describe('a relay', () => {
  test('reads as many rows as it takes, however many wait, and rewrites no index', async () => {
    await using semel = create();
    const { tool } = mailer(semel);
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    await pool.query(
      `INSERT INTO ${schema}.outbox (due, ready, staged, namespace, key, contract, version, call)
       SELECT due, ready, staged, namespace, key || i, contract, version, call
       FROM ${schema}.outbox, generate_series(1, 5000) AS i WHERE namespace = $1`,
      [semel.namespace],
    );
    await transaction(async (tx) => {
      const take = `SELECT * FROM ${schema}.take($1, '["mail.send"]', 10, 30000, false, 1000)`;
      expect((await tx.query(take, [semel.namespace])).rows).toHaveLength(10);
      const [counted] = (
        await tx.query(
          `SELECT idx_tup_fetch::int AS fetched, n_tup_hot_upd::int AS rewritten FROM pg_stat_xact_user_tables
           WHERE schemaname = $1 AND relname = 'outbox'`,
          [schema],
        )
      ).rows;
      // Once to find it, and once to write it.
      expect(counted.fetched).toBeLessThanOrEqual(30);
      expect(counted.rewritten).toBe(10);
    });
  });

  test('retries what did not land, with a growing pause, until it is dead with its reason', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel, () => {
      throw new NotLanded('the mail server is closed');
    });
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    const stop = new AbortController();
    const seen: Delivery['outcome'][] = [];
    await semel.outbox.relay({
      maxTries: 3,
      backoff: '5ms',
      signal: stop.signal,
      onDelivery({ outcome }) {
        seen.push(outcome);
        if (outcome === 'dead') stop.abort();
      },
    });
    expect(seen).toEqual(['retried later', 'retried later', 'dead']);
    expect(sent).toHaveLength(3);
    expect((await rows(semel))[0]).toMatchObject({
      state: 2,
      reason: expect.stringMatching(/server is closed/),
    });
    // A person may deliver it again.
    const { outboxOf } = await import('../../src/outbox/index.ts');
    const { engineOf } = await import('../../src/semel/index.ts');
    await outboxOf(engineOf(semel)).retry(Number((await rows(semel))[0].n));
    await semel.outbox.drain({ maxTries: 1 });
    expect(sent).toHaveLength(4);
  });

  test('a refusal of the target is dead at once', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel, () => {
      throw new Rejected('no such address');
    });
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    expect(await semel.outbox.drain()).toMatchObject({ dead: 1 });
    expect(sent).toHaveLength(1);
    // Nothing will deliver it: who stages it again must not take it for staged.
    expect(await transaction((tx) => tool.stage(tx, { to: 'ada' }))).toMatchObject({ status: 'dead' });
  });

  test('in doubt stays in doubt however often it is polled, and continues after a verdict', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel, (_mail, attempt) => {
      if (attempt === 1) throw new Error('socket hang up');
      return 'sent';
    });
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    expect(await semel.outbox.drain()).toMatchObject({ inDoubt: 1 });
    for (let n = 0; n < 3; n += 1) {
      await sql('UPDATE semel.outbox SET due = 0, ready = 0');
      expect(await semel.outbox.drain({ maxTries: 1 })).toMatchObject({ inDoubt: 1, dead: 0 });
    }
    expect(sent).toHaveLength(1);
    const [doubt] = (await semel.doubts.list()).items;
    await semel.doubts.resolve(doubt!.ref, 'notLanded', { force: true });
    await sql('UPDATE semel.outbox SET due = 0, ready = 0');
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(sent).toHaveLength(2);
  });

  test('delivers a group in order, and stops it at a row that is in doubt', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel, ({ to }) => {
      if (to === '3') throw new Error('socket hang up');
    });
    for (const to of ['1', '2', '3', '4', '5'])
      await transaction((tx) => tool.stage(tx, { to }, { group: 'a' }));
    await transaction((tx) => tool.stage(tx, { to: 'x' }, { group: 'b' }));
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 3, inDoubt: 1 });
    expect(sent.filter((to) => to !== 'x')).toEqual(['1', '2', '3']);
    expect(await semel.outbox.drain({ onBlocked: 'skip' })).toMatchObject({ delivered: 2 });
    expect(sent.filter((to) => to !== 'x')).toEqual(['1', '2', '3', '4', '5']);
  });

  test('a strict group has the order of the commits', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    const group = { name: 'a', strict: true };
    const first = await pool.connect();
    await first.query('BEGIN');
    await tool.stage(first, { to: '1' }, { group });
    const second = transaction((tx) => tool.stage(tx, { to: '2' }, { group }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await rows(semel)).toEqual([]);
    await first.query('COMMIT');
    first.release();
    await second;
    await semel.outbox.drain();
    expect(sent).toEqual(['1', '2']);
  });

  test('an `onDelivery` that throws ends neither the relay nor the process', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    for (const to of ['a', 'b', 'c']) await transaction((tx) => tool.stage(tx, { to }));
    const onDelivery = () => {
      throw new Error('the log is full');
    };
    expect(await semel.outbox.drain({ onDelivery })).toMatchObject({ delivered: 3 });
    expect(sent.toSorted()).toEqual(['a', 'b', 'c']);
  });

  test.each([{ concurrency: 0 }, { maxTries: 1.5 }, { onBlock: 'skip' }])(
    'a relay refuses %j',
    async (options) => {
      await using semel = create();
      await expect(semel.outbox.drain(options as never)).rejects.toThrow(
        /whole number from 1|there is no field/,
      );
    },
  );

  test('a misspelt option is refused: it would be delivered at once', async () => {
    await using semel = create();
    const { tool } = mailer(semel);
    const staging = transaction((tx) => tool.stage(tx, { to: 'x' }, { notbefore: Date.now() } as never));
    await expect(staging).rejects.toThrow('Did you mean `notBefore`?');
  });

  test('respects notBefore, and what comes too late is dead', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    await transaction((tx) => tool.stage(tx, { to: 'later' }, { notBefore: Date.now() + 3_600_000 }));
    await transaction((tx) => tool.stage(tx, { to: 'late' }, { notAfter: Date.now() - 1 }));
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 0, dead: 1 });
    expect(sent).toEqual([]);
    await sql('UPDATE semel.outbox SET due = 0, ready = 0 WHERE state = 0');
    await semel.outbox.drain();
    expect(sent).toEqual(['later']);
  });

  test('eight relays deliver three hundred rows, each once', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    const others = Array.from({ length: 7 }, () =>
      createSemel({ store: postgresStore({ url, schema }), namespace: semel.namespace, prune: false }),
    );
    const tools = others.map((other) => mailer(other));
    await transaction(async (tx) => {
      for (let n = 0; n < 300; n += 1) await tool.stage(tx, { to: String(n) });
    });
    await Promise.all([semel, ...others].map((each) => each.outbox.drain({ concurrency: 32 })));
    const all = [...sent, ...tools.flatMap((each) => each.sent)];
    expect(new Set(all).size).toBe(300);
    expect(all).toHaveLength(300);
    expect(await rows(semel)).toEqual([]);
    await Promise.all(others.map((each) => each.close()));
  });

  test('a row whose effect was started is never run again once its record is gone', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel);
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    const [row] = await rows(semel);
    await semel.outbox.drain();
    // The relay died before it removed the row; the window ended over a long weekend, and the record was pruned.
    await pool.query(
      `INSERT INTO ${schema}.outbox (due, ready, staged, namespace, key, contract, version, call, generation)
       VALUES (0, 0, $1, $2, $3, $4, $5, $6, 1)`,
      [row.staged, row.namespace, row.key, row.contract, row.version, row.call],
    );
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(sent).toEqual(['ada']);
    await pool.query(
      `INSERT INTO ${schema}.outbox (due, ready, staged, namespace, key, contract, version, call, generation)
       VALUES (0, 0, $1, $2, $3, $4, $5, $6, 1)`,
      [row.staged, row.namespace, row.key, row.contract, row.version, row.call],
    );
    await sql(`DELETE FROM semel.records WHERE namespace = '${row.namespace}'`);
    await sql('UPDATE semel.meta SET floor = 1000');
    await using fresh = createSemel({ store: postgresStore({ url, schema }), namespace: semel.namespace });
    const other = mailer(fresh);
    expect(await fresh.outbox.drain()).toMatchObject({ inDoubt: 1, delivered: 0 });
    expect([...sent, ...other.sent]).toEqual(['ada']);
    expect((await rows(semel))[0].reason).toMatch(/its record is gone/);
  });

  test('what a person gives up is dead at once, and does not run when its record is gone', async () => {
    await using semel = create();
    const { tool, sent } = mailer(semel, () => {
      throw new Error('socket hang up');
    });
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    await semel.outbox.drain();
    const [doubt] = (await semel.doubts.list()).items;
    await semel.doubts.resolve(doubt!.ref, { abandon: 'nobody can tell' });
    expect((await rows(semel))[0]).toMatchObject({ state: 2, reason: expect.stringMatching(/semel show/) });
    expect(sent).toHaveLength(1);
  });

  test('a relay that stood still before it started leaves the row to others', async () => {
    namespaces += 1;
    const namespace = `outbox-${namespaces}`;
    const store = postgresStore({ url, schema });
    let sleptMs = 0;
    const take: NonNullable<typeof store.outbox>['take'] = async (query) => {
      const taken = await store.outbox!.take(query);
      if (taken.length > 0) sleptMs += 31_000;
      return taken;
    };
    await using semel = createSemel({
      store: { ...store, outbox: { ...store.outbox!, take } },
      clock: { ...systemClock, now: () => Date.now() + sleptMs },
      namespace,
      prune: false,
    });
    const { tool, sent } = mailer(semel);
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 0, retried: 1 });
    expect(sent).toEqual([]);
    expect(await rows(semel)).toHaveLength(1);
  });

  test('a loan is kept while it is held, and what an earlier one says is void', async () => {
    await using semel = create();
    const { tool } = mailer(semel);
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    const { outbox } = postgresStore({ url, schema });
    const query = { namespace: semel.namespace, contracts: ['mail.send'], limit: 1, skipBlocked: false };
    const [first] = await outbox!.take({ ...query, holdMs: 10 });
    await expect.poll(() => outbox!.take({ ...query, holdMs: 60_000 })).toHaveLength(1);
    const dead = { state: 'dead', waitMs: 0, reason: 'used up', isSpent: false } as const;
    await outbox!.putBack({ n: first!.n, dueAt: first!.dueAt, ...dead });
    expect(await outbox!.keep([first!], 60_000)).toMatchObject({ kept: [] });
    const [second] = await outbox!.list({ namespace: semel.namespace, limit: 1 });
    expect(second).toMatchObject({ state: 'waiting' });
    const { dueAt, kept } = await outbox!.keep([second!], 120_000);
    expect(kept).toEqual([second!.n]);
    await outbox!.putBack({ n: second!.n, dueAt: second!.dueAt, ...dead });
    expect((await rows(semel))[0]).toMatchObject({ state: 0 });
    await outbox!.putBack({ n: second!.n, dueAt, ...dead });
    expect((await rows(semel))[0]).toMatchObject({ state: 2 });
  });

  test("a caller's open transaction that noted a drift holds up nobody's settlement", async () => {
    await using semel = create();
    const open = await pool.connect();
    await open.query('BEGIN');
    const { tool, sent } = mailer(semel, () => tool.stage(open, { to: 'ada', body: 'Dear Ada' }));
    await transaction((tx) => tool.stage(tx, { to: 'ada', body: 'Hello' }));
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
    await open.query('COMMIT');
    open.release();
    // The row was locked, so it is still there; its record says that it was delivered.
    await sql('UPDATE semel.outbox SET due = 0, ready = 0');
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(await rows(semel)).toEqual([]);
    expect(sent).toEqual(['ada']);
  });

  test('another major version leaves the row to a relay that has it', async () => {
    await using semel = create();
    const { sent } = mailer(semel);
    const { namespace } = semel;
    await using newer = createSemel({ store: postgresStore({ url, schema }), namespace, prune: false });
    const terms = { effect: 'irreversible', per: 'ever', identity: ['to'], version: '2.0.0' } as const;
    const tool = newer.tool({ name: 'mail.send', ...terms, run: async (_: Mail) => 'sent' });
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    expect(await semel.outbox.drain()).toMatchObject({ retried: 1 });
    expect(sent).toEqual([]);
    expect((await rows(semel))[0]).toMatchObject({ state: 0, tries: 0 });
  });

  test('waits for more rows after a partial batch, and polls at once after a full one', async () => {
    const drain = async (concurrency: number) => {
      namespaces += 1;
      const log: string[] = [];
      const store = postgresStore({ url, schema });
      const take: NonNullable<typeof store.outbox>['take'] = async (query) => {
        const taken = await store.outbox!.take(query);
        log.push(`took ${taken.length}`);
        return taken;
      };
      await using semel = createSemel({
        store: { ...store, outbox: { ...store.outbox!, take } },
        clock: {
          ...systemClock,
          setTimeout(run, ms, background) {
            // Heartbeats and timeouts of calls take longer.
            if (ms < 100) log.push('rested');
            return systemClock.setTimeout(run, ms, background);
          },
        },
        namespace: `outbox-${namespaces}`,
        prune: false,
      });
      const { tool } = mailer(semel);
      for (const to of ['ada', 'bob']) await transaction((tx) => tool.stage(tx, { to }));
      await semel.outbox.drain({ concurrency });
      return log;
    };
    expect((await drain(16)).slice(0, 2)).toEqual(['took 2', 'rested']);
    expect((await drain(1)).slice(0, 3)).toEqual(['took 1', 'took 1', 'took 0']);
  });

  test('wakes soon after a staging in its process, and stops gracefully', async () => {
    await using semel = create();
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { tool, sent } = mailer(semel, () => gate);
    const stop = new AbortController();
    const relaying = semel.outbox.relay({ signal: stop.signal, idle: '1h' });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await transaction((tx) => tool.stage(tx, { to: 'ada' }));
    await expect.poll(() => sent).toEqual(['ada']);
    stop.abort();
    finish();
    expect(await relaying).toMatchObject({ delivered: 1 });
    expect(await rows(semel)).toEqual([]);
  });
});

test('a ledger with staged intents is not sealed', async () => {
  const own = await ownSchema();
  const store = postgresStore({ url: own.url, schema: own.schema });
  await using semel = createSemel({ store, namespace: 'a' });
  const { tool } = mailer(semel);
  await transaction((tx) => tool.stage(tx, { to: 'ada' }));
  await expect(store.raw?.seal('postgres://elsewhere')).rejects.toThrow(
    /staged intents.*Deliver them first/s,
  );
  await semel.outbox.drain();
  await store.raw?.seal('postgres://elsewhere');
  await expect(transaction((tx) => tool.stage(tx, { to: 'bob' }))).rejects.toMatchObject({
    code: 'STORE_MOVED',
  });
});
