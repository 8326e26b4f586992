// What all processes of a storm agree on.

import { type Per, week } from '../../../src/index.ts';
import { chanceOf } from '../../processes/chance.ts';
import type { Policy } from '../../support/checker/index.ts';
import { type LineName, lineNames, lineOf } from '../lines.ts';
import type { Terms } from '../tools.ts';

/** The same in all processes of a machine, whatever somebody does to its wall clock. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

export const namespace = 'storm';

/** Reads are not recorded, so there is nothing to check about them. */
export const contracts = lineNames.filter((name) => lineOf(name).effect !== 'read');

/** Short, because they pass in real time. */
const leases = [250, 400, 500];
export const longestLeaseMs = 500;
/**
 * `timeout` and `verifyAfter`, each longer than the other. `verifyAfter` is longer than any process of the storm can stand
 * still with a request in its hand.
 */
const waits = [
  [2_000, 6_000],
  [3_000, 6_000],
  [4_500, 4_000],
  [5_000, 4_000],
] as const;
/** After so long, no request of the storm can be on its way, and "not landed" is believed of all of them. */
export const inFlightForMs = 9_000 + 4 * longestLeaseMs;

/** All callers of a storm agree on these, so that every period is one. */
export const asking = {
  conversation: 'storm',
  turn: 'one',
  run: 'storm',
  at: Date.UTC(2026, 5, 17),
} as const;

const periods: readonly Per[] = ['ever', 'ever', 'conversation', 'turn', 'run', week('Europe/Berlin')];

/** What the contract of this name says in the storm of this seed: the same in all its processes. */
export function termsOf(storm: number, name: LineName): Terms {
  const chance = chanceOf(storm + 7_919 * contracts.indexOf(name));
  const [timeout, verifyAfter] = chance.pick(waits);
  return {
    lease: chance.pick(leases),
    timeout,
    verifyAfter,
    per: chance.pick(periods),
    isDerived: chance.is(0.4),
    ...(chance.is(0.3) ? { retry: { tries: 2, backoff: chance.pick([20, 300]) } } : {}),
    ...(chance.is(0.3) ? { maxAttempts: 3 } : {}),
  };
}

/** The intents that are called for right now: the window moves on, and everybody meets inside it. */
export const intentsPerSecond = 80;
export const intentsAtOnce = 60;

export function contractOfIntent(nth: number): LineName {
  return contracts[nth % contracts.length] as LineName;
}

export function intentOf(nth: number): string {
  return `${contractOfIntent(nth)} ${nth}`;
}

export const policies: Readonly<Record<string, Policy>> = Object.fromEntries(
  contracts.map((name) => {
    const { effect, keyed = false, onDoubt } = lineOf(name);
    return [name, { keyed, repeats: effect === 'write-idempotent' || onDoubt === 'rerun' }];
  }),
);
