// A ledger moves into a cluster of Redis servers and out of it. There its standing is written in 256 buckets, one after
// the other: whatever dies on the way, no two ledgers are in use, and the same again ends it.

import { Cluster } from 'ioredis';
import { type RedisClient, redisStore } from 'semel/redis';
import { sqliteStore } from 'semel/sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { copyLedger } from '../../src/store/copy.ts';
import type { Raw } from '../../src/store/raw.ts';
import type { Store } from '../../src/store/store.ts';
import { stand } from '../../src/stores/redis/scripts.ts';
import { attemptOf, claimRequest, take } from '../../src/testing/store-contract/attempt.ts';
import { type RedisCluster, startRedisCluster } from '../servers/redis-cluster.ts';
import { expectSame, fill, isUsable } from './copied-ledger.ts';
import { newPath } from './sqlite-folder.ts';

type Movable = Store & { raw: Raw };

let cluster: RedisCluster | undefined;
let client: Cluster;
let prefixes = 0;
const opened: Store[] = [];

beforeAll(async () => {
  cluster = await startRedisCluster();
  if (cluster === undefined) return;
  client = new Cluster([...cluster.urls]);
  await client.call('ping');
  await Promise.all(client.nodes('master').map((node) => node.script('LOAD', stand.text)));
});

afterAll(async () => {
  await Promise.all(opened.map((store) => store.close()));
  client?.disconnect();
  await cluster?.stop();
});

function newPrefix(): string {
  prefixes += 1;
  return `copy-${prefixes}`;
}

function redisAt(prefix: string, by: RedisClient = client): Movable {
  return kept(redisStore({ client: by, prefix }));
}

function newFile(): Movable {
  return kept(sqliteStore({ path: newPath() }));
}

function kept(store: Store): Movable {
  opened.push(store);
  return store as Movable;
}

/** The same client, but that something happens before a bucket is told of a change, the first, the second and so on. */
function watched(beforeTelling: (nth: number) => Promise<unknown>, isOver = () => false): RedisClient {
  let told = 0;
  return {
    isCluster: true,
    nodes: () => client.nodes('master'),
    async call(name: string, ...args: string[]) {
      if (args[0] === stand.sha) {
        told += 1;
        await beforeTelling(told);
      }
      if (isOver()) throw new Error('killed');
      return client.call(name, ...args);
    },
  };
}

/** Tells so many buckets of a change, and then is as good as killed. */
function mortal(tells: number): RedisClient {
  let told = 0;
  const count = async (nth: number) => {
    told = nth;
  };
  return watched(count, () => told > tells);
}

const some = Array.from({ length: 600 }, (_, i) => `many/=${i}`);

/** Which of many keys, that lie in all buckets, a program gets. What it was refused is not there either. */
async function taken(store: Movable, run: string): Promise<string[]> {
  const keys = some.map((key) => `${key}-${run}`);
  const answers = await Promise.allSettled(keys.map((key) => take(store, { key })));
  const mine = keys.filter((_, index) => answers[index]?.status === 'fulfilled');
  const found = await store.raw.find(keys.map((key) => ({ namespace: 'shop', key })));
  expect(keys.filter((_, index) => found[index] !== undefined)).toEqual(mine);
  return mine;
}

test('every record arrives in a cluster, and from there in a file', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const [first, there, last] = [newFile(), redisAt(newPrefix()), newFile()];
  const { running } = await fill(first);
  const floor = 8_000_000_000_000_000;
  const high: Raw = { ...first.raw, about: async () => ({ ...(await first.raw.about()), floor }) };
  await copyLedger({ source: high, target: there.raw });
  await expectSame(first.raw, there.raw);
  for (let i = 0; i < 20; i += 1)
    expect((await take(there, { key: `fresh/=${i}` })).fence).toBeGreaterThan(floor);
  await copyLedger({ source: there.raw, target: last.raw });
  await expectSame(there.raw, last.raw);
  expect([await isUsable(first), await isUsable(there), await isUsable(last)]).toEqual([false, false, true]);
  const request = claimRequest({ key: 'pay/=running', token: running.token });
  expect((await attemptOf(last, request, running.record, false).succeed()).record?.status).toBe('succeeded');
});

