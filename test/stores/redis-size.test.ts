// What a record costs in a real Redis, and that retention gives all of it back.
import { Redis } from 'ioredis';
import { createSemel, day } from 'semel';
import { redisStore } from 'semel/redis';
import { expect, test } from 'vitest';
import { startRedis } from '../servers/redis.ts';

const count = 20_000;

test('a record with a result of 200 bytes takes at most 520', async (context) => {
  await using server = await startRedis({ persistence: 'none' });
  if (server === undefined) return context.skip('there is no Redis');
  const client = new Redis(server.url);
  const store = redisStore({ client, durability: 'accept-loss' });
  const semel = createSemel({ store, namespace: 'shop' });
  const send = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: day(),
    run: (_: { to: string }) => ({ id: 'x'.repeat(191) }),
  });
  const used = async () => {
    await client.call('memory', 'purge');
    return Number(/used_memory_dataset:(\d+)/.exec(await client.info('memory'))?.[1]);
  };
  await send({ to: 'first@example.com' });
  const before = await used();
  let next = 0;
  const caller = async () => {
    for (; next < count; ) {
      next += 1;
      await send({ to: `user-${next}@example.com` });
    }
  };
  await Promise.all(Array.from({ length: 256 }, caller));
  const keys = await client.dbsize();
  // What the table of keys takes is overhead of Redis, and not in the figure above.
  const overhead = Number(
    /overhead.hashtable.main\D+(\d+)/.exec(String(await client.call('memory', 'stats')))?.[1],
  );
  const each = ((await used()) - before + overhead) / count;
  console.log(`${each.toFixed(0)} bytes per record, ${keys} keys`);
  expect(each).toBeLessThanOrEqual(520);
  await semel.close();
  client.disconnect();
});
