// Records in Postgres and Redis that were changed behind semel's back: what is damaged is refused by its name and for good,
// and the others go on: calls, lists, retention.
import { Redis } from 'ioredis';
import pg from 'pg';
import { createSemel, type Semel } from 'semel';
import { postgresStore } from 'semel/postgres';
import { redisStore } from 'semel/redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Store } from '../../src/store/index.ts';
import type { Raw } from '../../src/store/move/raw.ts';
import { claimRequest, take, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';

const keyOf = (nth: number) => `mail.send/=${nth}`;
const refusal = { code: 'STORE_UNSAFE', retriable: false };

/** Ten records that have ended, of which the first two may go at once; and one that is running. */
async function fill(store: Store): Promise<void> {
  const goes = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
  for (let nth = 0; nth < 10; nth += 1)
    await (await take(store, { key: keyOf(nth), ...(nth < 2 ? { retention: goes } : {}) })).succeed(
      `"${nth}"`,
    );
  await take(store, { key: 'mail.send/=running' });
}

async function keysOf(store: Store, limit: number, about = {}) {
  const keys: string[] = [];
  const damaged: string[] = [];
  for (let after: string | undefined; ; ) {
    const from = after === undefined ? {} : { after };
    const page = await store.list({ namespace: theNamespace, limit, ...about, ...from });
    keys.push(...page.items.map(({ key }) => key));
    damaged.push(...(page.damaged ?? []).map(({ key }) => key));
    if (page.next === undefined) return { keys, damaged };
    after = page.next;
  }
}

/** A tool over this store, and how often it ran. */
function toolOver(store: Store) {
  const said: string[] = [];
  const semel: Semel = createSemel({
    store,
    namespace: theNamespace,
    prune: false,
    cache: false,
    onWarning: (message) => said.push(message),
  });
  return { semel, said };
}

describe('in Postgres', () => {
  let pool: pg.Pool;
  let schemas = 0;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: inject('postgresUrl'), max: 4 });
  });
  afterAll(() => pool?.end());

  async function ledger() {
    schemas += 1;
    const schema = `damage_${process.pid}_${schemas}`;
    const store = postgresStore({ client: pool, schema });
    await fill(store);
    await store.close();
    const sql = (text: string) => pool.query(text.replaceAll('semel.', `${schema}.`));
    return { store: postgresStore({ client: pool, schema }), sql };
  }

  const columns =
    'fence, created, expires, settled, sum, status, flags, token, version, owner, args, content, result, asker, more';
  const kinds: Record<string, string> = {
    'a status that is none': 'status = 9',
    'another status': 'status = 3',
    'open again': 'status = 0',
    'another value': `result = '"9"'`,
    'no value': 'result = NULL',
    'another instant': 'settled = settled + 1',
    'another expiry': 'expires = 1',
    'a link to another': `more = '{"movedTo":["mail.send/=5"]}'`,
    'another holder': "token = '\\x0123456789abcdef'",
    'another checksum': 'sum = sum + 1',
    'that of another': `(${columns}) = (SELECT ${columns} FROM semel.records WHERE key = 'mail.send/=5')`,
    'what should be JSON': "more = '{'",
    'links that are no list': `more = '{"movedTo":7}'`,
    'a link to nothing': `more = '{"movedTo":[]}'`,
    'numbers that are none': `more = '{"generation":"x"}'`,
    'an error that is none': `more = '{"error":7}'`,
    'who asked': "asker = '{}'",
    'an instant beyond all dates': 'created = 9223372036854775000',
    'a fence that no number holds': 'fence = 9223372036854775807',
  };

  test.each(Object.entries(kinds))('a record is refused where it was changed: %s', async (_, change) => {
    const { store, sql } = await ledger();
    await sql(`UPDATE semel.records SET ${change} WHERE key IN ('${keyOf(3)}', '${keyOf(7)}')`);
    const asked = await Promise.allSettled([2, 3, 4].map((nth) => take(store, { key: keyOf(nth) })));
    expect(asked[1]).toMatchObject({ reason: { ...refusal, evidence: { key: keyOf(3) } } });
    for (const nth of [2, 3]) {
      const read = store.read(theNamespace, keyOf(nth));
      if (nth === 2) expect((await read)?.result?.text).toBe('"2"');
      else await expect(read).rejects.toMatchObject(refusal);
    }
    const whole = await keysOf(store, 100);
    expect([whole.keys.length, whole.damaged]).toEqual([9, [keyOf(3), keyOf(7)]]);
    expect(await keysOf(store, 3)).toEqual(whole);
    expect(await keysOf(store, 1, { inDoubt: false })).toEqual({
      keys: whole.keys,
      damaged: [keyOf(3), keyOf(7)],
    });
    await store.close();
  });

  test.each(['status = 9', 'status = 3', `result = '"another"'`, `more = '{"movedTo":["refund/=2"]}'`])(
    'a call for it does not wait, run, replay or say that it may be called again: %s',
    async (change) => {
      const { store, sql } = await ledger();
      const { semel, said } = toolOver(store);
      let runs = 0;
      const once = () =>
        semel.once('refund', { id: 1 }, { per: 'ever' }, () => {
          runs += 1;
          return 'done';
        });
      await once();
      await sql(`UPDATE semel.records SET ${change} WHERE key LIKE 'refund/%'`);
      await expect(once()).rejects.toMatchObject(refusal);
      expect((await semel.records.list({ contract: 'refund' })).damaged).toHaveLength(1);
      expect([runs, said.filter((sentence) => /refund.* cannot be read/.test(sentence)).length]).toEqual([
        1, 1,
      ]);
      await semel.close();
      await store.close();
    },
  );

  test.each([
    "more = '{'",
    `more = '{"lease":["store","soon"]}'`,
    `more = '{"lease":["store",1],"updated":"x"}'`,
  ])('one does not end retention for the others: %s', async (change) => {
    const { store, sql } = await ledger();
    await sql(`UPDATE semel.records SET flags = 0, ${change} WHERE status = 0`);
    await sql(`UPDATE semel.records SET asker = '{' WHERE key = '${keyOf(0)}'`);
    expect(await store.prune(100)).toBe(1);
    expect(await store.read(theNamespace, keyOf(1))).toBeUndefined();
    expect(await store.countExpired()).toBe(0);
    await store.close();
  });

  test('one is left out of the records of a conversation', async () => {
    const { store, sql } = await ledger();
    for (const conversation of ['a', 'a"b', 'ab'])
      await take(store, { key: `mail.send/=of ${conversation}`, conversation });
    await sql(`UPDATE semel.records SET asker = 'x' WHERE key = '${keyOf(3)}'`);
    for (const conversation of ['a', 'a"b', 'ab'])
      expect((await keysOf(store, 10, { conversation })).keys).toEqual([`mail.send/=of ${conversation}`]);
    await store.close();
  });

  test.each([
    ...['9223372036854775807', '9007199254740991', '-1'].map(
      (floor) => `UPDATE semel.meta SET floor = ${floor}`,
    ),
    'DELETE FROM semel.meta',
  ])(
    'a lowest fence that no ledger has is refused, also by a program that has it open: %s',
    async (damage) => {
      const { store, sql } = await ledger();
      await store.open();
      await sql(damage);
      await expect(store.claim(claimRequest({ key: 'mail.send/=new' }))).rejects.toMatchObject(refusal);
      await expect(store.read(theNamespace, keyOf(3))).rejects.toMatchObject(refusal);
      await store.close();
    },
  );

  test('its history is shown without unreadable events', async () => {
    const { store, sql } = await ledger();
    const about = { namespace: theNamespace, key: keyOf(3), generation: 1, fence: 1 };
    await store.append([{ ...about, type: 'noted', detail: { note: 'one' } }]);
    await store.append([{ ...about, type: 'noted', detail: { note: 'two' } }]);
    await sql(`UPDATE semel.events SET detail = '{' WHERE detail LIKE '%one%'`);
    const details = (await store.history(theNamespace, keyOf(3))).map(({ detail }) => detail);
    expect(details.slice(-2)).toEqual([{ damaged: true }, { note: 'two' }]);
    // A copy of the ledger takes the rest along, too.
    const [copied] = await (store.raw as Raw).find([{ namespace: theNamespace, key: keyOf(3) }]);
    expect(copied?.events.map(({ detail }) => detail).slice(-2)).toEqual(details.slice(-2));
    await store.close();
  });
});

