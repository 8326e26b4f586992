// Reading is synchronous in SQLite: a program that reads a whole ledger must still answer to others.
import { expect, onTestFinished, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { newPathInMemory } from './sqlite-folder.ts';

test('other work gets its turn between two pages of a list', async () => {
  const store = sqliteStore({ path: newPathInMemory() });
  onTestFinished(() => store.close());
  const semel = createSemel({ store, namespace: 'shop', prune: false });
  onTestFinished(() => semel.close());
  for (let n = 0; n < 5; n += 1) await semel.once('mail.send', `m${n}`, async () => n);
  let turns = 0;
  let isReading = true;
  const other = () => {
    turns += 1;
    if (isReading) setImmediate(other);
  };
  setImmediate(other);
  for (let after: string | undefined, pages = 0; pages === 0 || after !== undefined; pages += 1) {
    const page = await store.list({ namespace: 'shop', limit: 1, ...(after === undefined ? {} : { after }) });
    after = page.next;
  }
  isReading = false;
  expect(turns).toBeGreaterThanOrEqual(5);
});
