// Cron expressions: which instants they name in a time zone. Five fields, names, ranges, steps, lists, and the usual
// @words; @reboot names no instant (boot.ts). Where both days are restricted, either counts. Refuses what it does not know, by name.

import { firstInstantAt, listInstants, wallAt } from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';

export interface Cron {
  readonly expression: string;
  /** The latest scheduled instant up to `at`; undefined: none within eight years. */
  latest(zone: string, at: number): number | undefined;
}

interface Field {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly names?: readonly string[];
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const fields: readonly Field[] = [
  { name: 'minute', from: 0, to: 59 },
  { name: 'hour', from: 0, to: 23 },
  { name: 'day of month', from: 1, to: 31 },
  { name: 'month', from: 1, to: 12, names: months },
  // 7 is Sunday too.
  { name: 'day of week', from: 0, to: 7, names: weekdays },
];

const words: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const minuteMs = 60_000;
/** Longer than any clock change. */
const clockChangeMs = 180 * minuteMs;
const dayMs = 24 * 60 * minuteMs;
/** A 29 February can be eight years away. */
const farthestDays = 8 * 366 + 1;

export function parseCron(expression: string): Cron {
  const word = expression.trim().toLowerCase();
  // Not every name of an object is a word: `constructor`.
  const expanded = Object.hasOwn(words, word) ? (words[word] as string) : expression;
  const parts = expanded.trim().split(/\s+/);
  if (parts.length !== fields.length) {
    throw refusal(
      expression,
      `it has ${parts.length} fields, not five`,
      "'30 6 * * 1-5' is 6:30 on weekdays",
    );
  }
  const [minutes, hours, monthDays, monthNumbers, weekDays] = parts.map((part, at) =>
    parseField(part, fields[at] as Field, expression),
  ) as [Set<number>, Set<number>, Set<number>, Set<number>, Set<number>];
  const [, hourPart = '', monthDayPart = '', , weekDayPart = ''] = parts;
  const times = [...hours]
    .flatMap((hour) => [...minutes].map((minute) => (hour * 60 + minute) * minuteMs))
    .sort((a, b) => b - a);
  // An hourly schedule follows elapsed time: the hour that repeats has its own slots.
  const isByElapsed = isEvery(hourPart);

  function isDay(wall: number): boolean {
    const date = new Date(wall);
    if (!monthNumbers.has(date.getUTCMonth() + 1)) return false;
    const byMonth = monthDays.has(date.getUTCDate());
    const byWeek = weekDays.has(date.getUTCDay()) || (date.getUTCDay() === 0 && weekDays.has(7));
    if (isEvery(monthDayPart)) return byWeek;
    return isEvery(weekDayPart) ? byMonth : byMonth || byWeek;
  }

  return {
    expression,
    latest(zone, at) {
      const now = wallAt(zone, at);
      const today = Math.floor(now / dayMs) * dayMs;
      for (let back = 0; back <= farthestDays; back += 1) {
        const day = today - back * dayMs;
        if (!isDay(day)) continue;
        const due = latestOn(day, zone, at, now);
        if (due !== undefined) return due;
      }
      return undefined;
    },
  };

  /** Times of a day are in the order of their instants, except around a clock change. */
  function latestOn(day: number, zone: string, at: number, now: number): number | undefined {
    let best: { readonly instant: number; readonly wall: number } | undefined;
    for (const time of times) {
      const wall = day + time;
      if (wall > now + clockChangeMs) continue;
      if (best !== undefined && wall < best.wall - clockChangeMs) break;
      const instants = isByElapsed ? listInstants(zone, wall) : [firstInstantAt(zone, wall)];
      for (const instant of instants)
        if (instant <= at && instant > (best?.instant ?? Number.NEGATIVE_INFINITY))
          best = { instant, wall: best?.wall ?? wall };
    }
    return best?.instant;
  }
}

/** `*`, also with a step, leaves the choice to the other day field, as cron does. */
function isEvery(part: string): boolean {
  return part === '?' || part.startsWith('*');
}

function parseField(part: string, field: Field, expression: string): Set<number> {
  const numbers = new Set<number>();
  for (const item of part.split(',')) {
    const [range = '', step, ...more] = item.split('/');
    const by = step === undefined ? 1 : Number(step);
    if (more.length > 0 || !Number.isInteger(by) || by < 1)
      throw refusal(expression, `${JSON.stringify(item)} is not a valid step`, 'Write it like */15');
    const [from, to] = parseRange(range, step !== undefined, field, expression);
    for (let number = from; number <= to; number += by) numbers.add(number);
  }
  return numbers;
}

function parseRange(range: string, hasStep: boolean, field: Field, expression: string): [number, number] {
  if (range === '*' || range === '?') return [field.from, field.to];
  const [first = '', last, ...more] = range.split('-');
  const from = parseNumber(first, field, expression);
  const to = last === undefined ? (hasStep ? field.to : from) : parseNumber(last, field, expression);
  if (more.length > 0 || to < from)
    throw refusal(
      expression,
      `${JSON.stringify(range)} is not a valid range for the ${field.name}`,
      'Write it like 1-5',
    );
  return [from, to];
}

function parseNumber(text: string, { name, from, to, names }: Field, expression: string): number {
  const named = names?.indexOf(text.toLowerCase()) ?? -1;
  const number =
    named >= 0 ? named + (name === 'month' ? 1 : 0) : /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= from && number <= to) return number;
  const allowed =
    names === undefined ? `${from} to ${to}` : `${from} to ${to}, or ${names[0]} to ${names.at(-1)}`;
  throw refusal(expression, `${JSON.stringify(text)} is not a valid ${name}`, `Allowed: ${allowed}`);
}

function refusal(expression: string, why: string, next: string): SemelError {
  return new SemelError('INVALID_ARGS', `${JSON.stringify(expression)} is not a cron expression: ${why}.`, {
    path: 'cron',
    next: `${next}.`,
  });
}
