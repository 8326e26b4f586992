// Runs what a won claim allows: the effect, or first the question whether it landed.

import { isRepeatable } from '../core/contract/words.ts';
import type { SemelError } from '../core/errors.ts';
import { sleep } from '../ledger/index.ts';
import { stillRunningMs } from '../rules/endings.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { Env } from './env.ts';
import { abortedError, interruptedError, tooLateError } from './refusals.ts';
import { type Body, isLate, type Try } from './run-tool.ts';
import { describeError, settleAttempt } from './settle.ts';
import { verify } from './verify.ts';

/** The effect, or the end of its time; what it says afterwards is still told to the ledger. */
export function execute(env: Env, attempt: Attempt, body: Body): Promise<Try> {
  if (isLate(attempt.call, env.clock)) return Promise.resolve(unstarted(tooLateError(attempt.call)));
  if (env.closing.aborted) return Promise.resolve(unstarted(interruptedError()));
  const effect = body(attempt);
  const overrun = (reason: Error): Try => {
    const mayHaveLanded = attempt.record.dispatched && !isRepeatable(attempt.record.effect);
    if (mayHaveLanded && body.isExternal === undefined) void waitForOverrun(env, attempt, effect);
    return {
      ending: { outcome: mayHaveLanded ? 'unknown' : 'released', because: reason.message },
      thrown: reason,
    };
  };
  return attempt.race(effect, overrun, (late) => {
    settleAttempt(env, attempt, { ...late, late: true }).catch(() => undefined);
  });
}

/**
 * While it ignores that its time is over it may send, so "not landed" must not be believed meanwhile. One that hangs
 * for good is not waited for without end: then nothing would ever decide it.
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
  // The first one comes before what is waited for anyway is over.
  for (
    let pauseMs = Math.max(firstBeatMs, networkMs / 3);
    ;
    pauseMs = Math.max(stillRunningMs, networkMs) / 3
  ) {
    await sleep(clock, pauseMs, signals, 'background');
    if (signals.some((signal) => signal.aborted) || clock.mono() > until) return;
    // A store that does not answer now may answer the next time.
    if (!(await ledger.reportOverrun(held).catch(() => true))) return;
  }
}

const firstBeatMs = 100;
/** Longer than the usual clients wait for an answer. */
const longestOverrunMs = 5 * 60_000;

/** Under a claim for verify: asks first, and executes only what did not land. */
export async function verifyFirst(
  env: Env,
  attempt: Attempt,
  doubt: StoredRecord | undefined,
  body: Body,
): Promise<Try> {
  const answer = await verify(attempt, doubt);
  if (answer.verdict === 'landed') {
    if (answer.remoteRef !== undefined) attempt.note(answer.remoteRef);
    return { ending: { outcome: 'succeeded', value: answer.value }, thrown: undefined, verified: true };
  }
  if (answer.verdict === 'unsure') return undecided(answer.because ?? 'unsure');
  try {
    const refusal = await attempt.clear();
    if (refusal === 'early') return undecided('it says "not landed", but a request may still be on its way');
    if (refusal !== undefined) return undecided(`the claim was ${refusal}`);
  } catch (thrown) {
    // Its time was over, or its lease, before it could be told: the question stays open.
    return { ...undecided(describeError(thrown)), thrown };
  }
  return execute(env, attempt, body);
}

/** Before the line nothing is lost by ending it. After it, the effect is told to stop and heard out. */
export function stopWithCaller(attempt: Attempt): (() => void) | undefined {
  const { call } = attempt;
  const { signal } = call;
  if (signal === undefined) return undefined;
  const giveUp = () => {
    if (attempt.record.dispatched) attempt.cancel(abortedError(call));
    else attempt.end(abortedError(call));
  };
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  return () => signal.removeEventListener('abort', giveUp);
}

function undecided(because: string): Try {
  return { ending: { outcome: 'unknown', because }, thrown: undefined, verified: true };
}

function unstarted(error: SemelError): Try {
  return { ending: { outcome: 'released', because: error.message }, thrown: error };
}
