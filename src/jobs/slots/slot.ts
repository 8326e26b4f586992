// Which slot a run stands for: the scheduled instant, never "now".

import {
  type CalendarPeriod,
  calendarSlot,
  day,
  hour,
  minute,
  month,
  wallAt,
  week,
} from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';
import { type Boot, bootSlot, isReboot, isSameMachine, thisBoot } from './boot.ts';
import { parseCron } from './cron.ts';

export const units = ['minute', 'hour', 'day', 'week', 'month', 'ever', 'none'] as const;

type SlotUnit = (typeof units)[number];

export interface Schedule {
  readonly per: SlotUnit | undefined;
  readonly cron: string | undefined;
  /** The scheduled instant, if the scheduler says. */
  readonly at: number | undefined;
  readonly zone: string;
}

export interface JobSlot {
  /** `cron` for the instants of a schedule, `boot` for `@reboot`. */
  readonly unit: SlotUnit | 'cron' | 'boot';
  /** Undefined if it has no end. */
  readonly span: { readonly startsAt: number; readonly endsAt: number } | undefined;
  /** Its scheduled instant. */
  readonly at: number;
  /**
   * The instant for calendar periods inside the run; undefined: each call uses its own time, so that a service that runs
   * for days gets every day.
   */
  readonly periodsAt: number | undefined;
  /** For people, and as `SEMEL_SLOT`: `2026-06-19`, `2026-06-19T09:00+02:00`, `web1-boot-48cf568e`, `ever`. */
  readonly name: string;
  /** The local date of the instant: `SEMEL_DATE`. */
  readonly date: string;
  readonly zone: string;
  /** Distinguishes runs without a slot, boots, and instants within one minute. */
  readonly start: string | undefined;
  /**
   * Set if there is no schedule and the period has just begun or is about to end: a late start of the previous slot, or an
   * early start of the next one, would look the same.
   */
  readonly near: 'begin' | 'end' | undefined;
}

/** How early a timer may fire and still mean the next instant; less if instants are close together. */
const earlyMs = 5_000;
const earlyShare = 0.02;
/** A start this close after a boundary may be a late start of the previous slot. */
const lateShare = 0.02;

const periods: Readonly<Record<Exclude<SlotUnit, 'ever' | 'none'>, (zone: string) => CalendarPeriod>> = {
  minute,
  hour,
  day,
  week,
  month,
};

export function isUnit(word: string): word is keyof typeof periods {
  return Object.hasOwn(periods, word);
}

export function periodNamed(unit: keyof typeof periods, zone: string): CalendarPeriod {
  return periods[unit](zone);
}

/** `mark` is unique: two starts without a slot are two runs, even within one millisecond. */
export function slotOf(
  { per, cron, at, zone }: Schedule,
  now: number,
  mark: string,
  boot: (now: number) => Boot = thisBoot,
): JobSlot {
  if (cron !== undefined && isReboot(cron)) return slotOfBoot(boot(now), at, zone);
  const scheduled = at ?? (cron === undefined ? undefined : dueInstant(cron, zone, now));
  const instant = scheduled ?? now;
  const date = calendarSlot(day(zone), instant).slot;
  const common = { date, zone, start: undefined, near: undefined };
  if (cron !== undefined) {
    const slot = calendarPart('cron', minute(zone), instant);
    const endsAt = Math.max(slot.span.endsAt, boundNext(cron, zone, instant));
    return { ...common, ...slot, span: { ...slot.span, endsAt } };
  }
  if (per === undefined && at !== undefined) return { ...common, ...slotAt(at, zone) };
  if (per === 'ever')
    return { ...common, unit: per, span: undefined, at: instant, periodsAt: scheduled, name: 'ever' };
  // Without a period every start is its own run, and only overlap is prevented.
  if (per === undefined || per === 'none') {
    const name = new Date(wallAt(zone, instant)).toISOString().slice(0, -1);
    const span = { startsAt: instant, endsAt: instant };
    return {
      ...common,
      unit: 'none',
      span,
      at: instant,
      periodsAt: scheduled,
      name,
      start: `${name} ${mark}`,
    };
  }
  // The current period, however close its end is: tomorrow's slot belongs to tomorrow's run.
  const slot = calendarPart(per, periods[per](zone), instant);
  return { ...common, ...slot, near: scheduled === undefined ? nearBoundary(slot.span, now) : undefined };
}

