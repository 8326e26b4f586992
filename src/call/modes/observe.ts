// Observe mode: every call runs as it did before semel, and the records say what semel would have done.

import { makeReadable } from '../../core/contract/classify.ts';
import type { SemelError } from '../../core/errors.ts';
import type { Answer } from '../../ledger/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Attempt } from '../attempt.ts';
import type { Call } from '../call.ts';
import { createClaimRequest, firstPurpose } from '../claim.ts';
import type { Env } from '../env.ts';
import type { Result } from '../receipt.ts';
import { tooLateError } from '../refusals.ts';
import { type Body, classifyThrown, type Try } from '../run-tool.ts';
import { bare, type RunHooks, runUnguarded } from './without-claim.ts';

export interface Observing {
  readonly env: Env;
  readonly claim: () => Promise<Answer>;
  /** Holds the attempt while the body runs, and settles it. */
  readonly hold: (record: StoredRecord, body: Body) => Promise<Result>;
}

/** `problem` is why the call would have been refused before anything was claimed. */
export async function observe(
  { env, claim, hold }: Observing,
  call: Call,
  problem: SemelError | undefined,
): Promise<Result> {
  if (problem !== undefined) return runUnguarded(env, call, { observed: `refuse: ${problem.code}` });
  const answer = await claim().catch(() => undefined);
  if (answer === undefined) return runUnguarded(env, call, { observed: 'refuse: STORE_UNAVAILABLE' });
  if (answer.is === 'execute') return recorded(call, (body) => hold(answer.record, body));
  if (answer.is !== 'gone') env.ledger.observe(answer.record, answer.is);
  return runUnguarded(env, call, { observed: answer.is });
}

/** Too late to run: only what was done in time would have been replayed. */
export async function observeLate(env: Env, call: Call): Promise<Result> {
  const request = createClaimRequest(call, firstPurpose, env.random.token(), env.owner);
  const now = await env.ledger.findAnswer(request).catch(() => undefined);
  const isReplay = now?.is === 'replay' && !now.record.expired;
  return runUnguarded(env, call, { observed: isReplay ? 'replay' : `refuse: ${tooLateError(call).code}` });
}

/** Records what the effect does, and gives the caller exactly what the effect gave, when it gave it. */
async function recorded(call: Call, hold: (body: Body) => Promise<Result>): Promise<Result> {
  let effect: Promise<unknown> | undefined;
  const body = async (attempt: Attempt): Promise<Try> => {
    const { run, requests } = bare(call, {
      providerKeyFence: attempt.record.providerKeyFence,
      // What the ledger thinks of it changes nothing.
      dispatch: (unkeyed) => attempt.dispatch(unkeyed).catch(() => undefined),
      note: (ref) => attempt.note(ref),
    });
    effect = run();
    try {
      return { ending: { outcome: 'succeeded', value: await effect }, thrown: undefined };
    } catch (given) {
      const thrown = makeReadable(given);
      return { ending: classifyThrown(attempt, thrown, requests.fates), thrown };
    }
  };
  const { receipt } = await hold(body);
  const value = effect === undefined ? await bare(call, nowhere).run() : await effect;
  return { ok: true, value, receipt: { ...receipt, executed: true } };
}

/** The attempt ended before its effect began. */
const nowhere: RunHooks = { providerKeyFence: 0, dispatch: async () => undefined, note: () => undefined };
