// The Redis store in a cluster of three servers: the same contract, as far as it needs no clock that moves, and what is
// special there.
import { Cluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import type { SemelError } from 'semel';
import { type RedisClient, redisStore } from 'semel/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claimRequest, take, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { type StoreHarness, storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { type RedisCluster, startRedisCluster } from '../servers/redis-cluster.ts';

let cluster: RedisCluster | undefined;
const clients = new Map<string, RedisClient>();
const ends: (() => unknown)[] = [];
let names = 0;

beforeAll(async () => {
  cluster = await startRedisCluster();
  if (cluster === undefined) return;
  const io = new Cluster([...cluster.urls]);
  const node = createCluster({ rootNodes: cluster.urls.map((url) => ({ url })) });
  node.on('error', () => {});
  await node.connect();
  clients.set('ioredis', io);
  clients.set('redis', node as unknown as RedisClient);
  ends.push(
    () => io.disconnect(),
    () => node.destroy(),
  );
});

afterAll(async () => {
  for (const end of ends) end();
  await cluster?.stop();
});

function newPrefix(): string {
  names += 1;
  return `ledger-${names}`;
}

/** What goes to many keys at once, or to all of them, is what a cluster could do otherwise. */
const topics: Readonly<Record<string, readonly string[]>> = {
  ioredis: ['claim', 'retention', 'history', 'paging', 'concurrency', 'repeated calls', 'names and sizes'],
  redis: ['claim', 'retention', 'paging', 'concurrency'],
};
/** A lease is longer by the time that the answer took. */
const exactInTime = 'claim: the first claim of a key wins and starts a generation that its fence names';

for (const [driver, asked] of Object.entries(topics)) {
  describe(`a cluster keeps the contract with ${driver}`, () => {
    for (const contractCase of storeContract()) {
      const harness = (): StoreHarness => {
        const client = clients.get(driver) as RedisClient;
        const prefix = newPrefix();
        const open = async () => {
          const store = redisStore({ client, prefix });
          await store.open();
          return store;
        };
        return { clock: 'real', create: open, second: open };
      };
      const isPossible =
        whySkipped(contractCase, { clock: 'real', create: async () => null as never }) === undefined;
      const isAsked = asked.some((topic) => contractCase.name.startsWith(`${topic}: `));
      if (!isPossible || !isAsked || contractCase.name === exactInTime) continue;
      test(contractCase.name, async (context) => {
        if (cluster === undefined) return context.skip('there is no Redis');
        await contractCase.run(harness());
      });
    }
  });
}

test('a ledger in a cluster is not moved as it is', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const store = redisStore({ client: clients.get('ioredis') as RedisClient, prefix: newPrefix() });
  await take(store);
  await expect(store.raw?.seal('elsewhere')).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
  await take(store, { key: 'mail.send/=2' });
});

test('records are spread over all servers', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const prefix = newPrefix();
  const store = redisStore({ client: clients.get('ioredis') as RedisClient, prefix });
  await Promise.all(Array.from({ length: 300 }, (_, i) => take(store, { key: `mail.send/=${i}` })));
  for (const { url } of cluster.nodes) {
    const client = new Redis(url);
    expect((await client.keys(`${prefix}{*}r:*`)).length).toBeGreaterThan(40);
    client.disconnect();
  }
});

test('a client of one server is refused with a sentence', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const store = redisStore({ url: cluster.urls[0] as string });
  await expect(store.open()).rejects.toThrow(/Pass a cluster client/);
  await store.close();
});

test('one server that has forgotten closes the ledger', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const prefix = newPrefix();
  const client = clients.get('ioredis') as RedisClient;
  const store = redisStore({ client, prefix });
  await Promise.all(Array.from({ length: 50 }, (_, i) => take(store, { key: `mail.send/=${i}` })));
  const server = new Redis(cluster.urls[1] as string);
  const gone = await server.keys(`${prefix}{*`);
  for (const key of gone) await server.del(key);
  server.disconnect();
  const answers = await Promise.allSettled(
    Array.from({ length: 50 }, (_, i) => store.claim(claimRequest({ key: `mail.send/=new-${i}` }))),
  );
  const refused = answers.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  expect(refused.length).toBeGreaterThan(0);
  for (const { reason } of refused) expect((reason as SemelError).code).toBe('STORE_UNSAFE');
  await expect(redisStore({ client, prefix }).open()).rejects.toThrow(/has lost confirmed records/);
  const operator = redisStore({ client, prefix });
  await operator.acceptLoss();
  await Promise.all(Array.from({ length: 50 }, (_, i) => take(store, { key: `mail.send/=newer-${i}` })));
});

test('a live record under an earlier form of the key answers for it, in any slot', async (context) => {
  if (cluster === undefined) return context.skip('there is no Redis');
  const store = redisStore({ client: clients.get('redis') as RedisClient, prefix: newPrefix() });
  for (let i = 0; i < 20; i += 1) {
    const older = await take(store, { key: `mail.send/=old-${i}` });
    const answer = await store.claim(
      claimRequest({ key: `mail.send/=now-${i}`, olderKeys: [`mail.send/=old-${i}`] }),
    );
    expect([answer.won, answer.record?.key]).toEqual([false, older.key]);
    expect(await store.read(theNamespace, `mail.send/=now-${i}`)).toBeUndefined();
  }
});
