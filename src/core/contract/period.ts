// Calendar slots: which minute, hour, day, week or month of a time zone contains an instant. Slots never overlap or leave
// gaps. Refuses zones that are not in the IANA database, and years with more than four digits.

import { SemelError } from '../errors.ts';
import type { Duration } from './duration.ts';

export type Unit = 'minute' | 'hour' | 'day' | 'week' | 'month';

export interface CalendarPeriod {
  readonly unit: Unit;
  /** An IANA name, as it was given. */
  readonly zone: string;
}

/** What bounds one intent. A duration is a TTL: it counts from the first success. */
export type Per = 'turn' | 'conversation' | 'run' | 'ever' | CalendarPeriod | Duration;

/** As a contract holds it: a TTL is in milliseconds. */
export type ContractPer = 'turn' | 'conversation' | 'run' | 'ever' | CalendarPeriod | number;

export interface Slot {
  readonly slot: string;
  readonly startsAt: number;
  /** The first instant of the next slot. */
  readonly endsAt: number;
}

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export function minute(zone = 'UTC'): CalendarPeriod {
  return calendarPeriod('minute', zone);
}

export function hour(zone = 'UTC'): CalendarPeriod {
  return calendarPeriod('hour', zone);
}

export function day(zone = 'UTC'): CalendarPeriod {
  return calendarPeriod('day', zone);
}

/** An ISO week: from Monday, in the year of its Thursday. */
export function week(zone = 'UTC'): CalendarPeriod {
  return calendarPeriod('week', zone);
}

export function month(zone = 'UTC'): CalendarPeriod {
  return calendarPeriod('month', zone);
}

function calendarPeriod(unit: Unit, zone: string): CalendarPeriod {
  findZone(zone);
  return Object.freeze({ unit, zone });
}

const units: Readonly<Record<Unit, (zone: Zone, at: number) => Slot>> = {
  minute: (zone, at) => clockSlot(zone, at, minuteMs, 16),
  hour: (zone, at) => clockSlot(zone, at, hourMs, 13),
  day: (zone, at) => dateSlot(zone, at, dayStart, dateText),
  week: (zone, at) => dateSlot(zone, at, weekStart, weekText),
  month: (zone, at) => dateSlot(zone, at, monthStart, (wall) => dateText(wall).slice(0, 7)),
};

export function isCalendarPeriod(per: unknown): per is CalendarPeriod {
  if (typeof per !== 'object' || per === null) return false;
  const { unit, zone } = per as { unit?: unknown; zone?: unknown };
  return typeof unit === 'string' && Object.hasOwn(units, unit) && typeof zone === 'string';
}

export function calendarSlot(period: CalendarPeriod, at: number): Slot {
  const zone = findZone(period.zone);
  const last = zone.last[period.unit];
  if (last !== undefined && last.startsAt <= at && at < last.endsAt) return last;
  // A day inside the years 1 to 9999, so that no zone can push a slot out of them.
  if (!(at >= -62_135_510_400_000 && at <= 253_402_214_400_000)) {
    throw new SemelError('INVALID_ARGS', `${at} is not an instant of the years 1 to 9999.`, {
      path: 'at',
      next: 'Pass milliseconds since 1970.',
    });
  }
  const slot = Object.freeze(units[period.unit](zone, at));
  zone.last[period.unit] = slot;
  return slot;
}

/** The local time of a zone at an instant, as if it were UTC. */
export function wallAt(zone: string, at: number): number {
  return at + findZone(zone).offsetAt(at);
}

/** The instants at which a zone's local time is `wall`: two when clocks go back over it, none when they skip it. */
export function listInstants(zone: string, wall: number): readonly number[] {
  const named = findZone(zone);
  const offsets = new Set([named.offsetAt(wall - 16 * hourMs), named.offsetAt(wall + 16 * hourMs)]);
  return [...offsets]
    .map((offset) => wall - offset)
    .filter((at) => at + named.offsetAt(at) === wall)
    .sort((a, b) => a - b);
}

/** The first instant at which a zone's local time is `wall` or later. */
export function firstInstantAt(zone: string, wall: number): number {
  return firstInstant(findZone(zone), wall);
}

/** Minutes and hours are elapsed time at one offset: a repeated hour is two slots, which differ in the offset. */
function clockSlot(zone: Zone, at: number, lengthMs: number, digits: number): Slot {
  const offset = zone.offsetAt(at);
  const wall = Math.floor((at + offset) / lengthMs) * lengthMs;
  const from = wall - offset;
  const to = from + lengthMs;
  return {
    slot: new Date(wall).toISOString().slice(0, digits) + offsetText(offset),
    startsAt: zone.offsetAt(from) === offset ? from : transition(zone, from, at),
    endsAt: zone.offsetAt(to - secondMs) === offset ? to : transition(zone, at, to),
  };
}

