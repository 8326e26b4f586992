// When an alert that failed is tried again: the delays of Standard Webhooks, about three days in all.

import { createHash } from 'node:crypto';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** After the first attempt, the second, … */
const delays: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];

export const maxAttempts = delays.length + 1;

/** Undefined: it is not tried again. The jitter comes from the name, so that all watchers agree on it. */
export function delayAfter(attempts: number, name: string): number | undefined {
  const delay = delays[attempts - 1];
  if (delay === undefined) return undefined;
  const [byte = 0] = createHash('sha256').update(`${attempts} ${name}`).digest();
  return delay * (0.9 + (byte / 255) * 0.2);
}
