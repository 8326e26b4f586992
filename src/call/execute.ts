// Runs an attempt under a won claim: the effect, or first `verify`, which says whether an earlier attempt landed. If the
// effect ends in doubt, `verify` is asked before the claim is settled.

import { onAbort } from '../core/abort.ts';
import { formatDuration } from '../core/contract/duration.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { isSemelError, type SemelError } from '../core/errors.ts';
import { sleep } from '../ledger/index.ts';
import { stillRunningMs } from '../rules/endings.ts';
import type { StoredRecord } from '../store/store.ts';
import { Attempt } from './attempt.ts';
import type { Claim, Purpose } from './claim.ts';
import type { Env } from './env.ts';
import { type Result, refuse } from './receipt.ts';
import { abortedError, interruptedError, leftError, tooLateError } from './refusals.ts';
import { type Body, isLate, type Try } from './run-tool.ts';
import { describeError, settleAttempt } from './settle.ts';
import type { ActiveCall } from './sharing.ts';
import { verify } from './verify.ts';

/** Holds the lease while the attempt runs, and settles it exactly once. */
export async function runAttempt(
  env: Env,
  active: ActiveCall,
  record: StoredRecord,
  purpose: Purpose,
  body: Body,
): Promise<Result> {
  const attempt = new Attempt(env, active.claim as Claim, record);
  active.claim = undefined;
  active.attempt = attempt;
  active.hasStarted = true;
  // A repeated claim may have been answered meanwhile: its executor ends it, whatever becomes of this request.
  const isExecutors = body.claimant?.token !== undefined;
  const unlisten = isExecutors ? undefined : stopWithCaller(attempt);
  try {
    const ended =
      purpose.for === 'verify'
        ? await verifyFirst(env, attempt, purpose.doubt, body)
        : await execute(env, attempt, body);
    if (ended.left || (isExecutors && ended.unstarted)) return refuseLeft(attempt, ended);
    // The claim is still held, so nobody else acts on the answer meanwhile.
    const decided = ended.ending.outcome === 'succeeded' ? ended : await verifyAtOnce(env, attempt, ended);
    return await settleAttempt(env, attempt, decided);
  } finally {
    unlisten?.();
    attempt.stopTimers();
  }
}

/** Resolves when the effect or its time is over; an ending after that is still settled. */
function execute(env: Env, attempt: Attempt, body: Body): Promise<Try> {
  if (isLate(attempt.call, env.clock)) return Promise.resolve(unstarted(tooLateError(attempt.call)));
  if (env.closing.aborted) return Promise.resolve(unstarted(interruptedError()));
  const effect = body(attempt);
  const overrun = (reason: Error): Try => {
    const mayHaveLanded = attempt.record.dispatched && !isRepeatable(attempt.record.effect);
    if (mayHaveLanded) void waitForOverrun(env, attempt, effect);
    if (mayHaveLanded) attempt.judgeKeyUse(true);
    return {
      ending: { outcome: mayHaveLanded ? 'unknown' : 'released', because: reason.message },
      thrown: reason,
      // How long it keeps running is not reported.
      ...(env.closing.aborted && { late: true }),
    };
  };
  return attempt.race(effect, overrun, (late) => {
    settleAttempt(env, attempt, { ...late, late: true }).catch(() => undefined);
  });
}

/**
 * An effect that ignores its timeout may still send, so "not landed" must not be believed meanwhile. One that hangs for good
 * is reported for a bounded time only: otherwise nothing would ever decide it.
 */
async function waitForOverrun(
  { clock, closing, ledger }: Env,
  { held, call }: Attempt,
  effect: Promise<Try>,
): Promise<void> {
  const { networkMs, timeoutMs } = call.tool.contract;
  const until = clock.mono() + Math.max(timeoutMs, longestOverrunMs);
  const ended = new AbortController();
  const end = () => ended.abort();
  effect.then(end, end);
  const signals = [ended.signal, closing];
  // The first report must come before `networkMs` is over, which is waited for anyway.
  for (
    let pauseMs = Math.max(firstBeatMs, networkMs / 3);
    ;
    pauseMs = Math.max(stillRunningMs, networkMs) / 3
  ) {
    await sleep(clock, pauseMs, signals, 'background');
    if (signals.some((signal) => signal.aborted) || clock.mono() > until) return;
    // A store that does not answer now may answer next time.
    if (!(await ledger.reportOverrun(held).catch(() => true))) return;
  }
}

