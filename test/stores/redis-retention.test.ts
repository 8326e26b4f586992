// Retention finds every record by the lists of names, and leaves nothing behind.
import { Redis } from 'ioredis';
import { redisStore } from 'semel/redis';
import { expect, test } from 'vitest';
import { take, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { startRedis } from '../servers/redis.ts';

const names = [
  'a',
  'ab',
  'ä',
  'äö',
  'å',
  '😀',
  '😁',
  '👩‍👩‍👧',
  '',
  '\x7f',
  '\x00z',
  'x'.repeat(500),
  `${'x'.repeat(500)}y`,
];

test('whatever the keys are called, nothing is left of what was forgotten', async (context) => {
  await using server = await startRedis();
  if (server === undefined) return context.skip('there is no Redis');
  const client = new Redis(server.url);
  const store = redisStore({ client });
  const about = { namespace: theNamespace, decidedAt: Date.now(), by: 'me', note: null, force: false };
  for (const [index, name] of names.entries()) {
    const key = `mail.send/=${name}`;
    const holder = await take(store, { key });
    await holder.succeed();
    await store.append([{ ...about, key, generation: 1, fence: 1, type: 'replayed', detail: {} }]);
    const seen = { fence: holder.fence, dispatchedAt: null };
    const forgotten = await store.resolve({
      ...about,
      key,
      seen,
      act: { type: 'forget' },
      token: `act-${index}`,
    });
    expect(forgotten.ok).toBe(true);
  }
  let removed = 0;
  for (let count = -1; count !== 0; removed += count) count = await store.prune(5);
  expect(removed).toBe(names.length);
  expect((await store.list({ namespace: theNamespace, limit: 100 })).items).toEqual([]);
  // What was filed for the day on which it would have expired is dropped then; its record is gone.
  const left = (await client.keys('*')).map((key) => key.replace(/:.*/s, '')).sort();
  expect([...new Set(left)]).toEqual(['semel{0}due', 'semel{0}meta', 'semel{0}namespaces', 'semel{0}slots']);
  await store.close();
  client.disconnect();
});
