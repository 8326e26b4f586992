// One of several processes on one ledger: claims every key, in an order of its own, some at a time, settles what it
// won, and says each win once it was told.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { attemptOf, claimRequest } from '../../src/testing/store-contract/attempt.ts';

const [path = '', count = '', together = ''] = process.argv.slice(2);
const store = sqliteStore({ path });
await store.open();
writeSync(1, 'ready\n');
await once(process.stdin, 'data');
process.stdin.pause();

const keys = Array.from({ length: Number(count) }, (_, i) => `race/=${i}`);
for (let i = keys.length - 1; i > 0; i -= 1) {
  const j = Math.floor(Math.random() * (i + 1));
  [keys[i], keys[j]] = [keys[j] as string, keys[i] as string];
}

async function caller(): Promise<void> {
  for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
    const request = claimRequest({ key, token: randomBytes(8).toString('hex'), crossing: true });
    const answer = await store.claim(request);
    if (!answer.won) continue;
    writeSync(1, `${key}\n`);
    await attemptOf(store, request, answer.record, answer.takeover).succeed(`"${process.pid}"`);
  }
}
await Promise.all(Array.from({ length: Number(together) }, caller));
await store.close();
