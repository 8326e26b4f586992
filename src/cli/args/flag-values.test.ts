import { describe, expect, test } from 'vitest';
import { flagReader, maxTimerMs } from './flag-values.ts';

const read = (x: string | readonly string[] | undefined) => flagReader('ls', { x });

describe('an instant', () => {
  test.each([
    ['2026-06-19', Date.UTC(2026, 5, 19)],
    ['2026-06-19T09:02', Date.UTC(2026, 5, 19, 9, 2)],
    ['2026-06-19 09:02:03Z', Date.UTC(2026, 5, 19, 9, 2, 3)],
    ['2026-06-19T09:02+02:00', Date.UTC(2026, 5, 19, 7, 2)],
    ['1781858523', 1_781_858_523_000],
    ['1781858523000', 1_781_858_523_000],
  ])('%j is read as UTC unless it has a zone', (text, at) => {
    expect(read(text).instant('x')).toBe(at);
  });

  test('of a zone is what its clocks show, and one that they skip is the first after the gap', () => {
    expect(read('2026-06-19T09:00').instant('x', 'Europe/Paris')).toBe(Date.UTC(2026, 5, 19, 7));
    expect(read('2026-06-19').instant('x', 'America/New_York')).toBe(Date.UTC(2026, 5, 19, 4));
    expect(read('2026-03-29T02:30').instant('x', 'Europe/Paris')).toBe(Date.UTC(2026, 2, 29, 1));
    expect(read('2026-06-19T09:00Z').instant('x', 'Europe/Paris')).toBe(Date.UTC(2026, 5, 19, 9));
  });

  test.each(['2026-02-30', '19.06.2026', '2026-06-19T25:00', '', '1', 'may 5', 'tomorrow', '9'.repeat(100)])(
    '%j is none',
    (text) => {
      expect(() => read(text).instant('x')).toThrow('is not a time');
    },
  );
});

describe('a duration', () => {
  test('is milliseconds, or what is usual', () => {
    expect(read('1.5h').duration('x', 0)).toBe(5_400_000);
    expect(read(undefined).duration('x', 7)).toBe(7);
    expect(read(undefined).duration('x', undefined)).toBeUndefined();
  });

  test.each(['500', 'soon', '-1s', '1 h', '', '200000w'])('%j is none', (text) => {
    expect(() => read(text).duration('x', 0)).toThrow('is not a duration. Write it like 500ms');
  });

  test('has its limits', () => {
    expect(() => read('1s').duration('x', 0, { from: 10_000 })).toThrow('--x must be at least 10s');
    expect(() => read('25d').duration('x', 0, { to: maxTimerMs })).toThrow('--x must be at most 24d');
  });
});

test.each(['-1', '0', '11', '1.5', '1e1', '0x1', '', 'ten', '99999999999'])(
  '%j is not a number from 1 to 10',
  (text) => {
    expect(() => read(text).whole('x', 5, { from: 1, to: 10 })).toThrow('Write a whole number from 1 to 10');
  },
);

test('pairs are divided at the first equals sign', () => {
  expect(read(['a=b=c', 'd=']).pairs('x', 'a=b')).toEqual([
    ['a', 'b=c'],
    ['d', ''],
  ]);
  expect(read(undefined).pairs('x', 'a=b')).toEqual([]);
  for (const wrong of ['a', '=b']) expect(() => read([wrong]).pairs('x', 'a=b')).toThrow('--x a=b');
});
