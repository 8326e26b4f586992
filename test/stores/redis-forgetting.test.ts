// A Redis that has forgotten is noticed by those who knew it, and claims fail until a person has accepted the loss.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { SemelError } from 'semel';
import { type RedisStore, redisStore } from 'semel/redis';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { claimRequest, take } from '../../src/testing/store-contract/attempt.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';

interface Scene extends AsyncDisposable {
  readonly server: RedisServer;
  readonly client: Redis;
  store(): RedisStore;
}

async function scene(options: Parameters<typeof startRedis>[0] = {}): Promise<Scene | undefined> {
  const server = await startRedis(options);
  if (server === undefined) return undefined;
  const client = new Redis(server.url);
  client.on('error', () => {});
  return {
    server,
    client,
    store: () => redisStore({ client, durability: 'accept-loss' }),
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await server.stop();
    },
  };
}

async function refusal(asked: Promise<unknown>): Promise<SemelError> {
  return asked.then(
    () => {
      throw new Error('it was done');
    },
    (error) => error as SemelError,
  );
}

async function expectClosed(store: RedisStore): Promise<void> {
  const error = await refusal(store.claim(claimRequest({ key: `mail.send/=${Math.random()}` })));
  expect([error.code, error.retriable]).toEqual(['STORE_UNSAFE', false]);
  expect(error.message).toContain('has lost confirmed records');
  expect(error.message).toContain('semel store accept-loss');
}

test('emptied by FLUSHALL: refused by processes that knew it, and by new ones', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  const holder = await take(store);
  await world.client.flushall();
  await expectClosed(store);
  await expectClosed(world.store());
  expect((await refusal(holder.renew())).code).toBe('STORE_UNSAFE');
  expect((await refusal(holder.succeed())).code).toBe('STORE_UNSAFE');
  await world.store().acceptLoss();
  const next = await take(store);
  expect(next.fence).toBeGreaterThan(holder.fence);
  await take(world.store(), { key: 'mail.send/=other' });
});

test('another ledger at the address is refused, and is not harmed', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const old = world.store();
  await take(old);
  await world.client.flushall();
  const young = world.store();
  await take(young);
  await expectClosed(old);
  await take(young, { key: 'mail.send/=2' });
});

test('restarted without persistence', async (context) => {
  await using world = await scene({ persistence: 'none' });
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  await take(store);
  await world.server.restart();
  await expectClosed(store);
});

test('restored to an earlier state', async (context) => {
  await using world = await scene({ persistence: 'none', settings: { dbfilename: 'dump.rdb' } });
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  const first = await take(store);
  await first.settle('released');
  await world.client.save();
  const folder = world.server.dataFolder;
  copyFileSync(join(folder, 'dump.rdb'), join(folder, 'old.rdb'));
  let latest = await take(store);
  for (let i = 0; i < 3; i += 1) {
    await latest.settle('released');
    latest = await take(store);
  }
  await world.server.kill();
  copyFileSync(join(folder, 'old.rdb'), join(folder, 'dump.rdb'));
  await world.server.restart();
  expect((await world.store().read('shop', first.key))?.fence).toBe(first.fence);
  await expectClosed(store);
  await expectClosed(world.store());
  await world.store().acceptLoss();
  const next = await take(store);
  expect(next.fence).toBeGreaterThan(latest.fence);
  expect(next.generation).toBe(first.generation);
});

test('what a script wrote before it broke off can be forgotten as little', async (context) => {
  await using world = await scene({ persistence: 'none', settings: { dbfilename: 'dump.rdb' } });
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  await take(store);
  await world.client.lpush('semel{0}r:shop\0mail.send/=theirs', 'x');
  await world.client.save();
  const folder = world.server.dataFolder;
  copyFileSync(join(folder, 'dump.rdb'), join(folder, 'old.rdb'));
  const [ours, theirs] = await Promise.allSettled([
    take(store, { key: 'mail.send/=ours' }),
    take(store, { key: 'mail.send/=theirs' }),
  ]);
  expect([ours.status, theirs.status]).toEqual(['fulfilled', 'rejected']);
  await world.server.kill();
  copyFileSync(join(folder, 'old.rdb'), join(folder, 'dump.rdb'));
  await world.server.restart();
  await expectClosed(store);
});

test('what was confirmed by a look, because the answer to the write was lost', async (context) => {
  await using world = await scene({ persistence: 'none', settings: { dbfilename: 'dump.rdb' } });
  if (world === undefined) return context.skip('there is no Redis');
  let isDeaf = false;
  const deaf = {
    async call(name: string, ...args: string[]) {
      const answer = await world.client.call(name, ...args);
      if (!isDeaf || name !== 'evalsha') return answer;
      isDeaf = false;
      throw new Error('read ECONNRESET');
    },
  };
  const store = redisStore({ client: deaf, durability: 'accept-loss' });
  const holder = await take(store);
  await holder.send();
  await world.client.save();
  const folder = world.server.dataFolder;
  copyFileSync(join(folder, 'dump.rdb'), join(folder, 'old.rdb'));
  isDeaf = true;
  expect((await refusal(holder.succeed())).code).toBe('STORE_UNAVAILABLE');
  expect(await holder.succeed()).toMatchObject({ settled: true });
  await world.server.kill();
  copyFileSync(join(folder, 'old.rdb'), join(folder, 'dump.rdb'));
  await world.server.restart();
  await expectClosed(store);
});

test('its description was deleted beside its records', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  await take(world.store());
  await world.client.del('semel{0}meta');
  await expectClosed(world.store());
  await world.store().acceptLoss();
  await take(world.store(), { key: 'mail.send/=2' });
});

