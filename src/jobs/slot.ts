// Which slot a run stands for: the scheduled instant, never "now".

import { SemelError } from '../core/errors.ts';
import {
  type CalendarPeriod,
  calendarSlot,
  day,
  hour,
  minute,
  month,
  type Per,
  wallAt,
  week,
} from '../core/period.ts';
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
  /** What bounds the run's key. */
  readonly per: Per;
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
  if (cron !== undefined) return { ...named(minute(zone), instant), date, zone, isNearBoundary: false };
  if (per === 'ever') return { per, at: scheduled ?? now, name: 'ever', date, zone, isNearBoundary: false };
  if (per === 'none') {
    const name = new Date(wallAt(zone, scheduled ?? now)).toISOString().slice(0, -1);
    return { per: 'ever', at: scheduled ?? now, name, date, zone, isNearBoundary: false };
  }
  const period = periods[per](zone);
  const { startsAt, endsAt } = calendarSlot(period, instant);
  const isNear = instant - startsAt < earlyMs + (endsAt - startsAt) * nearShare;
  return { ...named(period, instant), date, zone, isNearBoundary: scheduled === undefined && isNear };
}

function named(per: CalendarPeriod, at: number): Pick<JobSlot, 'per' | 'at' | 'name'> {
  return { per, at, name: calendarSlot(per, at).slot };
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
