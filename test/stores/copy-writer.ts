// A program that goes on using a ledger while it is moved: claims and settles until it is told that the ledger is
// elsewhere, and says of each record what it was told.
import { writeSync } from 'node:fs';
import { isSemelError } from '../../src/core/errors.ts';
import { storeAt } from '../../src/semel/index.ts';
import { attemptOf, claimRequest } from '../../src/testing/store-contract/attempt.ts';

const [url = '', name = ''] = process.argv.slice(2);
const store = await storeAt(url);
await store.open();
writeSync(1, 'ready\n');

async function caller(nth: number): Promise<void> {
  for (let i = 0; ; i += 1) {
    const key = `write/=${name}-${nth}-${i}`;
    const request = claimRequest({ key, token: `${name}-${nth}-${i}`, crossing: true });
    const answer = await store.claim(request);
    if (!answer.won) throw new Error(`lost ${key}`);
    writeSync(1, `claimed ${key}\n`);
    // Every third is left open.
    if (i % 3 === 0) continue;
    await attemptOf(store, request, answer.record, answer.takeover).succeed(`"${key}"`);
    writeSync(1, `settled ${key}\n`);
  }
}

const ends = await Promise.allSettled(Array.from({ length: 4 }, (_, nth) => caller(nth)));
for (const end of ends) {
  const error = end.status === 'rejected' ? end.reason : undefined;
  writeSync(1, `ended ${isSemelError(error) ? `${error.code} ${error.message}` : String(error)}\n`);
}
await store.close();
