// Observe mode: every call runs as it did before semel, and the records say what semel would have done.

import { makeReadable } from '../../core/contract/classify.ts';
import type { SemelError } from '../../core/errors.ts';
import { isLazy } from '../../core/plain.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Attempt } from '../attempt.ts';
import type { Call } from '../call.ts';
import { Claim, createClaimRequest, firstPurpose, type Purpose } from '../claim.ts';
import { isOtherWork } from '../doubt.ts';
import type { Env } from '../env.ts';
import { runAttempt } from '../execute.ts';
import type { Result } from '../receipt.ts';
import { tooLateError } from '../refusals.ts';
import { classifyThrown, isLate, judgeTry, refuseLazyRun, type Try } from '../run-tool.ts';
import type { ActiveCall } from '../sharing.ts';
import type { Work } from '../work.ts';
import { withoutWord } from './own-error.ts';
import { createBareRun, type RunHooks, runUnguarded } from './without-claim.ts';

/** `problem`: why the call would have been refused before anything was claimed. */
export async function observe(
  env: Env,
  work: Work,
  active: ActiveCall,
  problem: SemelError | undefined,
): Promise<Result> {
  const { call } = active;
  if (problem !== undefined) return runUnguarded(env, call, { observed: `refuse: ${problem.code}` });
  if (isLate(call, env.clock)) return observeLate(env, call);
  work.active.add(active);
  try {
    const claim = new Claim(env, call, firstPurpose);
    active.claim = claim;
    const claiming = claim.orAbandon(env.ledger.claim(claim.request(), claim));
    const answer = await claiming.catch(() => undefined);
    if (answer === undefined) return await runUnguarded(env, call, { observed: 'refuse: STORE_UNAVAILABLE' });
    if (answer.is === 'execute') return await record(env, active, answer.record, firstPurpose);
    if (answer.is !== 'gone') env.ledger.observe(answer.record, answer.is);
    const repeat = answer.is === 'in doubt' ? await claimRepeat(env, active, answer.record) : undefined;
    if (repeat === undefined) return await runUnguarded(env, call, { observed: answer.is });
    return await record(env, active, repeat.record, repeat.purpose);
  } finally {
    work.active.remove(active);
  }
}

/**
 * A repeat of what may have landed runs under the record, as one that was accepted, and under another key: once calls are
 * enforced, neither the provider's key nor `verify` may make the effect again that was made here.
 */
async function claimRepeat(
  env: Env,
  active: ActiveCall,
  doubt: StoredRecord,
): Promise<{ readonly record: StoredRecord; readonly purpose: Purpose } | undefined> {
  const { call } = active;
  // Enforced, it would be refused: what it does says nothing about what is in doubt.
  if (isOtherWork(call, doubt) || call.findConflict(doubt).length > 0) return undefined;
  const purpose: Purpose = {
    for: 'rerun',
    generation: doubt.generation,
    rerunWithinMs: null,
    tried: [],
    doubt,
  };
  const claim = new Claim(env, call, purpose);
  active.claim = claim;
  const claiming = claim.orAbandon(env.ledger.claim({ ...claim.request(), keyed: false }, claim));
  const answer = await claiming.catch(() => undefined);
  return answer?.is === 'execute' ? { record: answer.record, purpose } : undefined;
}

/** Too late to run: only an effect that was done in time would have been replayed. */
async function observeLate(env: Env, call: Call): Promise<Result> {
  const request = createClaimRequest(call, firstPurpose, env.random.token(), env.owner);
  const now = await env.ledger.findAnswer(request).catch(() => undefined);
  const isReplay = now?.is === 'replay' && !now.record.expired;
  return runUnguarded(env, call, { observed: isReplay ? 'replay' : `refuse: ${tooLateError(call).code}` });
}

/** Records what the effect does, and gives the caller exactly what the effect returned or threw. */
async function record(
  env: Env,
  active: ActiveCall,
  claimed: StoredRecord,
  purpose: Purpose,
): Promise<Result> {
  const { call } = active;
  const isRepeat = purpose !== firstPurpose;
  let effect: Promise<unknown> | undefined;
  const body = async (attempt: Attempt): Promise<Try> => {
    const bare = createBareRun(call, {
      providerKeyFence: isRepeat ? env.random.token() : attempt.record.providerKeyFence,
      // `verify` finds every one of them.
      markFence: attempt.record.providerKeyFence,
      // A refusal by the ledger changes nothing.
      dispatch: (unkeyed) => attempt.dispatch(unkeyed).catch(() => undefined),
      enterStep: () => attempt.dispatchUnrecorded().catch(() => undefined),
      note: (ref) => attempt.note(ref),
    });
    // Before the effect: it may run on past the timeout.
    attempt.follow(bare.requests);
    effect = bare.run();
    const judged = (ended: Try) => judgeTry(attempt, ended);
    try {
      const value = await effect;
      // The caller gets it all the same.
      if (isLazy(value)) return judged(refuseLazyRun(attempt));
      return judged({ ending: { outcome: 'succeeded', value }, thrown: undefined });
    } catch (caught) {
      const thrown = makeReadable(caught);
      const ending = classifyThrown(attempt, thrown, bare.requests);
      const isOpen = bare.hasOpenStep && ending.outcome !== 'succeeded';
      // Enforced, a step without a record would be made again.
      return judged({
        ending: isOpen ? { outcome: 'unknown', because: 'a step may have landed' } : ending,
        thrown,
      });
    }
  };
  const { receipt } = await runAttempt(env, active, claimed, purpose, body);
  const value = await withoutWord(call.tool.contract, effect ?? createBareRun(call, noHooks).run());
  const observed = isRepeat ? ('in doubt' as const) : undefined;
  return { ok: true, value, receipt: { ...receipt, executed: true, observed } };
}

/** For an attempt that ended before its effect started. */
const noHooks: RunHooks = {
  providerKeyFence: 0,
  dispatch: async () => undefined,
  enterStep: async () => undefined,
  note: async () => false,
};
