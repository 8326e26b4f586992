// Retention finds what has expired by its index, oldest first, also behind what has to stay.
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
  onTestFinished(() => store.close());
  return {
    store,
    pass(ms: number) {
      now += ms;
    },
    succeed: async (key: string) => (await take(store, { key })).succeed(),
    forget: (key: string) => decide(store, key, { type: 'forget' }),
  };
}

test('a page at a time, until nothing is left', async () => {
  const { succeed, pass, store } = ledger();
  for (let i = 0; i < 50; i += 1) await succeed(`mail.send/2026-06-19/${i}`);
  pass(window);
  expect(await store.prune(20)).toBe(20);
  expect(await store.prune(100)).toBe(30);
  expect(await store.prune(100)).toBe(0);
});

test('what expires later in the same hour is found later', async () => {
  const { succeed, pass, store } = ledger();
  await succeed('mail.send/conversation/a');
  pass(20 * minute);
  await succeed('mail.send/conversation/b');
  pass(window - 20 * minute);
  expect(await store.prune(100)).toBe(1);
  expect(await store.read(theNamespace, 'mail.send/conversation/b')).toBeDefined();
  pass(20 * minute);
  expect(await store.prune(100)).toBe(1);
});

test('what is forgotten goes at once', async () => {
  const { succeed, forget, store } = ledger();
  for (const name of ['a', 'b']) {
    await succeed(`mail.send/2026-06-19/${name}`);
    await forget(`mail.send/2026-06-19/${name}`);
    expect(await store.prune(100)).toBe(1);
  }
});

test('what another process removed is created and found again', async () => {
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

test('a record that was claimed again does not expire at its old time', async () => {
  const { store, pass } = ledger();
  await (await take(store)).settle('released');
  await take(store, { leaseMs: 10 * window });
  pass(2 * hour);
  expect(await store.prune(100)).toBe(0);
});

test('finds more records than one read returns', async () => {
  const { store, pass, succeed } = ledger();
  for (let nth = 0; nth < 520; nth += 1) await succeed(`mail.send/=${nth}`);
  pass(window + hour);
  expect(await store.prune(1000)).toBe(520);
});
