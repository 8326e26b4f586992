import { expect, test } from 'vitest';
import { instantOf } from './instant.ts';

const at = Date.UTC(2026, 5, 19, 9, 2, 3);

test.each([
  [at],
  [at / 1000],
  [at * 1000],
  [String(at)],
  [`${at / 1000}.000`],
  ['2026-06-19T09:02:03Z'],
  ['2026-06-19T11:02:03+02:00'],
  ['2026-06-19T11:02:03+0200'],
  ['2026-06-19 09:02:03'],
  ['2026-06-19 09:02:03,000'],
  [' 2026-06-19T09:02:03.000Z '],
  ['19/Jun/2026:11:02:03 +0200'],
  ['Fri, 19 Jun 2026 09:02:03 GMT'],
])('%j is that instant', (value) => {
  expect(instantOf(value)).toBe(at);
});

test('a date alone is its first instant', () => {
  expect(instantOf('2026-06-19')).toBe(Date.UTC(2026, 5, 19));
});

test.each([42, '', 'soon', '06/07/2026', Number.NaN, null, true, '2026-13-45', 'x'.repeat(1_000)])(
  '%j is no instant',
  (value) => {
    expect(instantOf(value)).toBeUndefined();
  },
);
