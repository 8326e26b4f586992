import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  type CalendarPeriod,
  calendarSlot,
  day,
  hour,
  isCalendarPeriod,
  minute,
  month,
  type Slot,
  type Unit,
  week,
} from './period.ts';

const make = { minute, hour, day, week, month };
const everyUnit = Object.keys(make) as Unit[];
const hourMs = 3_600_000;

/** Asked after something far away, so that the last slot cannot answer. */
function calendarSlotAfresh(period: CalendarPeriod, at: number): Slot {
  calendarSlot(period, at - 100 * 24 * hourMs);
  return calendarSlot(period, at);
}

function slotOf(period: CalendarPeriod, instant: string) {
  const { slot, startsAt, endsAt } = calendarSlotAfresh(period, Date.parse(instant));
  return [slot, new Date(startsAt).toISOString(), new Date(endsAt).toISOString()].map((text) =>
    text.replace(/(:00)?\.000Z$/, 'Z'),
  );
}

describe('a period', () => {
  test('names a unit and a zone, UTC unless said, and cannot be changed', () => {
    expect(day()).toEqual({ unit: 'day', zone: 'UTC' });
    expect(week('Europe/Berlin')).toEqual({ unit: 'week', zone: 'Europe/Berlin' });
    expect(Object.isFrozen(month())).toBe(true);
  });

  test('keeps a zone once, in however many ways its name is written', () => {
    const formats = vi.spyOn(Intl, 'DateTimeFormat');
    const ways = ['Pacific/Apia', 'pacific/apia', 'PACIFIC/APIA', 'pAcIfIc/aPiA'];
    for (const zone of ways) expect(calendarSlot(day(zone), 0).slot).toBe('1969-12-31');
    expect(formats).toHaveBeenCalledTimes(1);
    formats.mockRestore();
    expect(day('pacific/APIA').zone).toBe('pacific/APIA');
  });

  test('keeps the zone as it was spelt', () => {
    expect(hour('europe/berlin').zone).toBe('europe/berlin');
    expect(hour('Asia/Calcutta').zone).toBe('Asia/Calcutta');
  });

  test.each(['Europe/Berlim', '', 'Mars/Olympus', '+02:00', 'GMT+2', 'CEST!', 7 as unknown as string])(
    'refuses the zone %j',
    (zone) => {
      for (const unit of everyUnit) {
        expect(() => make[unit](zone)).toThrow(
          expect.objectContaining({
            code: 'CONTRACT_INVALID',
            path: 'per.zone',
            message: expect.stringMatching(/is not a time zone\. Write an IANA name/),
          }),
        );
      }
      expect(() => calendarSlot({ unit: 'day', zone }, 0)).toThrow(/is not a time zone/);
    },
  );

  test('is distinguished from the other bounds of an intent', () => {
    expect(isCalendarPeriod(day('Asia/Tokyo'))).toBe(true);
    expect(isCalendarPeriod({ unit: 'week', zone: 'UTC' })).toBe(true);
    for (const other of [
      'turn',
      null,
      undefined,
      {},
      { unit: 'day' },
      { unit: 'toString', zone: 'UTC' },
      [],
    ]) {
      expect(isCalendarPeriod(other)).toBe(false);
    }
  });
});

