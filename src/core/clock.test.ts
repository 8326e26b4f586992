// Two processes that were started from one snapshot of memory have drawn the same randomness in advance.

import crypto from 'node:crypto';
import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => void vi.restoreAllMocks());

/** The module anew, as a copy of the process has it. */
async function copy() {
  vi.resetModules();
  return (await import('./clock.ts')).systemRandom;
}

test('the tokens of two copies of a process differ', async () => {
  const pool = crypto.randomBytes(8_192);
  vi.doMock('node:crypto', () => ({ randomFillSync: (buffer: Buffer) => pool.copy(buffer) }));
  const [one, other] = [await copy(), await copy()];
  const drawn = Array.from({ length: 1_000 }, () => [one.token(), other.token()]).flat();
  expect(new Set(drawn).size).toBe(2_000);
  for (const token of drawn) expect(token).toMatch(/^[0-9a-f]{16}$/);
  vi.doUnmock('node:crypto');
});

test('so do the numbers by which they tell their writes apart', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.9);
  const [one, other] = [await copy(), await copy()];
  const drawn = Array.from({ length: 1_000 }, () => [one.fraction(), other.fraction()]).flat();
  expect(new Set(drawn).size).toBe(2_000);
  for (const part of drawn) expect(part >= 0 && part < 1).toBe(true);
});
