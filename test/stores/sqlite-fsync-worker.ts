// Claims one key after the other and tells how each went; run under strace, which makes some fsyncs fail.
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { claimRequest } from '../../src/testing/store-contract/attempt.ts';

const [path = ''] = process.argv.slice(2);
const store = sqliteStore({ path });
const told: { key: string; code?: string }[] = [];
for (let i = 0; i < 40; i += 1) {
  const key = `mail.send/=${i}`;
  await store.claim(claimRequest({ key })).then(
    () => told.push({ key }),
    (error) => told.push({ key, code: error.code }),
  );
}
await store.close();
console.log(JSON.stringify(told));
