// What happens between a look and a write, made to happen: nothing is written on what is no longer so.
import { Redis } from 'ioredis';
import { redisStore } from 'semel/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { remove, type Script, stand, swap } from '../../src/stores/redis/exchange/scripts.ts';
import { claimRequest, take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';

let server: RedisServer | undefined;
let client: Redis;
let names = 0;

beforeAll(async () => {
  server = await startRedis();
  if (server !== undefined) client = new Redis(server.url);
});
afterAll(async () => {
  client?.disconnect();
  await server?.stop();
});

/** Two handles on one ledger; before the first of them sends this script again, something is done once. */
async function interrupted(
  script: Script,
  meanwhile: (other: ReturnType<typeof redisStore>) => Promise<unknown>,
  isNew = false,
) {
  names += 1;
  const prefix = `ledger-${names}`;
  const other = redisStore({ client, prefix });
  let isDone = true;
  const slow = {
    async call(name: string, ...args: string[]) {
      if (!isDone && args[0] === script.sha) {
        isDone = true;
        await meanwhile(other);
      }
      return client.call(name, ...args);
    },
  };
  const store = redisStore({ client: slow, prefix });
  // Its first claim of all learns from which fence on the ledger counts.
  if (!isNew) await take(store, { key: 'mail.send/=first' });
  isDone = false;
  return { store, other, wasDone: () => isDone };
}

test('a claim loses to one of an earlier form of its key that came meanwhile', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { store } = await interrupted(swap, (other) => take(other, { key: 'mail.send/=old' }));
  const answer = await store.claim(claimRequest({ key: 'mail.send/=new', olderKeys: ['mail.send/=old'] }));
  expect([answer.won, answer.record?.key]).toEqual([false, 'mail.send/=old']);
  expect(await store.read(theNamespace, 'mail.send/=new')).toBeUndefined();
});

test('a record that was claimed again meanwhile is not removed', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { store, other, wasDone } = await interrupted(remove, (anyone) => take(anyone));
  const first = await take(other);
  await first.succeed();
  const seen = { fence: first.fence, dispatchedAt: null };
  const act = { type: 'forget' } as const;
  const about = {
    namespace: theNamespace,
    key: theKey,
    decidedAt: Date.now(),
    by: 'me',
    note: null,
    force: false,
  };
  expect((await other.resolve({ ...about, seen, act, token: 'act' })).ok).toBe(true);
  expect(await store.prune(10)).toBe(0);
  expect(wasDone()).toBe(true);
  expect(await store.read(theNamespace, theKey)).toMatchObject({ status: 'running' });
});

test('a decision that arrives too late is made again', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  let resumedAt = 0;
  const { store } = await interrupted(swap, async () => {
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    resumedAt = Date.now();
  });
  const holder = await take(store);
  const { createdAt, readAt } = holder.record;
  // By the store's clock, at the moment at which it was written.
  expect(createdAt).toBeGreaterThanOrEqual(resumedAt);
  expect(readAt).toBe(createdAt);
});

test('a ledger is not sealed for one place by a copy that has seen it before it was sealed for another', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { store, other } = await interrupted(stand, (another) => another.raw?.seal('here') as Promise<void>);
  await expect(store.raw?.seal('there')).rejects.toMatchObject({ code: 'STORE_MOVED' });
  expect((await other.raw?.about())?.movedTo).toBe('here');
});

test('a ledger in which somebody has just made a record is not filled', async (context) => {
  if (server === undefined) return context.skip('there is no Redis');
  const { store, other } = await interrupted(stand, (another) => take(another), true);
  await expect(store.raw?.fill('another')).rejects.toThrow(/has records/);
  expect((await other.read(theNamespace, theKey))?.status).toBe('running');
});