function slotOfBoot(boot: Boot, at: number | undefined, zone: string): JobSlot {
  if (at !== undefined)
    throw new SemelError('INVALID_ARGS', '@reboot is not scheduled at a time.', {
      path: 'cron',
      next: 'Leave --at out, or use it without --cron.',
    });
  const date = calendarSlot(day(zone), boot.at).slot;
  // A boot has no end, and what starts with it may run for days: calendar periods inside are not the boot's.
  const open = { span: undefined, periodsAt: undefined, near: undefined };
  return { ...open, ...bootSlot(boot), unit: 'boot', at: boot.at, date, zone };
}

/** No start from now on has the key of this earlier run: it had no slot, or was of a boot of this machine that is over. */
export function isOver(
  earlier: { readonly per?: unknown; readonly slot?: unknown },
  { unit, name }: JobSlot,
): boolean {
  if (earlier.per !== unit) return false;
  if (unit === 'none') return true;
  const { slot } = earlier;
  return unit === 'boot' && typeof slot === 'string' && slot !== name && isSameMachine(slot, name);
}

const hourMs = 3_600_000;
const slotMs: Readonly<Record<string, number>> = {
  minute: 60_000,
  hour: hourMs,
  day: 25 * hourMs,
  week: 169 * hourMs,
  month: 745 * hourMs,
  // Until the next instant of its schedule, which the record does not know.
  cron: 24 * hourMs,
  ever: Number.POSITIVE_INFINITY,
  // The next start closes it.
  none: Number.POSITIVE_INFINITY,
  boot: Number.POSITIVE_INFINITY,
};

/** How long a later start may belong to the same slot. */
export function longestSlotMs(unit: string): number {
  return slotMs[unit] ?? 0;
}

/** A later attempt of the slot must find what an earlier one did: until the slot is over, and `windowMs` longer. */
export function stepWindowMs({ span }: Pick<JobSlot, 'span'>, windowMs: number): number {
  return span === undefined ? forGoodMs : windowMs + span.endsAt - span.startsAt;
}

const forGoodMs = 50 * 366 * 24 * hourMs;
/** A schedule is due at least once in this time. */
const farthestMs = 8 * 366 * 24 * hourMs;

function nearBoundary({ startsAt, endsAt }: NonNullable<JobSlot['span']>, now: number): JobSlot['near'] {
  const lengthMs = endsAt - startsAt;
  if (now - startsAt < earlyMs + lengthMs * lateShare) return 'begin';
  return endsAt - now <= earlyMs ? 'end' : undefined;
}

/** The slot of a scheduler's instant; on a whole minute the same as with `--cron`. */
function slotAt(at: number, zone: string) {
  const slot = calendarPart('cron', minute(zone), at);
  if (at === slot.span.startsAt) return slot;
  const start = new Date(at).toISOString();
  return { ...slot, name: `${slot.name.slice(0, 16)}${start.slice(16, -1)}${slot.name.slice(16)}`, start };
}

function calendarPart(unit: JobSlot['unit'], period: CalendarPeriod, at: number) {
  const { slot: name, startsAt, endsAt } = calendarSlot(period, at);
  return { unit, span: { startsAt, endsAt }, at, periodsAt: at, name };
}

/** The latest instant of the schedule, or the next one if its timer fired slightly early. */
function dueInstant(expression: string, zone: string, now: number): number {
  const schedule = parseCron(expression);
  const last = schedule.latest(zone, now);
  const next = schedule.latest(zone, now + earlyMs);
  if (next === undefined) throw neverDue(expression);
  if (last === undefined || next - now <= (next - last) * earlyShare) return next;
  return last;
}

/** No later than twice the time until the schedule's next instant: until that one, every start is of this slot. */
function boundNext(expression: string, zone: string, instant: number): number {
  const schedule = parseCron(expression);
  const last = schedule.latest(zone, instant);
  let lengthMs = slotMs.minute as number;
  while (lengthMs < farthestMs && schedule.latest(zone, instant + lengthMs) === last) lengthMs *= 2;
  return instant + lengthMs;
}

function neverDue(expression: string): SemelError {
  return new SemelError(
    'INVALID_ARGS',
    `${JSON.stringify(expression)} was never due in the last eight years.`,
    { path: 'cron', next: 'Check that the month has that day.' },
  );
}

/** The weekday of a date: `Friday`. */
export function weekdayOf(date: string): string {
  return new Date(`${date}T00:00:00Z`).toLocaleDateString('en-GB', { weekday: 'long', timeZone: 'UTC' });
}
