import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Duration, durationMs, formatDuration } from './duration.ts';

const unitMs = { ms: 1n, s: 1000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n, w: 604_800_000n };
const century = 3_155_760_000_000;

describe('durationMs', () => {
  test.each<readonly [value: Duration, ms: number]>([
    [0, 0],
    [1500, 1500],
    ['0s', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['1.5h', 5_400_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    ['1.005s', 1005],
    ['36525d', century],
    [century, century],
  ])('reads %j as %d ms', (value, ms) => {
    expect(durationMs(value, 'lease')).toBe(ms);
  });

  test('reads every decimal exactly, or refuses it', () => {
    const unit = fc.constantFrom(...(Object.keys(unitMs) as (keyof typeof unitMs)[]));
    fc.assert(
      fc.property(fc.nat(5000), fc.stringMatching(/^\d{0,6}$/), unit, (whole, fraction, name) => {
        const text = `${whole}${fraction === '' ? '' : `.${fraction}`}${name}` as Duration;
        const scale = 10n ** BigInt(fraction.length);
        const scaled = (BigInt(whole) * scale + BigInt(fraction || 0)) * unitMs[name];
        if (scaled % scale !== 0n || scaled / scale > BigInt(century)) {
          expect(() => durationMs(text, 'window')).toThrow();
        } else {
          expect(durationMs(text, 'window')).toBe(Number(scaled / scale));
        }
      }),
      { numRuns: 1000 },
    );
  });

  test.each<unknown>([
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    century + 1,
    '',
    '15',
    'm',
    '-5m',
    '+5m',
    '1e3s',
    '0x10s',
    ' 5m',
    '5 m',
    '5min',
    '5M',
    '1.m',
    '.5m',
    '1.5ms',
    '0.0001s',
    '36526d',
    `${'9'.repeat(400)}w`,
    null,
    undefined,
    10n,
    ['5m'],
    {},
  ])('refuses case %#, and says the field, what was given and what to write', (value) => {
    expect(() => durationMs(value as Duration, 'retry.backoff')).toThrow(
      expect.objectContaining({
        code: 'CONTRACT_INVALID',
        path: 'retry.backoff',
        message: expect.stringMatching(/^retry\.backoff is .+'15m'/s),
      }),
    );
  });

  test('quotes what was given', () => {
    expect(() => durationMs('5min' as Duration, 'lease')).toThrow(/lease is "5min"/);
    expect(() => durationMs(-1, 'lease')).toThrow(/lease is -1/);
  });
});

describe('formatDuration', () => {
  test.each([
    [0, '0ms'],
    [0.4, '0ms'],
    [250, '250ms'],
    [999.4, '999ms'],
    [999.6, '1s'],
    [1500, '1.5s'],
    [12_340, '12.3s'],
    [59_940, '59.9s'],
    [59_960, '1m'],
    [60_000, '1m'],
    [252_000, '4m12s'],
    [3_599_499, '59m59s'],
    [3_599_500, '1h'],
    [5_400_000, '1h30m'],
    [5_429_000, '1h30m'],
    [5_431_000, '1h31m'],
    [275_000_000, '3d4h'],
    [86_399_999, '1d'],
    [273_600_000, '3d4h'],
    [604_800_000, '7d'],
    [-252_000, '-4m12s'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
  ])('shows %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('is never off by more than half of its smaller unit, and never shows a full unit as a rest', () => {
    fc.assert(
      fc.property(fc.oneof(fc.nat(1e5), fc.nat(1e7), fc.nat(1e9), fc.maxSafeNat()), (ms) => {
        const parts = [...formatDuration(ms).matchAll(/([\d.]+)(ms|[smhd])/g)].map((part) => ({
          count: Number(part[1]),
          unit: part[2] as keyof typeof unitMs,
        }));
        const shown = parts.reduce((sum, { count, unit }) => sum + count * Number(unitMs[unit]), 0);
        const steps = { ms: 0.5, s: 50, m: 500, h: 30_000, d: 1_800_000, w: 0 };
        expect(Math.abs(shown - ms)).toBeLessThanOrEqual(steps[parts[0]!.unit]);
        const full = { ms: 1000, s: 60, m: 60, h: 24, d: Number.POSITIVE_INFINITY, w: 0 };
        for (const { count, unit } of parts) expect(count).toBeLessThan(full[unit]);
      }),
    );
  });
});
