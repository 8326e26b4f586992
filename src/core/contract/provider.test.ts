import { expect, test } from 'vitest';
import { computeRerunWindow } from './provider.ts';

const minute = 60_000;
const provider = { name: 'pay', window: '24h', hosts: ['pay.example'] } as const;

test('a key is trusted for less than its window: the last request takes its time, and the network another minute', () => {
  const kept = {
    windowMs: 20 * 60 * minute,
    windowField: 'window' as const,
    timeoutMs: 5 * minute,
    isDecided: false,
  };
  expect(computeRerunWindow('charge', provider, kept)).toBe((24 * 60 - 5 - 1) * minute);
  expect(computeRerunWindow('charge', { ...provider, window: '3m' }, { ...kept, isDecided: true })).toBe(0);
});