const firstBeatMs = 100;
/** Longer than usual clients wait for a response. */
const longestOverrunMs = 5 * 60_000;

/** Asks `verify` first, and executes only if nothing landed. */
async function verifyFirst(
  env: Env,
  attempt: Attempt,
  doubt: StoredRecord | undefined,
  body: Body,
): Promise<Try> {
  const knownRef = attempt.refAfter('unknown');
  const answer = await verify(attempt, doubt, knownRef);
  if (answer.verdict === 'landed') {
    attempt.remoteRef = answer.remoteRef ?? knownRef;
    return { ending: { outcome: 'succeeded', value: answer.value }, thrown: undefined, verified: true };
  }
  if (answer.verdict === 'unsure') return undecided(answer.because ?? 'unsure');
  try {
    const refusal = await attempt.clear(answer.lagMs);
    if (refusal === 'early') return undecided(describeEarly(answer.lagMs));
    if (refusal !== undefined) return undecided(`the claim was ${refusal}`);
  } catch (thrown) {
    // Its time or its lease was over before the verdict was stored: the doubt stays.
    return { ...undecided(describeError(thrown)), thrown };
  }
  return execute(env, attempt, body);
}

/**
 * Asks `verify` about an attempt that leaves the record in doubt. "Landed" is true from now on; "not landed" counts only once
 * no request can be on its way, so a later call has to ask again.
 */
async function verifyAtOnce(env: Env, attempt: Attempt, ended: Try): Promise<Try> {
  if (!leavesDoubt(attempt, ended) || !mayVerify(env, attempt, ended)) return ended;
  const knownRef = attempt.refAfter(ended.ending.outcome);
  const answer = await verify(attempt, undefined, knownRef);
  if (answer.verdict === 'landed') {
    attempt.remoteRef = answer.remoteRef ?? knownRef;
    // This call executed it, whichever attempt's effect was found.
    return {
      ...ended,
      ending: { outcome: 'succeeded', value: answer.value, found: true },
      thrown: undefined,
    };
  }
  if (answer.verdict === 'unsure') return { ...ended, verdict: answer.because ?? 'unsure' };
  const mustWait = attempt.call.tool.contract.networkMs + (answer.lagMs ?? 0) > 0;
  if (mustWait) return { ...ended, verdict: describeEarly(answer.lagMs) };
  return { ...ended, ending: { outcome: 'released', because: '`verify` says that it did not land' } };
}

/** A definite ending says nothing about earlier attempts in doubt; but every repeatable write is one of its own. */
function leavesDoubt({ call, record }: Attempt, { ending }: Try): boolean {
  const { effect } = call.tool.contract;
  return !isRepeatable(effect) && (ending.outcome === 'unknown' || record.doubtFence !== null);
}

/** Not twice, not after the time of the attempt or of its caller, and not to hide a mistake in the contract. */
function mayVerify(env: Env, { call, stop }: Attempt, { verified, final }: Try): boolean {
  const { contract, verify: asked } = call.tool;
  if (asked === undefined || contract.mode === 'observe') return false;
  return verified === undefined && final === undefined && !stop.isRequested && !env.closing.aborted;
}

/** Before the dispatch, ending the attempt loses nothing. After it, the effect is asked to stop and waited for. */
function stopWithCaller(attempt: Attempt): (() => void) | undefined {
  const { call } = attempt;
  const { signal } = call;
  if (signal === undefined) return undefined;
  const giveUp = () => {
    if (attempt.record.dispatched) attempt.cancel(abortedError(call));
    else attempt.end(abortedError(call));
  };
  if (signal.aborted) giveUp();
  return onAbort(signal, giveUp);
}

function describeEarly(lagMs = 0): string {
  return lagMs > 0
    ? `it says "not landed", but what it looked at may be ${formatDuration(lagMs)} old, and a request may have been on its way then`
    : 'it says "not landed", but a request may still be on its way';
}

function undecided(because: string): Try {
  return { ending: { outcome: 'unknown', because }, thrown: undefined, verified: true, verdict: because };
}

function unstarted(error: SemelError): Try {
  return { ending: { outcome: 'released', because: error.message }, thrown: error, unstarted: true };
}

function refuseLeft({ call, record }: Attempt, { thrown }: Try): Result {
  return refuse(call, record, isSemelError(thrown) ? thrown : leftError(call));
}
