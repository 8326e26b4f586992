// One script does a whole batch in bulk: no record is told what happened to another, and none is lost to retention.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemRandom } from '../../src/core/clock.ts';
import { claim } from '../../src/rules/claim.ts';
import type { Found, Swap, Write } from '../../src/store/remote/backend.ts';
import type { Row, StoredRecord } from '../../src/store/store.ts';
import { adaptClient } from '../../src/stores/redis/client.ts';
import { createExchange, runScript } from '../../src/stores/redis/exchange/exchange.ts';
import { identify, type Run } from '../../src/stores/redis/meta.ts';
import {
  attemptOf,
  claimRequest,
  day,
  minute,
  take,
  theKey,
  theNamespace,
} from '../../src/testing/store-contract/attempt.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';
import { movableLedger, type RedisLedger } from './redis-ledger.ts';

let server: RedisServer | undefined;
let ledger: RedisLedger;
const start = Date.UTC(2026, 5, 19);

beforeAll(async () => {
  server = await startRedis();
  if (server === undefined) return;
  ledger = await movableLedger(server.url, 'ioredis');
  ledger.setClock(start);
});
afterAll(async () => {
  await ledger?.end();
  await server?.stop();
});

const recordOf = (key: string) => `${ledger.prefix}{0}r:${theNamespace}\0${key}`;

test('of many claims in one batch only those lose whose key is taken', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  await ledger.empty();
  const [store, other] = [await ledger.open(), await ledger.open()];
  await take(other, { key: 'mail.send/=7' });
  const requests = Array.from({ length: 40 }, (_, n) => claimRequest({ key: `mail.send/=${n}` }));
  const answers = await Promise.all(requests.map((request) => store.claim(request)));
  expect(answers.flatMap(({ won }, n) => (won ? [] : [n]))).toEqual([7]);
  for (const [n, { key, owner }] of requests.entries())
    expect(await other.read(theNamespace, key)).toMatchObject({
      status: 'running',
      attempts: 1,
      owner,
      key: `mail.send/=${n}`,
    });
});

/** The ledger as the store asks it, without rules and memory in front. */
async function backend() {
  await ledger.empty();
  const connection = adaptClient(ledger.client);
  const run: Run = (script, keys, args) => runScript(connection.send, script, keys, args);
  const known = await identify(run, { prefix: ledger.prefix, isCluster: false, random: systemRandom });
  const { exchange } = createExchange(false);
  const now = Date.now();
  const time = { wall: now, mono: now, boot: 'store', steady: true };
  const { row } = claim(undefined, claimRequest({ crossing: true }), time, 10) as { row: Row };
  return {
    now,
    /** A write of this revision. */
    write: (revision: number, over: Partial<Write> & { key?: string } = {}): Swap & { write: Write } => {
      const { key = theKey, ...rest } = over;
      const about = { before: undefined, events: [], beside: [], at: now - 1_000, until: now + 60_000 };
      return { namespace: theNamespace, key, write: { ...about, row: { ...row, key }, revision, ...rest } };
    },
    done: async (...swaps: Swap[]) =>
      (await exchange(connection, known, swaps)).answers.map(({ done }) => done),
  };
}

test('of two swaps of one record in one batch, new or not, one is done', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { write, done } = await backend();
  expect(await done(write(1), write(2))).toEqual([true, false]);
  const before = write(1).write as Found;
  expect(await done(write(3, { before }), write(4, { before }))).toEqual([true, false]);
  // A driver that has lost its connection may send the same once more.
  expect(await done(write(3, { before }))).toEqual([true]);
});

test('a settlement in bulk of a record that was written meanwhile is not done', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { write, done } = await backend();
  const [seen, same] = [write(1).write as Found, { key: 'mail.send/=same' }];
  expect(await done(write(1), write(1, same))).toEqual([true, true]);
  expect(await done(write(2, { before: seen }))).toEqual([true]);
  expect(await done(write(3, { before: seen }), write(3, { before: seen, ...same }))).toEqual([false, true]);
});

test('what is not done in bulk compares the time, the lowest fence and other records, too', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { now, write, done } = await backend();
  await ledger.ask('hset', `${ledger.prefix}{0}meta`, 'floor', '10');
  expect(await done(write(1, { key: 'mail.send/=1' }))).toEqual([true]);
  const beside = [{ key: 'mail.send/=1', revision: 1 }];
  const { row } = write(2).write;
  const used = { ...(row as Row), fence: 10 };
  expect(await done(write(2, { beside, until: now - 500 }))).toEqual([false]);
  expect(await done(write(2, { beside, at: now + 50_000 }))).toEqual([false]);
  expect(await done(write(2, { beside, row: used }))).toEqual([false]);
  expect(await done(write(2, { row: used }))).toEqual([false]);
  expect(await done(write(2, { beside: [{ key: 'mail.send/=1', revision: 2 }] }))).toEqual([false]);
  expect(await done(write(2, { beside: [{ key: 'mail.send/=2', revision: 1 }] }))).toEqual([false]);
  expect(await done(write(2, { beside: [{ key: 'mail.send/=1', revision: undefined }] }))).toEqual([false]);
  expect(await done(write(2, { beside }))).toEqual([true]);
});

