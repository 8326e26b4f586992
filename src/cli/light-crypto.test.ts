import crypto from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hash, randomBytes } from './light-crypto.ts';

const encodings = ['hex', 'binary', 'base64url', 'buffer'] as const;

test('a digest is that of node:crypto, for every length around a block', () => {
  for (let length = 0; length <= 300; length += 1) {
    const text = 'semel'.repeat(60).slice(0, length);
    expect(hash('sha256', text)).toBe(crypto.hash('sha256', text));
  }
});

test('a digest is that of node:crypto, for every text', () => {
  const text = fc.string({ unit: 'binary', maxLength: 5000, size: 'max' });
  fc.assert(
    fc.property(
      fc.oneof(text, fc.string({ unit: 'grapheme' })),
      fc.constantFrom(...encodings),
      (data, encoding) => {
        expect(hash('sha256', data, encoding)).toEqual(crypto.hash('sha256', data, encoding as 'hex'));
      },
    ),
    { numRuns: 2000 },
  );
});

test('half of a character is digested as node:crypto does it', () => {
  for (const text of ['\ud83d', 'a\ude00b', '\ud83d\ud83d\ude00'])
    expect(hash('sha256', text)).toBe(crypto.hash('sha256', text));
});

test('what is long, no text, or another algorithm is left to node:crypto', () => {
  expect(hash('sha256', 'x'.repeat(100_000))).toBe(crypto.hash('sha256', 'x'.repeat(100_000)));
  expect(hash('sha256', Buffer.from('bytes'))).toBe(crypto.hash('sha256', Buffer.from('bytes')));
  expect(hash('sha512', 'text')).toBe(crypto.hash('sha512', 'text'));
});

test('random bytes are as many as were asked for, and never the same', () => {
  const all = Array.from({ length: 1000 }, () => randomBytes(10));
  expect(all.every(({ length }) => length === 10)).toBe(true);
  expect(new Set(all.map((bytes) => bytes.toString('hex'))).size).toBe(1000);
  // One bit in two.
  const ones = [...Buffer.concat(all)].reduce(
    (sum, byte) => sum + byte.toString(2).replaceAll('0', '').length,
    0,
  );
  expect(ones / 80_000).toBeCloseTo(0.5, 1);
});
