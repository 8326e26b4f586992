// Observe mode: every call runs as it did before semel, and the records say what semel would have done.

import { legible } from '../core/classify.ts';
import type { SemelError } from '../core/errors.ts';
import type { Ledger } from '../ledger/index.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { first, type OpenClaim } from './claims.ts';
import type { Body, Executions } from './execution.ts';
import type { Result } from './receipt.ts';
import { meaningOf, type Try } from './tries.ts';
import { bare, type Outside, runUnguarded } from './unguarded.ts';

interface Observing {
  readonly ledger: Ledger;
  readonly open: OpenClaim;
  readonly execute: Executions['execute'];
  readonly freshFence: () => string;
}

/** `problem` is why the call would have been refused before anything was claimed. */
export async function observe(
  call: Call,
  problem: SemelError | undefined,
  { open, execute, ledger, freshFence }: Observing,
): Promise<Result> {
  if (problem !== undefined) return runUnguarded(call, freshFence(), { observed: `refuse: ${problem.code}` });
  const claimed = await open(call, first).catch(() => undefined);
  if (claimed === undefined)
    return runUnguarded(call, freshFence(), { observed: 'refuse: STORE_UNAVAILABLE' });
  const { verdict } = claimed;
  if (verdict.kind === 'execute')
    return observed(call, (body) => execute(call, claimed, verdict.record, body));
  if (verdict.kind !== 'gone') ledger.observe(verdict.record, verdict.kind);
  return runUnguarded(call, freshFence(), { observed: verdict.kind });
}

/** Records what the effect does, and gives the caller exactly what the effect gave, when it gave it. */
async function observed(call: Call, execute: (body: Body) => Promise<Result>): Promise<Result> {
  let effect: Promise<unknown> | undefined;
  const body = async (attempt: Attempt): Promise<Try> => {
    const { run, log } = bare(call, {
      keyFence: attempt.record.keyFence,
      // What the ledger thinks of it changes nothing.
      cross: (unkeyed) => attempt.cross(unkeyed).catch(() => undefined),
      note: (ref) => attempt.note(ref),
    });
    effect = run();
    try {
      return { ending: { outcome: 'succeeded', value: await effect }, thrown: undefined };
    } catch (given) {
      const thrown = legible(given);
      return { ending: meaningOf(attempt, thrown, log.fates), thrown };
    }
  };
  const { receipt } = await execute(body);
  const value = effect === undefined ? await bare(call, nowhere).run() : await effect;
  return { ok: true, value, receipt: { ...receipt, executed: true } };
}

/** The attempt ended before its effect began. */
const nowhere: Outside = { keyFence: 0, cross: async () => undefined, note: () => undefined };