describe('a slot', () => {
  test.each<readonly [CalendarPeriod, string, string, string, string]>([
    [minute(), '2026-06-19T14:05:59.999Z', '2026-06-19T14:05Z', '2026-06-19T14:05Z', '2026-06-19T14:06Z'],
    [
      minute('Europe/Berlin'),
      '2026-06-19T12:05Z',
      '2026-06-19T14:05+02:00',
      '2026-06-19T12:05Z',
      '2026-06-19T12:06Z',
    ],
    [hour(), '2026-06-19T14:05Z', '2026-06-19T14Z', '2026-06-19T14:00Z', '2026-06-19T15:00Z'],
    [
      hour('America/New_York'),
      '2026-01-01T04:59Z',
      '2025-12-31T23-05:00',
      '2026-01-01T04:00Z',
      '2026-01-01T05:00Z',
    ],
    [
      hour('Asia/Kathmandu'),
      '2026-01-01T00:20Z',
      '2026-01-01T06+05:45',
      '2026-01-01T00:15Z',
      '2026-01-01T01:15Z',
    ],
    [day(), '2026-06-19T23:59:59.999Z', '2026-06-19', '2026-06-19T00:00Z', '2026-06-20T00:00Z'],
    [day('Pacific/Kiritimati'), '2026-06-19T10:00Z', '2026-06-20', '2026-06-19T10:00Z', '2026-06-20T10:00Z'],
    [week(), '2026-06-19T12:00Z', '2026-W25', '2026-06-15T00:00Z', '2026-06-22T00:00Z'],
    [month(), '2024-02-29T12:00Z', '2024-02', '2024-02-01T00:00Z', '2024-03-01T00:00Z'],
    [month('Asia/Tokyo'), '2026-12-31T15:00Z', '2027-01', '2026-12-31T15:00Z', '2027-01-31T15:00Z'],
  ])('of %o at %s is %s', (period, at, ...expected) => {
    expect(slotOf(period, at)).toEqual(expected);
  });

  test.each([
    ['2026-01-01', '2026-W01'],
    ['2025-12-29', '2026-W01'],
    ['2027-01-01', '2026-W53'],
    ['2027-01-04', '2027-W01'],
    ['2021-01-03', '2020-W53'],
    ['2024-12-30', '2025-W01'],
    ['2023-01-01', '2022-W52'],
    ['1969-12-31', '1970-W01'],
    ['0001-01-07', '0001-W01'],
  ])('the ISO week of %s is %s', (date, slot) => {
    expect(calendarSlot(week(), Date.parse(`${date}T12:00Z`)).slot).toBe(slot);
  });

  test('is frozen, because it is shared', () => {
    expect(Object.isFrozen(calendarSlot(day('Asia/Tokyo'), 0))).toBe(true);
    expect(calendarSlot(day('Asia/Tokyo'), 1)).toBe(calendarSlot(day('Asia/Tokyo'), 2));
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 8.64e15, -8.64e15])('is refused at %d', (at) => {
    for (const unit of everyUnit) {
      expect(() => calendarSlot(make[unit]('Asia/Tokyo'), at)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGS', path: 'at' }),
      );
    }
  });
});

