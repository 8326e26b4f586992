// Runs what a won claim allows: the effect, or first the question whether it landed. Knows every attempt of this
// process, so that a closing process can end them by what is known of them.

import type { Clock } from '../core/clock.ts';
import type { SemelError } from '../core/errors.ts';
import { isRepeatable } from '../core/words.ts';
import { type Ledger, pause } from '../ledger/index.ts';
import { goesOnMs } from '../store/rules/endings.ts';
import type { Refusal, StoredRecord } from '../store/store.ts';
import { type Attempt, startAttempt } from './attempt.ts';
import type { Call } from './call.ts';
import type { Claimed } from './claims.ts';
import { type Concluding, conclude, messageOf } from './conclude.ts';
import { verify } from './doubt.ts';
import type { Result } from './receipt.ts';
import { aborted, interrupted, tooLate } from './refusals.ts';
import { isLate, type Try } from './tries.ts';

/** Executes under an attempt, and says how it ended. */
export interface Body {
  (attempt: Attempt): Promise<Try>;
  /** The effect is in somebody else's hands, who may never say how it ended. */
  readonly isElsewhere?: true;
}

export interface ExecutionOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly concluding: Concluding;
  readonly onStart: (call: Call, attempt: Attempt) => void;
  /** Says it once. */
  readonly warn: (message: string) => void;
}

export interface Executions {
  execute(call: Call, claimed: Claimed, record: StoredRecord, body: Body): Promise<Result>;
  /** A claim for verify: asks first, and executes only what did not land. */
  verifyFirst(call: Call, claimed: Claimed, record: StoredRecord, body: Body): Promise<Result>;
  interrupt(): void;
}

export function createExecutions({ ledger, clock, concluding, onStart, warn }: ExecutionOptions): Executions {
  const running = new Map<Attempt, Promise<Result>>();

  function withAttempt(
    call: Call,
    { token, askedAt }: Claimed,
    record: StoredRecord,
    work: Body,
  ): Promise<Result> {
    const attempt = startAttempt({ ledger, clock, call, record, token, askedAt, warn });
    onStart(call, attempt);
    const unlisten = endWithCaller(call, attempt);
    const result = work(attempt)
      .then((ended) => conclude(concluding, attempt, ended))
      .finally(() => {
        unlisten();
        attempt.rest();
        running.delete(attempt);
      });
    running.set(attempt, result);
    return result;
  }

  /** The effect, or the end of its time; what it says afterwards is still told to the ledger. */
  async function bounded(attempt: Attempt, body: Body): Promise<Try> {
    if (isLate(attempt.call, clock)) return unstarted(tooLate(attempt.call));
    if (concluding.closing.aborted) return unstarted(interrupted());
    const effect = body(attempt);
    const ended = await Promise.race([effect, attempt.over]);
    if ('ending' in ended) return ended;
    void effect.then((news) => conclude(concluding, attempt, { ...news, late: true })).catch(() => undefined);
    const mayHaveLanded = attempt.record.dispatched && !isRepeatable(attempt.record.effect);
    if (mayHaveLanded && body.isElsewhere === undefined) void waitFor(attempt, effect);
    return {
      ending: { outcome: mayHaveLanded ? 'unknown' : 'released', because: ended.reason.message },
      thrown: ended.reason,
    };
  }

  /**
   * While it ignores that its time is over it may send, so "not landed" must not be believed meanwhile. One that hangs
   * for good is not waited for without end: then nothing would ever decide it.
   */
  async function waitFor({ held, call }: Attempt, effect: Promise<Try>): Promise<void> {
    const { tailMs, timeoutMs } = call.tool.contract;
    const until = clock.mono() + Math.max(timeoutMs, longestOverrunMs);
    const ended = new AbortController();
    const end = () => ended.abort();
    effect.then(end, end);
    const signals = [ended.signal, concluding.closing];
    // The first one comes before what is waited for anyway is over.
    for (let pauseMs = Math.max(firstBeatMs, tailMs / 3); ; pauseMs = Math.max(goesOnMs, tailMs) / 3) {
      await pause(clock, pauseMs, signals, 'background');
      if (signals.some((signal) => signal.aborted) || clock.mono() > until) return;
      // A store that does not answer now may answer the next time.
      if (!(await ledger.goesOn(held).catch(() => true))) return;
    }
  }

  async function askThenRun(attempt: Attempt, { inDoubt }: Claimed, body: Body): Promise<Try> {
    const answer = await verify(attempt, inDoubt);
    if (answer.verdict === 'landed') {
      if (answer.remoteRef !== undefined) attempt.note(answer.remoteRef);
      return { ending: { outcome: 'succeeded', value: answer.value }, thrown: undefined, verified: true };
    }
    if (answer.verdict === 'unsure') return undecided(answer.because ?? 'unsure');
    let refusal: Refusal | undefined;
    try {
      refusal = await attempt.clear();
    } catch (thrown) {
      // Its time was over, or its lease, before it could be told: the question stays open.
      return { ...undecided(messageOf(thrown)), thrown };
    }
    if (refusal === 'early') return undecided('it says "not landed", but a request may still be on its way');
    if (refusal !== undefined) return undecided(`the claim was ${refusal}`);
    return bounded(attempt, body);
  }

  /** Before the line nothing is lost by ending it. After it, the effect is told to stop and heard out. */
  function endWithCaller(call: Call, attempt: Attempt): () => void {
    const { signal } = call;
    if (signal === undefined) return () => undefined;
    const giveUp = () => {
      if (attempt.record.dispatched) attempt.cancel(aborted(call));
      else attempt.end(aborted(call));
    };
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    return () => signal.removeEventListener('abort', giveUp);
  }

  return {
    execute: (call, claimed, record, body) =>
      withAttempt(call, claimed, record, (attempt) => bounded(attempt, body)),
    verifyFirst: (call, claimed, record, body) =>
      withAttempt(call, claimed, record, (attempt) => askThenRun(attempt, claimed, body)),
    interrupt() {
      for (const attempt of running.keys()) attempt.end(interrupted());
    },
  };
}

const firstBeatMs = 100;
/** Longer than the usual clients wait for an answer. */
const longestOverrunMs = 5 * 60_000;

function undecided(because: string): Try {
  return { ending: { outcome: 'unknown', because }, thrown: undefined, verified: true };
}

function unstarted(error: SemelError): Try {
  return { ending: { outcome: 'released', because: error.message }, thrown: error };
}
