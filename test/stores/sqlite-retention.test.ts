// Retention looks where something expires: an entry stands for an hour and a period, not for a record.
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { hour, minute, take, theNamespace, window } from '../../src/testing/store-contract/attempt.ts';
import { newPathInMemory } from './sqlite-folder.ts';
import { decide } from './sqlite-verdict.ts';

function ledger() {
  const path = newPathInMemory();
  let now = Date.UTC(2026, 5, 19, 9);
  const clock = { ...systemClock, now: () => now, mono: () => now };
  const store = sqliteStore({ path, clock });
  const inspected = () => new DatabaseSync(path);
  onTestFinished(() => store.close());
  return {
    store,
    pass(ms: number) {
      now += ms;
    },
    succeed: async (key: string) => (await take(store, { key })).succeed(),
    forget: (key: string) => decide(store, key, { type: 'forget' }),
    entries(): number {
      const database = inspected();
      const row = database.prepare('SELECT count(*) AS n FROM expiry').get() as { n: number };
      database.close();
      return row.n;
    },
  };
}

test('the successes of one period share an entry', async () => {
  const { succeed, entries, pass, store } = ledger();
  for (let i = 0; i < 50; i += 1) await succeed(`mail.send/2026-06-19/${i}`);
  expect(entries()).toBe(1);
  pass(window);
  expect(await store.prune(20)).toBe(20);
  expect(await store.prune(100)).toBe(30);
  expect(await store.prune(100)).toBe(0);
  expect(entries()).toBe(0);
});

test('what expires later in the same hour is found later', async () => {
  const { succeed, pass, store, entries } = ledger();
  await succeed('mail.send/conversation/a');
  pass(20 * minute);
  await succeed('mail.send/conversation/b');
  expect(entries()).toBe(1);
  pass(window - 20 * minute);
  expect(await store.prune(100)).toBe(1);
  expect(await store.read(theNamespace, 'mail.send/conversation/b')).toBeDefined();
  pass(20 * minute);
  expect(await store.prune(100)).toBe(1);
  expect(entries()).toBe(0);
});

test('what is noted again after its entry was taken is found again', async () => {
  const { succeed, forget, store } = ledger();
  for (const name of ['a', 'b']) {
    await succeed(`mail.send/2026-06-19/${name}`);
    await forget(`mail.send/2026-06-19/${name}`);
    expect(await store.prune(100)).toBe(1);
  }
});

test('what another process noted and took is noted again', async () => {
  const { succeed, forget, store } = ledger();
  await succeed('mail.send/2026-06-19/a');
  await forget('mail.send/2026-06-19/a');
  const other = sqliteStore({ path: (await store.open()).location });
  expect(await other.prune(100)).toBe(1);
  await other.close();
  await succeed('mail.send/2026-06-19/b');
  await forget('mail.send/2026-06-19/b');
  expect(await store.prune(100)).toBe(1);
});

test('records of a caller’s own keys and failures are found one by one, behind many that stay', async () => {
  const { store, pass, succeed } = ledger();
  for (let i = 0; i < 30; i += 1) await succeed(`mail.send/2026-06-19/${i}`);
  await (await take(store, { key: 'mail.send/2026-06-19/failed' })).settle('failed');
  await (await take(store, { key: 'mail.send/=own/' })).settle('released');
  pass(hour);
  expect(await store.prune(100)).toBe(2);
  pass(window);
  expect(await store.prune(100)).toBe(30);
});

test('a record that was claimed again does not go with its old expiry', async () => {
  const { store, pass } = ledger();
  await (await take(store)).settle('released');
  await take(store, { leaseMs: 10 * window });
  pass(2 * hour);
  expect(await store.prune(100)).toBe(0);
});
