import { describe, expect, test } from 'vitest';
import { parseCron } from './cron.ts';

const at = (text: string) => Date.parse(text);
const latest = (expression: string, zone: string, when: string) => {
  const found = parseCron(expression).latest(zone, at(when));
  return found === undefined ? undefined : new Date(found).toISOString();
};

describe('the latest instant', () => {
  test.each([
    ['30 6 * * *', 'UTC', '2026-06-19T06:30:00Z', '2026-06-19T06:30:00.000Z'],
    ['30 6 * * *', 'UTC', '2026-06-19T06:29:59Z', '2026-06-18T06:30:00.000Z'],
    ['30 6 * * *', 'Europe/Paris', '2026-06-19T06:29:59Z', '2026-06-19T04:30:00.000Z'],
    ['*/15 * * * *', 'UTC', '2026-06-19T06:44:00Z', '2026-06-19T06:30:00.000Z'],
    ['5-10/5 9,17 * * *', 'UTC', '2026-06-19T16:00:00Z', '2026-06-19T09:10:00.000Z'],
    // 2026-06-19 is a Friday.
    ['0 7 * * 1-5', 'UTC', '2026-06-21T12:00:00Z', '2026-06-19T07:00:00.000Z'],
    ['0 7 * * mon-FRI', 'UTC', '2026-06-21T12:00:00Z', '2026-06-19T07:00:00.000Z'],
    ['0 7 * * 7', 'UTC', '2026-06-22T06:00:00Z', '2026-06-21T07:00:00.000Z'],
    ['0 7 * * 0', 'UTC', '2026-06-22T06:00:00Z', '2026-06-21T07:00:00.000Z'],
    ['0 0 1 jan *', 'UTC', '2026-06-21T12:00:00Z', '2026-01-01T00:00:00.000Z'],
    ['0 0 29 2 *', 'UTC', '2031-06-21T12:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['0 0 29 2 *', 'UTC', '2104-02-01T00:00:00Z', '2096-02-29T00:00:00.000Z'],
    ['@weekly', 'UTC', '2026-06-19T12:00:00Z', '2026-06-14T00:00:00.000Z'],
    ['@hourly', 'Asia/Kolkata', '2026-06-19T12:10:00Z', '2026-06-19T11:30:00.000Z'],
    ['@daily', 'UTC', '2026-06-19T12:10:00Z', '2026-06-19T00:00:00.000Z'],
    ['@midnight', 'UTC', '2026-06-19T12:10:00Z', '2026-06-19T00:00:00.000Z'],
    ['@monthly', 'UTC', '2026-06-19T12:10:00Z', '2026-06-01T00:00:00.000Z'],
    ['@yearly', 'UTC', '2026-06-19T12:10:00Z', '2026-01-01T00:00:00.000Z'],
    ['@Annually', 'UTC', '2026-06-19T12:10:00Z', '2026-01-01T00:00:00.000Z'],
    // Both days restricted: either counts. The 15th was a Monday.
    ['0 0 15 * 3', 'UTC', '2026-06-16T12:00:00Z', '2026-06-15T00:00:00.000Z'],
    ['0 0 15 * 3', 'UTC', '2026-06-18T12:00:00Z', '2026-06-17T00:00:00.000Z'],
  ])('of %s in %s at %s is %s', (expression, zone, when, expected) => {
    expect(latest(expression, zone, when)).toBe(expected);
  });

  test('of a time that the clocks skip is the first instant after the gap', () => {
    // Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC.
    expect(latest('30 2 * * *', 'Europe/Berlin', '2026-03-29T12:00:00Z')).toBe('2026-03-29T01:00:00.000Z');
  });

  test('of a time that comes twice is its first occurrence', () => {
    // Berlin, 25 October 2026: 03:00 becomes 02:00 at 01:00 UTC.
    expect(latest('30 2 * * *', 'Europe/Berlin', '2026-10-25T12:00:00Z')).toBe('2026-10-25T00:30:00.000Z');
  });

  test('of what is due every hour follows elapsed time: the repeated hour has a slot of its own', () => {
    expect(latest('30 * * * *', 'Europe/Berlin', '2026-10-25T01:45:00Z')).toBe('2026-10-25T01:30:00.000Z');
    expect(latest('30 * * * *', 'Europe/Berlin', '2026-10-25T00:45:00Z')).toBe('2026-10-25T00:30:00.000Z');
    expect(latest('30 * * * *', 'Europe/Berlin', '2026-03-29T01:29:00Z')).toBe('2026-03-29T00:30:00.000Z');
  });

  test('of a day that never comes is none', () => {
    expect(latest('0 0 31 2 *', 'UTC', '2026-06-19T12:00:00Z')).toBeUndefined();
  });
});

test.each([
  ['* * * *', 'it has 4 fields, not five'],
  ['60 * * * *', '"60" is not a valid minute'],
  ['* 24 * * *', '"24" is not a valid hour'],
  ['* * 0 * *', '"0" is not a valid day of month'],
  ['* * * foo *', '"foo" is not a valid month'],
  ['* * * * 8', '"8" is not a valid day of week'],
  ['5-1 * * * *', '"5-1" is not a valid range'],
  ['*/0 * * * *', '"*/0" is not a valid step'],
  ['1,,2 * * * *', '"" is not a valid minute'],
  ['-5 * * * *', '"" is not a valid minute'],
  ['', 'it has 1 fields'],
])('%j is refused: %s', (expression, why) => {
  expect(() => parseCron(expression)).toThrow(why);
});

test('every minute of a year is found as itself', () => {
  const cron = parseCron('* * * * *');
  for (let when = at('2026-01-01T00:00:00Z'); when < at('2027-01-01T00:00:00Z'); when += 60_000 * 977)
    for (const zone of ['UTC', 'Europe/Berlin', 'Australia/Lord_Howe'])
      expect(cron.latest(zone, when)).toBe(when);
});

test('a name that every object has is refused as any other word', () => {
  expect(() => parseCron('constructor')).toThrow('it has 1 fields, not five');
});