test('a restart that forgets nothing is not a loss', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  const holder = await take(store);
  await world.server.kill();
  await world.server.restart();
  await expect
    .poll(async () =>
      holder.renew().then(
        (answer) => answer.held,
        () => false,
      ),
    )
    .toBe(true);
  expect((await holder.succeed()).settled).toBe(true);
});

test('a moved ledger and one of newer programs are refused', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  await take(store);
  await world.client.hset('semel{0}meta', 'writer', '99');
  expect((await refusal(take(store, { key: 'mail.send/=2' }))).message).toContain('newer versions');
  await world.client.hset('semel{0}meta', 'closed', 'MOVED postgres://elsewhere');
  expect((await refusal(take(store, { key: 'mail.send/=2' }))).code).toBe('STORE_MOVED');
  expect((await refusal(store.read('shop', 'mail.send/=2'))).code).toBe('STORE_MOVED');
  expect((await refusal(world.store().open())).code).toBe('STORE_MOVED');
});

test('a seal that was forgotten is noticed by the copy', async (context) => {
  await using world = await scene({ persistence: 'none', settings: { dbfilename: 'dump.rdb' } });
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  await take(store);
  await world.client.save();
  await store.raw?.seal('elsewhere');
  await world.server.kill();
  await world.server.restart();
  await expect(store.raw?.about()).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
});

test('a ledger that forgets while it is filled is not opened', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  await store.raw?.fill('another');
  await world.client.flushall();
  await expect(store.raw?.write('another', { floor: 1 })).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
  await expect(store.raw?.finish('another')).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
  await expectClosed(world.store());
});

test('the person who accepted a loss, and the reason, are kept until the next one', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const store = world.store();
  await take(store);
  expect((await store.raw?.about())?.lossAccepted).toBeUndefined();
  await world.store().acceptLoss({ by: 'ada', note: 'the disk broke' });
  const { at } = (await store.raw?.about())?.lossAccepted ?? {};
  expect((await store.raw?.about())?.lossAccepted).toEqual({ at, by: 'ada', note: 'the disk broke' });
  expect(at).toBeGreaterThan(1_700_000_000_000);
  await world.store().acceptLoss();
  expect((await store.raw?.about())?.lossAccepted).toMatchObject({ by: undefined, note: undefined });
});

const recordOf = (key: string) => `semel{0}r:shop\0${key}`;
const evicting = { maxmemory: '1', 'maxmemory-policy': 'allkeys-random' };

async function configure({ client }: Scene, settings: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) await client.config('SET', name, value);
}

test('evicted records do not count as new ones, even for a program that starts later', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const durable = () => redisStore({ client: world.client });
  const store = durable();
  const keys = Array.from({ length: 60 }, (_, n) => `mail.send/=${n}`);
  for (const key of keys) await (await take(store, { key })).succeed();
  // What is asked for most stays: the ledger's own description, so that nothing but the count tells of the rest.
  await configure(world, { 'maxmemory-policy': 'allkeys-lfu', 'maxmemory-samples': '64' });
  await Promise.all(Array.from({ length: 5_000 }, () => world.client.hget('semel{0}meta', 'id')));
  const used = /used_memory:(\d+)/.exec(await world.client.info('memory'))?.[1];
  await configure(world, { maxmemory: String(Number(used) - 2_000) });
  await expect.poll(() => world.client.exists(...keys.map(recordOf))).toBeLessThan(60);
  await configure(world, { maxmemory: '0', 'maxmemory-policy': 'noeviction' });
  expect(await world.client.exists('semel{0}meta')).toBe(1);
  for (const ledger of [store, durable()])
    for (const key of keys) {
      const answer = await ledger.claim(claimRequest({ key })).catch((error: SemelError) => error.code);
      expect(answer).not.toMatchObject({ won: true });
    }
  await durable().acceptLoss();
  await take(durable(), { key: 'mail.send/=new' });
});

test('a restart of the server, and counters that were reset, do not count as an eviction', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  await configure(world, evicting);
  await world.client.set('theirs', 'x').catch(() => {});
  await configure(world, { maxmemory: '0', 'maxmemory-policy': 'noeviction' });
  const store = redisStore({ client: world.client });
  await take(store, { key: 'mail.send/=1' });
  await world.client.config('RESETSTAT');
  await take(store, { key: 'mail.send/=2' });
  await world.server.restart();
  await take(redisStore({ client: world.client }), { key: 'mail.send/=3' });
});

test('settings that are weakened while it is open: new claims are refused, and what is under way is settled', async (context) => {
  await using world = await scene();
  if (world === undefined) return context.skip('there is no Redis');
  const { clock, passes } = movableClock();
  const store = redisStore({ client: world.client, clock });
  const holder = await take(store, { key: 'mail.send/=held' });
  await configure(world, { appendfsync: 'everysec' });
  passes(60_000);
  await store.read('shop', holder.key);
  await expect
    .poll(() => refusal(store.claim(claimRequest({ key: `mail.send/=${Math.random()}` }))))
    .toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('appendfsync is everysec'),
    });
  await holder.succeed();
  await configure(world, { appendfsync: 'always' });
  passes(60_000);
  await expect.poll(() => take(store, { key: 'mail.send/=after' })).toBeDefined();
});

/** A real clock, but that more time passes. */
function movableClock(): { clock: Clock; passes(ms: number): void } {
  let more = 0;
  return {
    clock: { ...systemClock, mono: () => systemClock.mono() + more },
    passes(ms) {
      more += ms;
    },
  };
}