describe('where the clocks change', () => {
  test('the hour that repeats is two slots', () => {
    const berlin = hour('Europe/Berlin');
    expect(slotOf(berlin, '2026-10-25T00:30Z')).toEqual([
      '2026-10-25T02+02:00',
      '2026-10-25T00:00Z',
      '2026-10-25T01:00Z',
    ]);
    expect(slotOf(berlin, '2026-10-25T01:30Z')).toEqual([
      '2026-10-25T02+01:00',
      '2026-10-25T01:00Z',
      '2026-10-25T02:00Z',
    ]);
    const london = hour('Europe/London');
    expect(slotOf(london, '2026-10-25T00:30Z')[0]).toBe('2026-10-25T01+01:00');
    expect(slotOf(london, '2026-10-25T01:30Z')[0]).toBe('2026-10-25T01Z');
  });

  test('days of 23 and 25 hours are one slot', () => {
    const berlin = day('Europe/Berlin');
    expect(slotOf(berlin, '2026-03-29T12:00Z')).toEqual([
      '2026-03-29',
      '2026-03-28T23:00Z',
      '2026-03-29T22:00Z',
    ]);
    expect(slotOf(berlin, '2026-10-25T12:00Z')).toEqual([
      '2026-10-25',
      '2026-10-24T22:00Z',
      '2026-10-25T23:00Z',
    ]);
  });

  test('a jump of half an hour bounds the hour it falls in', () => {
    const lordHowe = hour('Australia/Lord_Howe');
    expect(slotOf(lordHowe, '2026-04-04T14:50Z')).toEqual([
      '2026-04-05T01+11:00',
      '2026-04-04T14:00Z',
      '2026-04-04T15:00Z',
    ]);
    expect(slotOf(lordHowe, '2026-04-04T15:10Z')).toEqual([
      '2026-04-05T01+10:30',
      '2026-04-04T15:00Z',
      '2026-04-04T15:30Z',
    ]);
    expect(slotOf(lordHowe, '2026-10-03T15:40Z')).toEqual([
      '2026-10-04T02+11:00',
      '2026-10-03T15:30Z',
      '2026-10-03T16:00Z',
    ]);
  });

  test('a change in the middle of an hour bounds it on both sides', () => {
    const caracas = hour('America/Caracas');
    expect(slotOf(caracas, '2016-05-01T06:45Z')).toEqual([
      '2016-05-01T02-04:30',
      '2016-05-01T06:30Z',
      '2016-05-01T07:00Z',
    ]);
    expect(slotOf(caracas, '2016-05-01T07:15Z')).toEqual([
      '2016-05-01T03-04:00',
      '2016-05-01T07:00Z',
      '2016-05-01T08:00Z',
    ]);
  });

  test('a day whose midnight is skipped begins with its first instant', () => {
    expect(slotOf(day('America/Sao_Paulo'), '2018-11-04T12:00Z')).toEqual([
      '2018-11-04',
      '2018-11-04T03:00Z',
      '2018-11-05T02:00Z',
    ]);
  });

  test('a day that the clocks leave again stays begun', () => {
    const stJohns = day('America/St_Johns');
    expect(slotOf(stJohns, '2010-11-07T02:29:59Z')[0]).toBe('2010-11-06');
    expect(slotOf(stJohns, '2010-11-07T02:30:30Z')[0]).toBe('2010-11-07');
    expect(slotOf(stJohns, '2010-11-07T02:45Z')).toEqual([
      '2010-11-07',
      '2010-11-07T02:30Z',
      '2010-11-08T03:30Z',
    ]);
  });

  test('a day that is skipped has no slot', () => {
    const apia = day('Pacific/Apia');
    expect(slotOf(apia, '2011-12-30T09:59Z')).toEqual([
      '2011-12-29',
      '2011-12-29T10:00Z',
      '2011-12-30T10:00Z',
    ]);
    expect(slotOf(apia, '2011-12-30T10:00Z')).toEqual([
      '2011-12-31',
      '2011-12-30T10:00Z',
      '2011-12-31T10:00Z',
    ]);
  });

  test('an offset with seconds keeps them', () => {
    expect(slotOf(hour('Africa/Monrovia'), '1970-01-01T00:00Z')[0]).toBe('1969-12-31T23-00:44:30');
  });
});

/** What the clocks of a zone show, taken from the parts of a date, as period.ts does not. */
function clocksOf(timeZone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (at) => {
    const [, M, d, y, h, m, s] =
      /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/.exec(format.format(at)) ?? assert.fail();
    return (
      Date.UTC(Number(y), Number(M) - 1, Number(d), Number(h), Number(m), Number(s)) +
      (at - Math.floor(at / 1000) * 1000)
    );
  };
}

/** Every change of a zone's offset from 2000 to 2037 that two weeks apart can show. */
function transitionsOf(clocks: (at: number) => number): number[] {
  const found: number[] = [];
  const step = 14 * 24 * hourMs;
  const until = Date.UTC(2038, 0);
  for (let from = Date.UTC(2000, 0), before = clocks(from) - from; from < until; from += step) {
    const after = clocks(from + step) - from - step;
    if (after !== before) {
      let [low, high] = [from / 1000, (from + step) / 1000];
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (clocks(middle * 1000) - middle * 1000 === before) low = middle;
        else high = middle;
      }
      found.push(high * 1000);
    }
    before = after;
  }
  return found;
}

const wallText = (wall: number) => new Date(wall).toISOString();