test('of many settlements in one batch only that one is refused whose record was taken over', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  await ledger.empty();
  const [store, other] = [await ledger.open(), await ledger.open()];
  const holders = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      take(store, { key: `mail.send/=${n}`, leaseMs: n === 3 ? 1_000 : 60_000 }),
    ),
  );
  ledger.setClock(start + 1_500);
  const taker = await take(other, { key: 'mail.send/=3' });
  const answers = await Promise.all(holders.map((holder) => holder.succeed('"mine"')));
  expect(answers.flatMap(({ settled }, n) => (settled ? [] : [n]))).toEqual([3]);
  expect(await other.read(theNamespace, 'mail.send/=3')).toMatchObject({
    fence: taker.fence,
    status: 'running',
  });
  ledger.setClock(start);
});

test('retention finds every record of a batch, whatever it is called, and leaves nothing behind', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  await ledger.empty();
  const [store, other] = [await ledger.open(), await ledger.open()];
  const names = [
    '',
    'a',
    'ä',
    'äö',
    'å',
    '😀',
    '😁',
    '12:3',
    '\n',
    '\0z',
    'x'.repeat(500),
    `${'x'.repeat(500)}y`,
  ];
  const keys = names.map((name) => `mail.send/=ü${name}`);
  const taken = 'mail.send/=ütaken';
  await take(other, { key: taken });
  const [holders] = await Promise.all([
    Promise.all(keys.map((key) => take(store, { key, crossing: true }))),
    store.claim(claimRequest({ key: taken })),
  ]);
  await Promise.all(holders.map((holder) => holder.succeed()));
  // What these two have in common ends within a character.
  await Promise.all(['😀', '😁'].map(async (key) => (await take(store, { key, crossing: true })).succeed()));
  expect(await ledger.ask('keys', `${ledger.prefix}{0}due:*`)).toHaveLength(2);
  ledger.setClock(start + day);
  // Whoever knew the server's clock before takes no part: by theirs it was set.
  const later = await ledger.open();
  let removed = 0;
  for (let count = -1; count !== 0; removed += count) count = await later.prune(5);
  expect(removed).toBe(names.length + 3);
  const left = (await ledger.ask('keys', `${ledger.prefix}{*`)) as string[];
  expect(left.sort()).toEqual([`${ledger.prefix}{0}meta`, `${ledger.prefix}{0}namespaces`]);
  ledger.setClock(start);
});

test('retention comes back to a record that it has seen in doubt', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  await ledger.empty();
  const retention = { windowMs: minute, failureWindowMs: minute, keep: false, periodEndsAt: null };
  const request = claimRequest({ crossing: true, retention });
  const { record } = await (await ledger.open()).claim(request);
  // A store that is opened anew each time: whoever knew the clock before would not believe it.
  ledger.setClock(start + 10 * minute);
  expect(await (await ledger.open()).prune(10)).toBe(0);
  const holder = attemptOf(await ledger.open(), request, record as StoredRecord, false);
  expect(await holder.succeed()).toMatchObject({ settled: true });
  ledger.setClock(start + 20 * minute);
  expect(await (await ledger.open()).prune(10)).toBe(1);
  ledger.setClock(start);
});

test('a record that was changed by hand, or put in the place of another, is refused and not replayed', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  await ledger.empty();
  const [store, other] = [await ledger.open(), await ledger.open()];
  const [first, second] = ['mail.send/=1', 'mail.send/=2'] as const;
  for (const key of [first, second]) await (await take(store, { key })).succeed('"paid 10"');
  const packed = String(await ledger.ask('get', recordOf(first)));
  const refused = expect.objectContaining({ code: 'STORE_UNSAFE', retriable: false });
  for (const changed of [packed.replace('paid 10', 'paid 99'), packed.slice(0, -1), 'x', '']) {
    await ledger.ask('set', recordOf(first), changed);
    await expect(other.claim(claimRequest({ key: first }))).rejects.toEqual(refused);
    await expect(other.read(theNamespace, first)).rejects.toEqual(refused);
  }
  await ledger.ask('set', recordOf(second), packed);
  await expect(other.claim(claimRequest({ key: second }))).rejects.toEqual(refused);
  await ledger.ask('set', recordOf(first), packed);
  expect(await other.read(theNamespace, first)).toMatchObject({ status: 'succeeded' });
});
