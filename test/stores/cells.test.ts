// What a store on cells arranges itself, because its service compares one cell with one tag and no more: late writes, lost
// replies, fences of removed records, other forms of a key.

import { expect, test } from 'vitest';
import { dateClock } from '../../src/store/cells/date-clock.ts';
import { metaName } from '../../src/store/cells/index.ts';
import type { ClaimAnswer, Store } from '../../src/store/index.ts';
import {
  attemptOf,
  claimRequest,
  day,
  lease,
  take,
  theKey,
  theNamespace,
} from '../../src/testing/store-contract/attempt.ts';
import { type MemoryCells, memoryCells, nameOf } from './memory-cells.ts';

const cellOf = (service: MemoryCells, key = theKey) =>
  service.cells.get(nameOf({ namespace: theNamespace, key }));

/** Asks again with the same token, as the ledger does. */
async function claimUntilAnswered(
  store: Store,
  request: ReturnType<typeof claimRequest>,
): Promise<ClaimAnswer | undefined> {
  for (let tries = 1; tries <= 6; tries += 1) {
    try {
      return await store.claim(request);
    } catch {}
  }
  return undefined;
}

test('a claim whose reply was lost is recognised', async () => {
  const service = memoryCells();
  let lost = 0;
  const store = service.open({
    onWritten({ namespace }) {
      if (namespace !== theNamespace || lost > 0) return undefined;
      lost += 1;
      return 'not done';
    },
  });
  const { fence, record } = await take(store);
  expect(lost).toBe(1);
  expect(await store.read(theNamespace, theKey)).toMatchObject({ fence, status: 'running' });
  // A takeover is told as one, not as the repeat of a claim.
  service.aheadMs += record.leaseLeftMs + 1_000;
  lost = 0;
  expect((await take(store)).takeover).toBe(true);
  expect(lost).toBe(1);
  await store.close();
});

test('a write that arrives after its time is decided again: a lease that is over dispatches nothing', async () => {
  const service = memoryCells();
  let isSlow = false;
  const store = service.open({
    onWritten() {
      if (isSlow) service.aheadMs += lease + 5_000;
      isSlow = false;
      return undefined;
    },
  });
  const attempt = await take(store);
  isSlow = true;
  expect(await attempt.dispatch()).toMatchObject({ ok: false, why: 'lapsed' });
  await store.close();
});

test('a removed record leaves its fence for a day, so that a delayed first claim finds it taken', async () => {
  const service = memoryCells();
  const store = service.open();
  const retention = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
  const stale = service.open();
  await stale.open();
  const first = await take(store, { retention });
  await first.succeed();
  expect(await store.prune(10)).toBe(1);
  expect(await store.read(theNamespace, theKey)).toBeUndefined();
  expect(await store.prune(10)).toBe(0);
  expect(JSON.parse(cellOf(service)?.text ?? '{}').gone).toBeDefined();

  // It does not know yet that anything was removed.
  const request = claimRequest({ retention });
  const answer = await stale.claim(request);
  if (!answer.won) throw new Error('it lost');
  const second = attemptOf(stale, request, answer.record, false);
  expect(second.fence).toBeGreaterThan(first.fence);
  await second.succeed();
  expect(await store.prune(10)).toBe(1);
  service.aheadMs += day + 1_000;
  expect(await store.prune(10)).toBe(0);
  expect(cellOf(service)).toBeUndefined();
  const third = await take(store, { retention });
  expect(third.fence).toBeGreaterThan(second.fence);
  await store.close();
});

test('in the background, one program prunes for all; on request, each does', async () => {
  const service = memoryCells();
  const [one, other] = [service.open(), service.open()];
  const retention = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
  for (const key of ['mail.send/=a', 'mail.send/=b']) await (await take(one, { key, retention })).succeed();
  expect(await one.prune(1, true)).toBe(0);
  service.aheadMs += day;
  expect(await one.prune(1, true)).toBe(1);
  expect(await other.prune(10, true)).toBe(0);
  expect(await one.prune(10, true)).toBe(1);
  await (await take(one, { key: 'mail.send/=c', retention })).succeed();
  expect(await one.prune(10, true)).toBe(0);
  expect(await other.prune(10)).toBe(1);
});

test('a ledger that was replaced is refused', async () => {
  const service = memoryCells();
  const store = service.open();
  await take(store);
  service.cells.delete(nameOf(metaName));
  await expect(service.open().open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
  service.cells.clear();
  await service.open().open();
  await expect(store.append([])).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
});

/** Mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test('of two workers with two forms of a key, one wins, whatever is late or lost', async () => {
  const older = { key: 'mail.send/=old', crossing: true } as const;
  const newer = { key: 'mail.send/=new', olderKeys: [older.key], crossing: true } as const;
  let wins = 0;
  for (let seed = 1; seed <= 400; seed += 1) {
    const chance = randomOf(seed);
    const service = memoryCells();
    await service.open().open();
    // A worker with the new form died between its link and its claim.
    if (chance() < 0.7) {
      const dying = service.open({
        onWritten({ namespace }) {
          if (namespace === theNamespace) throw new Error('died');
          return undefined;
        },
      });
      await dying.claim(claimRequest(newer)).catch(() => undefined);
    }
    const network = {
      async wait() {
        for (let turns = Math.floor(chance() * 4); turns > 0; turns -= 1)
          await new Promise((resolve) => setImmediate(resolve));
      },
      onWritten() {
        if (chance() < 0.2) throw new Error('the reply was lost');
        return chance() < 0.1 ? ('not done' as const) : undefined;
      },
    };
    const answers = await Promise.all(
      [newer, older, newer].map((form) => claimUntilAnswered(service.open(network), claimRequest(form))),
    );
    const won = answers.filter((answer) => answer?.won);
    expect(won.length, `seed ${seed}`).toBeLessThanOrEqual(1);
    wins += won.length;
  }
  // Most of them: a worker whose replies are all lost gives up.
  expect(wins).toBeGreaterThan(250);
});

test("the clock of a service is never ahead of it, and better than its header's seconds", () => {
  const clock = dateClock();
  const trueTime = (mono: number) => Date.UTC(2026, 5, 19, 9, 2) + mono;
  const header = (mono: number) => new Date(Math.floor(trueTime(mono) / 1_000) * 1_000).toUTCString();
  expect(clock.at(0)).toBeUndefined();
  for (let mono = 137; mono < 60_000; mono += 733) {
    clock.learn(header(mono), mono - 20, mono + 20);
    const behind = trueTime(mono + 20) - (clock.at(mono + 20) as number);
    expect(behind).toBeGreaterThanOrEqual(0);
    expect(behind).toBeLessThan(mono < 20_000 ? 1_100 : 200);
  }
  clock.learn(null, 60_000, 60_010);
  clock.learn('yesterday', 60_000, 60_010);
  // Set back by an hour: learnt at once.
  clock.learn(header(60_100 - 3_600_000), 60_090, 60_110);
  expect(clock.at(60_110)).toBeLessThan(trueTime(60_110) - 3_590_000);
});
