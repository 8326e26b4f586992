// What a cache does with one record: compares words, unless they are longer than what was counted for it, and ages in its sleep.

import { expect, test } from 'vitest';
import { compileWording } from '../core/key/wording.ts';
import type { StoredRecord } from '../store/store.ts';
import { CachedRecord, createCache } from './cache.ts';

const wording = compileWording({ identity: ['id'], content: [], volatile: [] }, []);

function timesDigested(body: string, args: string | null): number {
  let digested = 0;
  const content = () => {
    digested += 1;
    return '{"body":"1"}';
  };
  const cached = new CachedRecord({ args, content: '{"body":"1"}' } as StoredRecord, 0, 0);
  const call = { args: { id: 1, body }, maker: wording === undefined ? {} : { wording }, content };
  for (let replay = 0; replay < 3; replay += 1) expect(cached.driftFrom(call)).toEqual([]);
  return digested;
}

test('words as long as the stored args are compared with the last ones', () => {
  expect(timesDigested('x'.repeat(1_000), 'x'.repeat(1_000))).toBe(1);
});

test('words of args that were too long to be stored are not cached', () => {
  expect(timesDigested('x'.repeat(1_000), null)).toBe(3);
});

test('a record that came before the first lookup does not outlive a sleep', () => {
  const limits = { maxBytes: 10_000, maxAgeMs: 60_000 };
  const place = { namespace: 'n', key: 'k' };
  const record = { ...place, status: 'succeeded', expiresAt: null, readAt: 0 } as StoredRecord;
  const find = (sleptMs: number) => {
    const cache = createCache(limits, { now: () => 1_000_000, mono: () => 0 });
    cache.put(record, 1);
    return cache.get(place, 2, 1_000_002 + sleptMs)?.record;
  };
  expect(find(0)).toBe(record);
  expect(find(3_600_000)).toBeUndefined();
});
