// Many histories with consecutive seeds, and what happened in them.

import { runFarHistory, type Told } from './history.ts';

export interface Tally extends Omit<Told, 'violations'> {
  readonly histories: number;
  readonly violations: readonly { readonly seed: number; readonly what: string }[];
}

/** More than this says nothing new. */
const mostViolations = 10;

/** To be called where `drain` works, see ../scheduler.ts. */
export function runFarHistories(seed: number, count: number): Tally {
  const sum = { events: 0, calls: 0, answers: 0, swaps: 0, unheard: 0, folded: 0, jumps: 0 };
  const violations: { seed: number; what: string }[] = [];
  let histories = 0;
  for (; histories < count && violations.length < mostViolations; histories += 1) {
    const told = runFarHistory(seed + histories);
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += told[name];
    violations.push(...told.violations.map((what) => ({ seed: seed + histories, what })));
  }
  return { ...sum, histories, violations };
}
