// Bugs in remote stores that the simulation of test/sim/far found, one test each.
import { expect, test } from 'vitest';
import { type Clock, systemRandom } from '../../src/core/clock.ts';
import type { Held, SettleRequest } from '../../src/store/index.ts';
import type { RemoteBackend } from '../../src/store/remote/backend.ts';
import { remoteStore } from '../../src/store/remote/remote-store.ts';
import {
  claimRequest,
  lease,
  minute,
  newToken,
  second,
  take,
  theKey,
  theNamespace,
} from '../../src/testing/store-contract/attempt.ts';
import { movableTime } from './movable-time.ts';
import { remoteMemoryBackend } from './remote-memory-backend.ts';

/** A far end whose clock and ours agree until a test moves one; pauses pass at once. */
function setting() {
  const here = movableTime();
  const there = movableTime();
  const clock: Clock = {
    ...here.clock,
    setTimeout(run, ms) {
      both(ms);
      return setImmediate(run);
    },
  };
  const backend = remoteMemoryBackend(there.clock.now);
  function both(ms: number): void {
    here.advance(ms);
    there.advance(ms);
  }
  const open = (over: Partial<RemoteBackend> = {}) =>
    remoteStore({ ...backend, ...over }, { clock, random: systemRandom });
  return { backend, open, advance: both, setBack: (ms: number) => there.advance(-ms), now: there.clock.now };
}

function success({ namespace, key, token, fence, generation }: Held): SettleRequest {
  const about = { namespace, key, token, fence, generation };
  return { ...about, outcome: 'succeeded', result: null, error: null, keyed: false, found: false };
}

test('a success reported by a process that has never seen the record settles it', async () => {
  const { open } = setting();
  const held = await take(open());
  expect(await open().settle(success(held))).toMatchObject({ settled: true, fenced: false });
});

test('a success whose reply was lost is sent again and settles', async () => {
  const { backend, open } = setting();
  let isDown = false;
  const store = open({
    async exchange(swaps) {
      if (isDown) throw new Error('connection reset');
      return backend.swap(swaps);
    },
  });
  const held = await take(store);
  isDown = true;
  await expect(store.settle(success(held))).rejects.toThrow('connection reset');
  isDown = false;
  expect(await store.settle(success(held))).toMatchObject({ settled: true, fenced: false });
  expect(await store.history(held.namespace, held.key)).toEqual([]);
});

test('a record is judged by when it was read, however long the answer took', async () => {
  const { backend, open, advance } = setting();
  let backMs = 0;
  const store = open({
    async exchange(swaps) {
      const answer = backend.swap(swaps);
      advance(backMs);
      return answer;
    },
  });
  await take(store);
  backMs = lease;
  // Its holder may have renewed it while the answer was on its way.
  expect(await store.read(theNamespace, theKey)).toMatchObject({ lapsed: false, leaseLeftMs: lease });
});

test("nothing is reported for a moment that the store's clock has not reached", async () => {
  const { open, setBack, now } = setting();
  const store = open();
  await take(store);
  setBack(5 * second);
  expect((await store.read(theNamespace, theKey))?.readAt).toBe(now());
});

test('a store that takes seconds per answer is waited for, not polled for ever', async () => {
  const { backend, open, advance } = setting();
  let exchanges = 0;
  const store = open({
    async exchange(swaps) {
      exchanges += 1;
      if (exchanges > 20) throw new Error('asked for ever');
      advance(4 * second);
      return backend.swap(swaps);
    },
  });
  const held = await take(store);
  expect((await held.succeed()).settled).toBe(true);
});

test("where the store's clock was set back a little, its records are waited for without haste", async () => {
  const { backend, open, advance, setBack } = setting();
  let exchanges = 0;
  const store = open({
    async exchange(swaps) {
      exchanges += 1;
      advance(1);
      return backend.swap(swaps);
    },
  });
  const held = await take(store);
  setBack(1_500);
  exchanges = 0;
  expect((await held.renew()).held).toBe(true);
  expect(exchanges).toBeLessThan(20);
});

test('a locked record that may have an earlier form is IN_FLIGHT', async () => {
  const { backend, open } = setting();
  const store = open();
  const first = await take(store);
  await first.settle('released');
  backend.lock(theNamespace, theKey);
  const request = claimRequest({ olderKeys: ['mail.send/older'] });
  await expect(store.claim(request)).rejects.toMatchObject({ code: 'IN_FLIGHT' });
  backend.unlock(theNamespace, theKey);
  expect((await store.claim(request)).won).toBe(true);
});

test('a new record, and a change to it in the same batch, start above the floor', async () => {
  const { open, advance } = setting();
  const other = open();
  const gone = await take(other);
  await gone.settle('failed');
  advance(61 * minute);
  expect(await other.prune(10)).toBe(1);
  // It does not know of the floor yet, and asks for both in one breath.
  const store = open();
  const claimed = store.claim(claimRequest());
  const seen = { fence: gone.fence, dispatchedAt: null };
  const act = { type: 'died' } as const;
  const about = { namespace: theNamespace, key: theKey, decidedAt: 0, by: 'ada', note: null, force: true };
  await store.resolve({ ...about, seen, act, token: newToken() });
  expect((await claimed).record?.generation).toBeGreaterThan(gone.fence);
});

test('requests made before the store was closed are answered', async () => {
  const { open } = setting();
  const store = open();
  const claimed = store.claim(claimRequest());
  await store.close();
  expect((await claimed).won).toBe(true);
  await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('what waits for a locked record when the store is closed is answered', async () => {
  const { backend, open } = setting();
  const store = open();
  const held = await take(store);
  backend.lock(theNamespace, theKey);
  const settled = held.succeed();
  settled.catch(() => {});
  setImmediate(() => setImmediate(() => setImmediate(() => backend.unlock(theNamespace, theKey))));
  await store.close();
  expect((await settled).settled).toBe(true);
});
