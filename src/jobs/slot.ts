// Which slot a run stands for: the scheduled instant, never "now".

import { SemelError } from '../core/errors.ts';
import { type CalendarPeriod, calendarSlot, day, hour, minute, month, wallAt, week } from '../core/period.ts';
import { parseCron } from './cron.ts';

export const units = ['minute', 'hour', 'day', 'week', 'month', 'ever', 'none'] as const;

export type SlotUnit = (typeof units)[number];

export interface Schedule {
  readonly per: SlotUnit | undefined;
  readonly cron: string | undefined;
  /** The scheduled instant, where the scheduler tells it. */
  readonly at: number | undefined;
  readonly zone: string;
}

export interface JobSlot {
  /** `cron` for the instants of a schedule. */
  readonly unit: SlotUnit | 'cron';
  /** From when to when; undefined where it has no end. */
  readonly span: { readonly startsAt: number; readonly endsAt: number } | undefined;
  /** The instant that it stands for. */
  readonly at: number;
  /** As people read it, and as `SEMEL_SLOT`: `2026-06-19`, `2026-06-19T09:00+02:00`, `ever`. */
  readonly name: string;
  /** The local date of the instant: `SEMEL_DATE`. */
  readonly date: string;
  readonly zone: string;
  /** A calendar period that nobody scheduled, and that has just begun: a late start would look the same. */
  readonly isNearBoundary: boolean;
}

/** A timer may fire a little early, and still means the slot that begins. */
const earlyMs = 5_000;
/** A start this close after a boundary may be a late one of the slot before. */
const nearShare = 0.02;

const periods: Readonly<Record<Exclude<SlotUnit, 'ever' | 'none'>, (zone: string) => CalendarPeriod>> = {
  minute,
  hour,
  day,
  week,
  month,
};

export function periodNamed(unit: keyof typeof periods, zone: string): CalendarPeriod {
  return periods[unit](zone);
}

export function slotOf({ per = 'day', cron, at, zone }: Schedule, now: number): JobSlot {
  const scheduled = at ?? (cron === undefined ? undefined : latestOf(cron, zone, now + earlyMs));
  const instant = scheduled ?? now + earlyMs;
  const date = calendarSlot(day(zone), instant).slot;
  const common = { date, zone, isNearBoundary: false };
  if (cron !== undefined) return { ...common, ...named('cron', minute(zone), instant) };
  if (per === 'ever') return { ...common, unit: per, span: undefined, at: scheduled ?? now, name: 'ever' };
  if (per === 'none') {
    const at = scheduled ?? now;
    const name = new Date(wallAt(zone, at)).toISOString().slice(0, -1);
    return { ...common, unit: per, span: { startsAt: at, endsAt: at }, at, name };
  }
  const slot = named(per, periods[per](zone), instant);
  const { startsAt, endsAt } = slot.span;
  const isNear = instant - startsAt < earlyMs + (endsAt - startsAt) * nearShare;
  return { ...common, ...slot, isNearBoundary: scheduled === undefined && isNear };
}

function named(unit: JobSlot['unit'], period: CalendarPeriod, at: number) {
  const { slot: name, startsAt, endsAt } = calendarSlot(period, at);
  return { unit, span: { startsAt, endsAt }, at, name };
}

function latestOf(expression: string, zone: string, at: number): number {
  const instant = parseCron(expression).latest(zone, at);
  if (instant !== undefined) return instant;
  throw new SemelError(
    'INVALID_ARGS',
    `${JSON.stringify(expression)} was never due in the last eight years.`,
    {
      path: 'cron',
      next: 'Is the day in that month?',
    },
  );
}
