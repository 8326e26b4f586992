// Claims and settles without end, a line after each; until it is killed.
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { take } from '../../src/testing/store-contract/attempt.ts';

const [path = '', name = ''] = process.argv.slice(2);
const store = sqliteStore({ path });
for (let nth = 0; ; nth += 1) {
  await (await take(store, { key: `mail.send/=${name}-${nth}` })).succeed('x'.repeat(nth % 3000));
  process.stdout.write(`${nth}\n`);
}
