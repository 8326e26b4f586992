import { expect, test } from 'vitest';
import { countMissed, isLateStart, slotTimeOf } from './job-slots.ts';

const at = Date.parse;
const timeOf = (start: string, slot: string) => slotTimeOf('run.x', `run.x/${start}/digest`, slot)!;

test.each([
  // In Los Angeles, 20:00 of that day.
  ['day', '2026-11-19T08:00Z', '2026-11-19', '2026-11-20T04:00Z', false],
  ['day', '2026-11-19T08:00Z', '2026-11-19', '2026-11-20T10:00Z', true],
  // In Tokyo, 14:00 of that day.
  ['day', '2026-11-18T15:00Z', '2026-11-19', '2026-11-19T05:00Z', false],
  // The day on which the clocks go back has 25 hours.
  ['day', '2026-11-01T07:00Z', '2026-11-01', '2026-11-02T07:30Z', false],
  ['hour', '2026-11-19T22:30Z', '2026-11-20T04+05:30', '2026-11-19T23:29Z', false],
  ['hour', '2026-11-19T22:30Z', '2026-11-20T04+05:30', '2026-11-19T23:31Z', true],
  ['week', '2026-11-16T00:00Z', '2026-W47', '2026-11-22T23:00Z', false],
  ['week', '2026-11-16T00:00Z', '2026-W47', '2026-11-23T02:00Z', true],
  ['month', '2026-02-01T00:00Z', '2026-02', '2026-02-28T23:00Z', false],
  ['month', '2026-02-01T00:00Z', '2026-02', '2026-03-01T02:00Z', true],
  // How long the slot of a schedule is, the record does not say.
  ['cron', '2026-11-19T23:00Z', '2026-11-19T15:00-08:00', '2026-11-20T04:00Z', false],
] as const)('a slot per %s from %s (%s), begun at %s, is late: %s', (unit, start, slot, begun, isLate) => {
  expect(isLateStart(unit, timeOf(start, slot), at(begun))).toBe(isLate);
});

const dates = ['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19'];
const missedOf = (unit: string, slots: [string, string][], now: string, first = slots[0]) =>
  Object.fromEntries(
    countMissed(
      unit,
      dates,
      slots.map(([start, slot]) => timeOf(start, slot)),
      first && timeOf(...first),
      at(now),
    ),
  );

test('a day without a run is missed when it is over in its own zone', () => {
  const slots: [string, string][] = [
    ['2026-11-16T08:00Z', '2026-11-16'],
    ['2026-11-18T08:00Z', '2026-11-18'],
  ];
  expect(missedOf('day', slots, '2026-11-20T07:59Z')).toEqual({ '2026-11-17': 1 });
  expect(missedOf('day', slots, '2026-11-20T08:00Z')).toEqual({ '2026-11-17': 1, '2026-11-19': 1 });
});

test('a job that has stopped before the days that are shown has missed all of them', () => {
  expect(missedOf('day', [], '2026-11-19T12:00Z', ['2026-10-01T00:00Z', '2026-10-01'])).toEqual({
    '2026-11-16': 1,
    '2026-11-17': 1,
    '2026-11-18': 1,
  });
});

test('hours and weeks are missed too; of a schedule, nobody knows', () => {
  const hours: [string, string][] = [
    ['2026-11-18T18:30Z', '2026-11-19T00+05:30'],
    ['2026-11-18T20:30Z', '2026-11-19T02+05:30'],
  ];
  expect(missedOf('hour', hours, '2026-11-18T22:31Z')).toEqual({ '2026-11-19': 2 });
  expect(missedOf('week', [], '2026-11-23T00:00Z', ['2026-11-09T00:00Z', '2026-W46'])).toEqual({});
  expect(missedOf('week', [], '2026-11-23T00:00Z', ['2026-11-02T00:00Z', '2026-W45'])).toEqual({});
  expect(missedOf('cron', [], '2026-11-19T12:00Z', ['2026-11-09T00:00Z', '2026-11-09T00:00Z'])).toEqual({});
});
