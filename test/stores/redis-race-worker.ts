// One of several processes on one ledger in Redis: claims every key, in an order of its own, some at a time, settles what
// it won, and says each win once it was told.
import { randomBytes } from 'node:crypto';
import { redisStore } from '../../src/stores/redis/index.ts';
import { attemptOf, claimRequest } from '../../src/testing/store-contract/attempt.ts';

const { url, count, together } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string;
  count: number;
  together: number;
};
const store = redisStore({ url });
await store.open();

const keys = Array.from({ length: count }, (_, i) => `race/=${i}`);
for (let i = keys.length - 1; i > 0; i -= 1) {
  const j = Math.floor(Math.random() * (i + 1));
  [keys[i], keys[j]] = [keys[j] as string, keys[i] as string];
}

async function caller(): Promise<void> {
  for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
    const request = claimRequest({ key, token: randomBytes(8).toString('hex'), crossing: true });
    const answer = await store.claim(request);
    if (!answer.won) continue;
    console.log(JSON.stringify({ key }));
    await attemptOf(store, request, answer.record, answer.takeover).succeed(`"${process.pid}"`);
  }
}
await Promise.all(Array.from({ length: together }, caller));
await store.close();
