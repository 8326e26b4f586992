// A run that did little proves little: what it must at least have gone through to count.

import type { Logs } from './logs.ts';

export interface Effort {
  readonly calls: number;
  readonly successes: number;
  readonly replays: number;
  /** Attempts that took the place of another. */
  readonly takeovers: number;
  /** News of attempts that no longer held their key. */
  readonly fenced: number;
  /** Calls that were told "in doubt". */
  readonly doubts: number;
  /** Verdicts of people and of verifiers. */
  readonly verdicts: number;
  readonly deaths: number;
}

export function effortOf({ work, events }: Logs): Effort {
  const told = (what: string) => work.filter((entry) => entry.kind === 'ended' && entry.told === what).length;
  const kind = (what: string) => work.filter((entry) => entry.kind === what).length;
  const noted = (...types: string[]) => events.filter(({ type }) => types.includes(type)).length;
  return {
    calls: kind('started'),
    successes: told('executed'),
    replays: told('replayed'),
    takeovers: noted('takeover'),
    fenced: noted('fenced', 'lateNews', 'duplicate', 'contradiction'),
    doubts: told('in doubt'),
    verdicts: noted('resolved', 'cleared'),
    deaths: kind('died'),
  };
}

/** What is missing, one sentence each; empty: the run counts. */
export function shortfalls(effort: Effort, minimum: Partial<Effort>): string[] {
  return Object.entries(minimum).flatMap(([what, needed]) => {
    const done = effort[what as keyof Effort];
    return done >= needed ? [] : [`Only ${done} ${what}, at least ${needed} are needed: the run is void.`];
  });
}