describe('in Redis', () => {
  let server: RedisServer | undefined;
  let client: Redis;
  let prefixes = 0;
  beforeAll(async () => {
    server = await startRedis();
    if (server !== undefined) client = new Redis(server.url);
  });
  afterAll(async () => {
    client?.disconnect();
    await server?.stop();
  });

  async function ledger() {
    prefixes += 1;
    const prefix = `damage-${prefixes}`;
    const store = redisStore({ client, prefix });
    await fill(store);
    await store.close();
    return {
      store: redisStore({ client, prefix }),
      record: (nth: number) => `${prefix}{0}r:${theNamespace}\0${keyOf(nth)}`,
      events: (nth: number) => `${prefix}{0}e:${theNamespace}\0${keyOf(nth)}`,
      slots: `${prefix}{0}slots`,
      due: (slot: string) => `${prefix}{0}due:${slot}`,
    };
  }

  const kinds: Record<string, (value: string, other: string) => string> = {
    'cut off': (value) => value.slice(0, -3),
    empty: () => '',
    'of another key': (_, other) => other,
    'with another byte': (value) => value.replace('"3"', '"4"').replace('"7"', '"8"'),
  };

  test.each(Object.entries(kinds))('a record is refused that is %s', async (_, change) => {
    if (server === undefined) return;
    const { store, record } = await ledger();
    const other = (await client.get(record(5))) as string;
    for (const nth of [3, 7])
      await client.set(record(nth), change((await client.get(record(nth))) as string, other));
    const asked = await Promise.allSettled([2, 3, 4].map((nth) => take(store, { key: keyOf(nth) })));
    expect(asked[1]).toMatchObject({ reason: { ...refusal, evidence: { key: keyOf(3) } } });
    await expect(store.read(theNamespace, keyOf(3))).rejects.toMatchObject(refusal);
    const whole = await keysOf(store, 100);
    expect([whole.keys.length, whole.damaged]).toEqual([9, [keyOf(3), keyOf(7)]]);
    expect(await keysOf(store, 3)).toEqual(whole);
    await store.close();
  });

  test('a record is refused by name if something else is in its place', async () => {
    if (server === undefined) return;
    const { store, record } = await ledger();
    for (const nth of [3, 7]) {
      await client.del(record(nth));
      await client.hset(record(nth), 'a', 'b');
    }
    const asked = await Promise.allSettled([2, 3, 4].map((nth) => take(store, { key: keyOf(nth) })));
    expect(asked[1]).toMatchObject({ reason: { ...refusal, evidence: { key: keyOf(3) } } });
    const whole = await keysOf(store, 100);
    expect([whole.keys.length, whole.damaged]).toEqual([9, [keyOf(3), keyOf(7)]]);
    expect(await keysOf(store, 3)).toEqual(whole);
    await store.close();
  });

  test.each(['meta', 'namespaces'])('a ledger with something else as its %s is refused', async (name) => {
    if (server === undefined) return;
    const { store, slots } = await ledger();
    await store.open();
    await client.set(slots.replace('slots', name), 'x');
    await expect(store.claim(claimRequest({ key: 'mail.send/=new' }))).rejects.toMatchObject(refusal);
    if (name === 'namespaces') await expect(store.namespaces()).rejects.toMatchObject(refusal);
    await store.close();
  });

  test('a count of buckets that no ledger has is refused, and can be accepted', async () => {
    if (server === undefined) return;
    const { store, slots } = await ledger();
    const meta = slots.replace('slots', 'meta');
    await client.hset(meta, 'buckets', '5000');
    await expect(store.open()).rejects.toMatchObject(refusal);
    expect(await client.keys(meta.replace('{0}', '{*}'))).toEqual([meta]);
    await store.acceptLoss();
    expect((await store.read(theNamespace, keyOf(3)))?.result?.text).toBe('"3"');
    await store.close();
  });

  test.each(['floor', 'seq'])('a %s that no ledger has is refused, and can be accepted', async (field) => {
    if (server === undefined) return;
    for (const absurd of ['9007199254740993', '1e300', '-1', 'x']) {
      const { store, slots } = await ledger();
      const meta = slots.replace('slots', 'meta');
      await store.open();
      await client.hset(meta, field, absurd);
      await expect(store.claim(claimRequest({ key: 'mail.send/=new' }))).rejects.toMatchObject(refusal);
      await expect(store.read(theNamespace, keyOf(3))).rejects.toMatchObject(refusal);
      await store.acceptLoss();
      expect((await store.read(theNamespace, keyOf(3)))?.result?.text).toBe('"3"');
      await take(store, { key: 'mail.send/=new' });
      await store.close();
    }
  });

  test('one does not end retention for the others', async () => {
    if (server === undefined) return;
    const { store, record } = await ledger();
    await client.append(record(0), 'x');
    expect(await store.prune(100)).toBe(1);
    expect(await store.read(theNamespace, keyOf(1))).toBeUndefined();
    expect(await store.countExpired()).toBe(0);
    await store.close();
  });

  test.each(['no name', '-9:a', '', '3:abc', ':', '1e9:a', '0x5:a'])(
    'an invalid entry of a due list is dropped: %s',
    async (entry) => {
      if (server === undefined) return;
      const { store, slots, due } = await ledger();
      await client.zadd(slots, 1, '1');
      await client.rpush(due('1'), entry);
      expect(await store.prune(100)).toBe(2);
      expect(await client.exists(due('1'))).toBe(0);
      await store.close();
    },
  );

  test('its history is shown without unreadable events', async () => {
    if (server === undefined) return;
    const { store, events } = await ledger();
    await client.rpush(events(3), 'noted\n5\n1\n1\n{', '', 'noted\n5\n1\n1\n{"note":"two"}');
    const details = (await store.history(theNamespace, keyOf(3))).map(({ detail }) => detail);
    expect(details.slice(-3)).toEqual([{ damaged: true }, { damaged: true }, { note: 'two' }]);
    await store.close();
  });
});
