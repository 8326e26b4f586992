// What a ledger can hold, one of each kind, and whether another holds the same: for those who move it.

import { expect } from 'vitest';
import { isSemelError } from '../../src/core/errors.ts';
import { isSame, type Raw, type RawRecord } from '../../src/store/move/raw.ts';
import type { Store } from '../../src/store/store.ts';
import { type Attempt, day, take } from '../../src/testing/store-contract/attempt.ts';

export const now = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
const ever = { windowMs: day, failureWindowMs: day, keep: true, periodEndsAt: null };

/** One of each kind that a ledger can hold, with its history. */
export async function fill(store: Store): Promise<{ running: Attempt; floor: number }> {
  for (let i = 0; i < 5; i += 1) await (await take(store, { key: 'gone/=1', retention: now })).succeed();
  await store.prune(100);
  await (await take(store, { key: 'mail.send/=done', retention: ever })).succeed(
    JSON.stringify('x'.repeat(5_000)),
  );
  await (await take(store, { key: 'mail.send/=failed', conversation: 'c', turn: 't' })).settle('failed');
  await (await take(store, { key: 'mail.send/=released' })).settle('released');
  await (
    await take(store, {
      key: 'mail.send/=news',
      crossing: true,
      fingerprint: 'f',
      namespace: 'née \u{1f600}',
    })
  ).settle('unknown');
  const unknown = await take(store, { key: 'pay/=unknown', crossing: true });
  await unknown.settle('unknown');
  const rerun = await take(store, { key: 'pay/=unknown', for: 'rerun', crossing: true });
  await rerun.settle('unknown');
  const zombie = await take(store, { key: 'pay/=news', crossing: true });
  await zombie.settle('unknown');
  await take(store, { key: 'pay/=news', for: 'rerun', crossing: true });
  // It was taken over, and reports after all while the other one runs.
  await zombie.succeed('"late"');
  await store.append([
    {
      namespace: 'shop',
      key: 'pay/=unknown',
      generation: unknown.generation,
      fence: rerun.fence,
      type: 'noted',
      detail: { b: 1, a: ['\u0000', 'née'] },
    },
  ]);
  const lapsed = await take(store, { key: 'pay/=lapsed', crossing: true, leaseMs: 1 });
  const running = await take(store, { key: 'pay/=running', crossing: true, leaseMs: 600_000 });
  await Promise.all(
    Array.from({ length: 120 }, async (_, i) => (await take(store, { key: `bulk/=${i}` })).succeed()),
  );
  await (await take(store, { key: 'old/=1', retention: now })).succeed();
  expect(lapsed.fence).toBeGreaterThan(0);
  return { running, floor: running.fence - 1 };
}

export async function all(raw: Raw): Promise<RawRecord[]> {
  const records: RawRecord[] = [];
  for (let after: string | undefined; ; ) {
    const page = await raw.page({ openOnly: false, after, limit: 7 });
    records.push(...page.records);
    if (page.next === undefined) return records;
    after = page.next;
  }
}

export async function expectSame(source: Raw, target: Raw): Promise<void> {
  const startedAt = performance.now();
  const there = await all(source);
  const here = await target.find(there.map(({ row }) => row));
  expect(there.length).toBeGreaterThan(0);
  expect((await all(target)).length).toBe(there.length);
  // Leases run on while they are compared.
  const passedMs = performance.now() - startedAt + 1_000;
  for (const [index, record] of there.entries()) {
    const found = here[index];
    expect(found).toEqual({ ...record, leaseLeftMs: found?.leaseLeftMs });
    expect(isSame(record, found, passedMs)).toBe(true);
  }
}

export async function isUsable(store: Store): Promise<boolean> {
  try {
    await store.append([]);
    return true;
  } catch (error) {
    if (isSemelError(error, 'STORE_MOVED') || isSemelError(error, 'STORE_UNAVAILABLE')) return false;
    throw error;
  }
}