describe.each([1, 100, 255])('dead after %i buckets', (tells) => {
  test('a seal: what the others still take is in the copy', async (context) => {
    if (cluster === undefined) return context.skip('there is no Redis');
    const [prefix, target] = [newPrefix(), newFile()];
    const program = redisAt(prefix);
    await fill(program);
    const dying = redisAt(prefix, mortal(tells));
    await expect(copyLedger({ source: dying.raw, target: target.raw })).rejects.toThrow(/killed/);

    expect(await isUsable(target)).toBe(false);
    await expect(redisAt(prefix).open()).rejects.toMatchObject({ code: 'STORE_MOVED' });
    const between = await taken(program, 'between');
    expect(between.length).toBeLessThan(some.length);
    if (tells < 255) expect(between.length).toBeGreaterThan(0);

    const source = redisAt(prefix);
    expect((await source.raw.about()).movedTo).toBe((await target.raw.about()).address);
    await expect(copyLedger({ source: source.raw, target: newFile().raw })).rejects.toMatchObject({
      code: 'STORE_MOVED',
    });
    await copyLedger({ source: source.raw, target: target.raw });
    expect(await taken(program, 'after')).toEqual([]);
    await expectSame(source.raw, target.raw);
    for (const key of between) expect((await target.read('shop', key))?.status).toBe('running');
  });

  test('a seal that is taken back: whoever opens the ledger next uses all of it', async (context) => {
    if (cluster === undefined) return context.skip('there is no Redis');
    const prefix = newPrefix();
    const program = redisAt(prefix);
    await fill(program);
    await program.raw.seal('elsewhere');
    await expect(redisAt(prefix, mortal(tells)).raw.unseal()).rejects.toThrow(/killed/);
    expect((await redisAt(prefix).raw.about()).movedTo).toBe(null);
    expect(await taken(program, 'again')).toHaveLength(some.length);
  });

  test('a ledger that is to be filled: it is closed by the next copy', async (context) => {
    if (cluster === undefined) return context.skip('there is no Redis');
    const [prefix, source] = [newPrefix(), newFile()];
    await fill(source);
    const program = redisAt(prefix);
    await program.open();
    const dying = redisAt(prefix, mortal(tells));
    await expect(copyLedger({ source: source.raw, target: dying.raw })).rejects.toThrow(/killed/);
    await expect(redisAt(prefix).open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await isUsable(source)).toBe(true);
    const target = redisAt(prefix);
    await copyLedger({ source: source.raw, target: target.raw });
    await expectSame(source.raw, target.raw);
    expect(await taken(program, 'after')).toHaveLength(some.length);
  });

  test('a ledger that is to be filled, and somebody makes a record there: the copy is refused, not the record', async (context) => {
    if (cluster === undefined) return context.skip('there is no Redis');
    const [prefix, source] = [newPrefix(), newFile()];
    await fill(source);
    const program = redisAt(prefix);
    await program.open();
    const from = (await source.raw.about()).incarnation;
    await expect(redisAt(prefix, mortal(tells)).raw.fill(from)).rejects.toThrow(/killed/);
    const mine = await taken(program, 'mine');
    if (tells < 255) expect(mine.length).toBeGreaterThan(0);
    const copying = copyLedger({ source: source.raw, target: redisAt(prefix).raw });
    if (mine.length === 0) return expect(await copying).toMatchObject({ before: false });
    await expect(copying).rejects.toThrow(/has records/);
    expect(await isUsable(source)).toBe(true);
    for (const key of mine) expect((await program.read('shop', key))?.status).toBe('running');
    expect(await taken(program, 'after')).toHaveLength(some.length);
  });

  test('a ledger that is opened: it is complete, and is not filled once more', async (context) => {
    if (cluster === undefined) return context.skip('there is no Redis');
    const [prefix, source] = [newPrefix(), newFile()];
    await fill(source);
    const program = redisAt(prefix);
    await program.open();
    // The first 256 and the one that decides close it.
    const dying = redisAt(prefix, mortal(257 + tells));
    await expect(copyLedger({ source: source.raw, target: dying.raw })).rejects.toThrow(/killed/);
    const early = await taken(program, 'early');
    expect(early.length).toBeLessThan(some.length);
    const target = redisAt(prefix);
    expect(await copyLedger({ source: source.raw, target: target.raw })).toMatchObject({ before: true });
    for (const key of early) expect((await target.read('shop', key))?.status).toBe('running');
    expect(await taken(program, 'after')).toHaveLength(some.length);
    expect(await target.read('shop', 'pay/=unknown')).toMatchObject({ inDoubt: true });
  });
});

test('a seal that is slow does not reach a bucket after it was taken back', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const prefix = newPrefix();
  const program = redisAt(prefix);
  await program.open();
  let told = 0;
  let goOn = () => {};
  const waiting = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const slow = redisAt(
    prefix,
    watched(async (nth) => {
      told = nth;
      if (nth > 100) await waiting;
    }),
  );
  const sealing = slow.raw.seal('elsewhere');
  await expect.poll(() => told).toBe(257);
  await redisAt(prefix).raw.unseal();
  goOn();
  await sealing;
  expect((await slow.raw.about()).movedTo).toBe(null);
  expect(await taken(program, 'after')).toHaveLength(some.length);
});

test.for([
  [1, 'first', 'mine/=80'],
  [2, 'last', 'mine/=221'],
  [200, 'last', 'mine/=221'],
] as const)(
  'before bucket %i is closed for a copy a record is made in the %s: it stays, and the copy is refused',
  async ([nth, , key], context) => {
    if (cluster === undefined) return context.skip('there is no Redis');
    const [prefix, source] = [newPrefix(), newFile()];
    await fill(source);
    const program = redisAt(prefix);
    await program.open();
    const mine: Promise<unknown>[] = [];
    const target = redisAt(
      prefix,
      watched(async (told) => {
        if (told === nth) mine.push(take(program, { key }));
        await Promise.all(mine);
      }),
    );
    await expect(copyLedger({ source: source.raw, target: target.raw })).rejects.toThrow(/has records/);
    expect((await program.read('shop', key))?.status).toBe('running');
    await take(program, { key: 'usable/=1' });
  },
);
