// What bounds an intent, generated: every period, and every way in which two deployments may spell one time zone. The
// slot that an instant falls in is computed here once more, from fixed offsets, so that the calendar of src is checked.

import type { Duration } from '../../src/core/contract/duration.ts';
import type { Per, Unit } from '../../src/core/contract/period.ts';
import type { Chance } from './chance.ts';

interface Zone {
  readonly offsetMs: number;
  /** All names of one zone: whatever a machine or a person calls it, its days are the same. */
  readonly names: readonly string[];
}

const hourMs = 3_600_000;

/** Offsets of the simulated months, May to July 2026, in which no clock is changed. */
const zones: readonly Zone[] = [
  { offsetMs: 0, names: ['UTC', 'utc', 'Etc/UTC', 'Zulu', 'Etc/Zulu'] },
  { offsetMs: 2 * hourMs, names: ['Europe/Berlin', 'europe/berlin'] },
  { offsetMs: 5.5 * hourMs, names: ['Asia/Kolkata', 'Asia/Calcutta'] },
  { offsetMs: -4 * hourMs, names: ['America/New_York', 'US/Eastern', 'america/new_york'] },
];

export type PeriodKind = 'turn' | 'conversation' | 'run' | 'ever' | 'ttl' | Unit;

export interface Period {
  readonly kind: PeriodKind;
  readonly zone: Zone;
}

const units: readonly Unit[] = ['minute', 'hour', 'day', 'week', 'month'];

export function makePeriod(chance: Chance, everRate: number): Period {
  const zone = chance.pick(zones);
  if (chance.happens(everRate)) return { kind: chance.happens(0.4) ? 'ttl' : 'ever', zone };
  if (chance.happens(0.55)) return { kind: 'conversation', zone };
  return { kind: chance.pick(['turn', 'run', chance.pick(units)] as const), zone };
}

export const isCalendar = ({ kind }: Period): boolean => units.includes(kind as Unit);

/** As one deployment spells it. `ttl`: how long, if that is what bounds it. */
export function perOf({ kind, zone }: Period, spelling: number, ttl: Duration): Per {
  if (kind === 'ttl') return ttl;
  if (kind === 'turn' || kind === 'conversation' || kind === 'run' || kind === 'ever') return kind;
  return { unit: kind, zone: zone.names[spelling % zone.names.length] as string };
}

export interface SlotModel {
  readonly name: string;
  readonly startsAt: number;
  readonly endsAt: number;
}

const dayMs = 24 * hourMs;
const lengths: Readonly<Record<string, number>> = {
  minute: 60_000,
  hour: hourMs,
  day: dayMs,
  week: 7 * dayMs,
};

export function slotAt({ kind, zone: { offsetMs } }: Period, at: number): SlotModel {
  const wall = at + offsetMs;
  if (kind === 'month') {
    const date = new Date(wall);
    const from = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
    const to = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    return { name: `month ${from}`, startsAt: from - offsetMs, endsAt: to - offsetMs };
  }
  const length = lengths[kind] as number;
  // The epoch was a Thursday; weeks begin on Mondays.
  const shift = kind === 'week' ? 3 * dayMs : 0;
  const from = Math.floor((wall + shift) / length) * length - shift;
  return { name: `${kind} ${from}`, startsAt: from - offsetMs, endsAt: from + length - offsetMs };
}
