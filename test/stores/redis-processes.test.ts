// Several real processes on one Redis.
import { redisStore } from 'semel/redis';
import { expect, test } from 'vitest';
import { theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { startNode } from '../processes/node-process.ts';
import { startRedis } from '../servers/redis.ts';

test('four processes race over 400 keys: each key has exactly one winner', async (context) => {
  await using server = await startRedis();
  if (server === undefined) return context.skip('there is no Redis');
  const { url } = server;
  const file = new URL('redis-race-worker.ts', import.meta.url);
  const workers = [1, 1, 20, 20].map((together) =>
    startNode<{ key: string }>(file, { url, count: 400, together }),
  );
  for (const worker of workers)
    expect([await worker.ended, worker.errors()]).toEqual([{ code: 0, signal: null }, '']);
  const won = workers.flatMap((worker) => worker.lines.map(({ key }) => key));
  expect(won).toHaveLength(400);
  expect(new Set(won).size).toBe(400);

  const store = redisStore({ url });
  for (const { pid, lines } of workers) {
    for (const { key } of lines) {
      const record = await store.read(theNamespace, key);
      expect(record).toMatchObject({ status: 'succeeded', attempts: 1, doubtFence: null });
      expect(record?.result?.text).toBe(`"${pid}"`);
    }
  }
  await store.close();
});