type StartOf = (wall: number, ahead: number) => number;

/**
 * A date begins when local time first reaches it. If clocks go back over midnight, the repeated evening belongs to the
 * new day; a day that is skipped has no slot.
 */
function dateSlot(zone: Zone, at: number, startOf: StartOf, textOf: (wall: number) => string): Slot {
  let wall = startOf(at + zone.offsetAt(at), 0);
  let startsAt = firstInstant(zone, wall);
  let endsAt = firstInstant(zone, startOf(wall, 1));
  while (endsAt <= at) {
    wall = startOf(wall, 1);
    startsAt = endsAt;
    endsAt = firstInstant(zone, startOf(wall, 1));
  }
  return { slot: textOf(wall), startsAt, endsAt };
}

function dayStart(wall: number, ahead: number): number {
  return (Math.floor(wall / dayMs) + ahead) * dayMs;
}

/** Day 0 of the epoch was a Thursday, three days after a Monday. */
function weekStart(wall: number, ahead: number): number {
  return (Math.floor((wall / dayMs + 3) / 7) + ahead) * 7 * dayMs - 3 * dayMs;
}

function monthStart(wall: number, ahead: number): number {
  const date = new Date(wall);
  date.setUTCHours(0, 0, 0, 0);
  return date.setUTCMonth(date.getUTCMonth() + ahead, 1);
}

function dateText(wall: number): string {
  return new Date(wall).toISOString().slice(0, 10);
}

function weekText(monday: number): string {
  const thursday = new Date(monday + 3 * dayMs);
  const year = dateText(thursday.getTime()).slice(0, 4);
  const number = Math.floor((thursday.getTime() - Date.parse(`${year}-01-01T00:00:00Z`)) / (7 * dayMs)) + 1;
  return `${year}-W${String(number).padStart(2, '0')}`;
}

function offsetText(offset: number): string {
  if (offset === 0) return 'Z';
  const [hours, minutes, seconds] = new Date(Math.abs(offset)).toISOString().slice(11, 19).split(':');
  return `${offset < 0 ? '-' : '+'}${hours}:${minutes}${seconds === '00' ? '' : `:${seconds}`}`;
}

/** The first instant at which the clocks of the zone show `wall` or later. */
function firstInstant(zone: Zone, wall: number): number {
  // No zone is or was further than this from UTC, so the instant is in between.
  const from = wall - 16 * hourMs;
  const to = wall + 16 * hourMs;
  const before = zone.offsetAt(from);
  const after = zone.offsetAt(to);
  if (before === after) return wall - before;
  const changedAt = transition(zone, from, to);
  return wall - before < changedAt ? wall - before : Math.max(changedAt, wall - after);
}

/** The second at which the offset changes between two instants with different offsets. */
function transition(zone: Zone, from: number, to: number): number {
  const before = zone.offsetAt(from);
  let low = Math.floor(from / secondMs);
  let high = Math.ceil(to / secondMs);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetAt(middle * secondMs) === before) low = middle;
    else high = middle;
  }
  return high * secondMs;
}

interface Zone {
  /** How far the clocks are ahead of UTC, in milliseconds. */
  offsetAt(at: number): number;
  /** Keys are derived for now, over and over: the last slot answers almost every time. */
  readonly last: Partial<Record<Unit, Slot>>;
}

/** By names in lower case: Intl takes them in any, and each way of writing one would be kept. */
const zones = new Map<string, Zone>();

function findZone(name: string): Zone {
  const plain = String(name).toLowerCase();
  const known = zones.get(plain);
  if (known !== undefined) return known;
  const zone: Zone = { offsetAt: name === 'UTC' ? () => 0 : offsetReader(zoneFormat(name)), last: {} };
  zones.set(plain, zone);
  return zone;
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  try {
    // Intl also accepts offsets such as '+02:00', which have no daylight saving time and are not IANA names.
    if (!/^[a-z]/i.test(timeZone)) throw new RangeError(timeZone);
    return new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  } catch (cause) {
    throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(timeZone)} is not a time zone.`, {
      path: 'per.zone',
      next: "Write an IANA name, for example 'Europe/Berlin' or 'UTC'.",
      cause,
    });
  }
}

function offsetReader(format: Intl.DateTimeFormat): (at: number) => number {
  return (at) => {
    const [, sign, hours, minutes, seconds] =
      /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(at)) ?? [];
    const size =
      Number(hours ?? 0) * hourMs + Number(minutes ?? 0) * minuteMs + Number(seconds ?? 0) * secondMs;
    return sign === '-' ? -size : size;
  };
}
