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

/** How long things take: short, because they pass in real time. */
export interface Pace {
  readonly leases: readonly number[];
  readonly longestLeaseMs: number;
  /** How long a process stands still: until others may take over what it holds. */
  readonly stopMs: readonly [least: number, most: number];
  /**
   * `timeout` and `verifyAfter`, each longer than the other. `verifyAfter` is longer than any process of the storm can stand
   * still with a request in its hand.
   */
  readonly waits: readonly (readonly [timeout: number, verifyAfter: number])[];
  /** After so long, no request of the storm can be on its way, and "not landed" is believed of all of them. */
  readonly inFlightForMs: number;
  /** How fast the window of intents moves on: whoever takes over must still be calling for the same ones. */
  readonly intentsPerSecond: number;
}

const quick: Pace = {
  leases: [250, 400, 500],
  longestLeaseMs: 500,
  stopMs: [600, 1_500],
  waits: [
    [2_000, 6_000],
    [3_000, 6_000],
    [4_500, 4_000],
    [5_000, 4_000],
  ],
  inFlightForMs: 11_000,
  intentsPerSecond: 80,
};

/**
 * These stores hear the time in whole seconds: nobody takes over for up to four more after a lease. A process that wakes up is
 * not late by its timeout too, so that it has news.
 */
const coarse: Pace = {
  leases: [300, 500, 800],
  longestLeaseMs: 800,
  stopMs: [6_000, 9_000],
  waits: [
    [10_000, 14_000],
    [12_000, 14_000],
    [13_000, 11_000],
    [14_000, 11_000],
  ],
  inFlightForMs: 35_000,
  intentsPerSecond: 10,
};

/** By the name of a store, or its address. */
export function paceOf(ledger: string): Pace {
  return /^(dynamodb|s3)\b/.test(ledger) ? coarse : quick;
}

/** All callers of a storm agree on these, so that every period is one. */
export const asking = {
  conversation: 'storm',
  turn: 'one',
  run: 'storm',
  at: Date.UTC(2026, 5, 17),
} as const;

const periods: readonly Per[] = ['ever', 'ever', 'conversation', 'turn', 'run', week('Europe/Berlin')];

/** What the contract of this name says in the storm of this seed: the same in all its processes. */
export function termsOf(storm: number, name: LineName, { leases, waits }: Pace): Terms {
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
