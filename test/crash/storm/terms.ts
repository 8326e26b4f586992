// What all processes of a storm agree on.

import type { Policy } from '../../../src/testing/checker/index.ts';
import { type LineName, lineNames, lineOf } from '../lines.ts';

/** The same in all processes of a machine, whatever somebody does to its wall clock. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

export const namespace = 'storm';

/** Reads are not recorded, so there is nothing to check about them. */
export const contracts = lineNames.filter((name) => lineOf(name).effect !== 'read');

/** Short, because they pass in real time. */
export const leaseMs = 400;
export const timeoutMs = 3_000;
/** Longer than any process of the storm can stand still with a request in its hand. */
export const verifyAfterMs = 6_000;

export const terms = { lease: leaseMs, timeout: timeoutMs, verifyAfter: verifyAfterMs };

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