/** Walks the slots from one instant to another and checks each against the clocks. */
function walk(period: CalendarPeriod, clocks: (at: number) => number, from: number, to: number): void {
  let current = calendarSlot(period, from);
  assert(current.startsAt <= from && from < current.endsAt, 'the slot holds its instant');
  while (current.startsAt <= to) {
    const { slot, startsAt, endsAt } = current;
    const where = `${period.unit} ${period.zone} ${slot}`;
    assert(startsAt < endsAt, where);
    assert.deepEqual(calendarSlotAfresh(period, endsAt - 1), current, `${where}: its last instant`);
    assert.deepEqual(calendarSlotAfresh(period, (startsAt + endsAt) / 2), current, `${where}: its middle`);
    const first = clocks(startsAt);
    const last = clocks(endsAt - 1);
    if (period.unit === 'minute' || period.unit === 'hour') {
      const digits = period.unit === 'minute' ? 16 : 13;
      assert.equal(wallText(first).slice(0, digits), slot.slice(0, digits), where);
      assert.equal(wallText(last).slice(0, digits), slot.slice(0, digits), where);
      assert.equal(first - startsAt, last - (endsAt - 1), `${where}: one offset`);
      const offset = slot.slice(digits);
      assert.equal(
        Date.parse(`1970-01-01T00:00${offset}`),
        startsAt - first,
        `${where}: the offset it carries`,
      );
    } else {
      assert(textOf(period.unit, first) === slot, `${where}: begins at ${wallText(first)}`);
      assert(textOf(period.unit, clocks(startsAt - 1)) < slot, `${where}: begins late`);
      assert(textOf(period.unit, last) <= slot, `${where}: ends late`);
    }
    const next = calendarSlot(period, endsAt);
    assert.equal(next.startsAt, endsAt, `${where}: no gap, no overlap`);
    assert.notEqual(next.slot, slot, where);
    if (period.unit === 'day' || period.unit === 'week' || period.unit === 'month')
      assert(next.slot > slot, where);
    current = next;
  }
}

function textOf(unit: Unit, wall: number): string {
  if (unit !== 'week') return wallText(wall).slice(0, unit === 'day' ? 10 : 7);
  const thursday = new Date(wall + (3 - ((new Date(wall).getUTCDay() + 6) % 7)) * 24 * hourMs);
  let number = 1;
  for (const probe = new Date(thursday); ; number++) {
    probe.setUTCDate(probe.getUTCDate() - 7);
    if (probe.getUTCFullYear() !== thursday.getUTCFullYear()) break;
  }
  return `${wallText(thursday.getTime()).slice(0, 4)}-W${String(number).padStart(2, '0')}`;
}

const full = process.env.SEMEL_FULL === '1';
const odd = [
  'America/St_Johns',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Chatham',
  'Antarctica/Troll',
];
const zones = full
  ? Intl.supportedValuesOf('timeZone')
  : [...odd, ...fc.sample(fc.constantFrom(...Intl.supportedValuesOf('timeZone')), 25)];

describe('slots tile the time line', () => {
  test(`around the changes of the clocks of ${zones.length} zones`, {
    timeout: full ? 3_600_000 : 20_000,
  }, () => {
    let walked = 0;
    for (const zone of zones) {
      const clocks = clocksOf(zone);
      const all = transitionsOf(clocks);
      const some = full || all.length < 5 ? all : fc.sample(fc.constantFrom(...all), 5);
      for (const at of some) {
        walked++;
        walk(minute(zone), clocks, at - 90_000, at + 60_000);
        walk(hour(zone), clocks, at - 2 * hourMs, at + 2 * hourMs);
        walk(day(zone), clocks, at - 26 * hourMs, at + 26 * hourMs);
        walk(week(zone), clocks, at - 24 * hourMs, at + 24 * hourMs);
        walk(month(zone), clocks, at - 24 * hourMs, at + 24 * hourMs);
      }
    }
    expect(walked).toBeGreaterThan(full ? 10_000 : 20);
  });

  test('at any instant of any zone, in any order of asking', () => {
    const anyZone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
    const anyInstant = fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(2100, 0) });
    fc.assert(
      fc.property(anyZone, fc.constantFrom(...everyUnit), anyInstant, anyInstant, (zone, unit, at, other) => {
        const period = make[unit](zone);
        const { slot, startsAt, endsAt } = calendarSlot(period, at);
        assert(startsAt <= at && at < endsAt);
        assert.equal(calendarSlot(period, endsAt).startsAt, endsAt);
        assert.equal(calendarSlot(period, startsAt - 1).endsAt, startsAt);
        calendarSlot(period, other);
        assert.deepEqual(calendarSlot(make[unit](zone), at), { slot, startsAt, endsAt });
      }),
      { numRuns: full ? 100_000 : 1000 },
    );
  });
});
