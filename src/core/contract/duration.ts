// Parses durations as users write them, and formats them. Internally a duration is whole milliseconds. Refuses negative,
// fractional, infinite and century-long ones, which are mistakes.

import { SemelError } from '../errors.ts';

/** Milliseconds, or a number with its unit: `'250ms'`, `'30s'`, `'15m'`, `'1.5h'`, `'7d'`, `'2w'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}`;

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const unitMs: Readonly<Record<string, number>> = { ms: 1, s: second, m: minute, h: hour, d: day, w: 7 * day };

const maxMs = 100 * 365.25 * day;

export function durationMs(value: Duration, field: string): number {
  const ms = typeof value === 'number' ? value : parsed(value);
  if (Number.isInteger(ms) && ms >= 0 && ms <= maxMs) return ms;
  throw new SemelError('CONTRACT_INVALID', `${field} is ${shown(value)}, which is not a duration.`, {
    path: field,
    next: "Write whole milliseconds or a text like '500ms', '30s', '15m', '1.5h', '7d', '2w', of 0 to 100 years.",
  });
}

/** Computes whole and fraction separately, as integers: 1.005 × 1000 is not 1005 in floating point. */
function parsed(text: unknown): number {
  const match = typeof text === 'string' ? /^(\d+)(?:\.(\d{1,6}))?(ms|s|m|h|d|w)$/.exec(text) : null;
  if (match === null) return Number.NaN;
  const [, whole, fraction = '', unit] = match;
  const ms = unitMs[unit as string] as number;
  return Number(whole) * ms + (Number(fraction) * ms) / 10 ** fraction.length;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : String(value);
}

/** For people, to two units: `250ms`, `1.5s`, `4m12s`, `3d4h`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms);
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (Math.round(ms) < second) return `${Math.round(ms)}ms`;
  // Rounded to the smaller unit first: 59.96 s is a minute, not 60.0 s.
  const tenths = Math.round(ms / 100) * 100;
  if (tenths < minute) return `${tenths / second}s`;
  const seconds = Math.round(ms / second) * second;
  if (seconds < hour) return twoUnits(seconds, minute, 'm', second, 's');
  const minutes = Math.round(ms / minute) * minute;
  if (minutes < day) return twoUnits(minutes, hour, 'h', minute, 'm');
  return twoUnits(Math.round(ms / hour) * hour, day, 'd', hour, 'h');
}

function twoUnits(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = (ms % large) / small;
  return `${Math.floor(ms / large)}${largeName}${rest === 0 ? '' : `${rest}${smallName}`}`;
}
