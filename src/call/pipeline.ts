// The path of a call: ask the ledger, do what the answer says, ask again. What wraps the loop (observing, the original turn
// of a call, sharing, being too late) is unknown to it.

import { isSemelError, type SemelError } from '../core/errors.ts';
import { type Lost, pause } from '../ledger/index.ts';
import { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { type Ask, createClaims, firstAsk, type Won } from './claim.ts';
import { isHarmless, rerunWithin, waysOut } from './doubt.ts';
import type { Env } from './env.ts';
import { endWithCaller, execute, verifyFirst } from './execute.ts';
import { createHabit } from './habit.ts';
import { observe, observeLate } from './modes/observe.ts';
import { inOriginalTurn } from './modes/original-turn.ts';
import { findInTime } from './modes/too-late.ts';
import { mayRunWithoutClaim, runRepeatable, runUnguarded, runWithoutClaim } from './modes/without-claim.ts';
import { inDoubt, type Result, refused } from './receipt.ts';
import { aborted, closed, conflict, foreign, gone, interrupted, reentrant, tooLate } from './refusals.ts';
import { replay, replayKept } from './replay.ts';
import { type Body, isLate, runTool } from './run-tool.ts';
import { settleAttempt } from './settle.ts';
import { createSharing, type Flight } from './sharing.ts';
import { createTimers } from './timers.ts';
import { type Waited, wait, waitBehind } from './wait.ts';

export type PipelineOptions = Omit<Env, 'timers' | 'closing' | 'inBackground'>;

export interface Pipeline {
  /** A promise only where something has to be waited for: a replay often is at hand. */
  run(call: Call): Result | Promise<Result>;
  /** The same path with the execution in the caller's hands. */
  runWith(call: Call, body: Body): Promise<Result>;
  /** Aborts when calls that still run or wait must end. */
  readonly closing: AbortSignal;
  /** Refuses new calls, lets running ones finish for a while, then ends them by what is known of them. */
  close(graceMs: number): Promise<void>;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { ledger, clock } = options;
  const calls = new Set<Promise<unknown>>();
  const settling = new Set<Promise<unknown>>();
  const attempts = new Set<Attempt>();
  const closing = new AbortController();
  let isClosing = false;
  const env: Env = {
    ...options,
    timers: createTimers(clock),
    closing: closing.signal,
    inBackground: (work) => void track(settling, work),
  };
  const { claim, tell } = createClaims(env);
  const sharing = createSharing(clock);
  const habit = createHabit();
  const runIt: Body = (attempt) => runTool(env, attempt);
  const observing = {
    env,
    claim,
    hold: (call: Call, won: Won, body: Body) => hold(call, won, firstAsk, body),
  };

  function run(call: Call): Result | Promise<Result> {
    const { effect, mode } = call.tool.contract;
    if (effect === 'read') return mode === 'enforce' ? runRepeatable(env, call) : runUnguarded(env, call);
    const problem = problemOf(call);
    if (mode === 'observe')
      return track(
        calls,
        problem === undefined && isLate(call, clock)
          ? observeLate(env, call)
          : observe(observing, call, problem),
      );
    if (problem !== undefined) return refused(call, undefined, problem);
    const placing = inOriginalTurn(env, call);
    return placing === undefined ? enter(call) : track(calls, placed(call, placing, enter));
  }

  /** A call whose turn cannot be looked up is not run: it may be done. */
  async function placed(
    call: Call,
    placing: Promise<Call>,
    go: (call: Call) => Result | Promise<Result>,
  ): Promise<Result> {
    let found: Call;
    try {
      found = await placing;
    } catch (error) {
      if (!isSemelError(error)) throw error;
      return refused(call, undefined, error);
    }
    const problem = problemOf(found);
    return problem === undefined ? go(found) : refused(found, undefined, problem);
  }

  function enter(call: Call): Result | Promise<Result> {
    const known = knownOf(call);
    // A live value has to be fetched, which is work like any other.
    if (known?.is === 'replay' && call.tool.onReplay === undefined) {
      tell(call, known);
      return known.kept === undefined ? replay(call, known.record) : replayKept(call, known.kept);
    }
    const shared = sharing.join(call);
    if (shared !== undefined) return shared;
    if (isLate(call, clock)) return track(calls, answerLate(call));
    return sharing.lead(call, (led, flight) => track(calls, guarded(led, runIt, known, flight)));
  }

  /** What the call would be told, where that is known or cheaper to read than to ask for. */
  function knownOf(call: Call): Lost | undefined {
    const { contract } = call.tool;
    const remembered = ledger.remembered(call);
    if (remembered !== undefined || !habit.readsFirst(contract)) return remembered;
    const seen = ledger.peek(call);
    if (seen !== undefined) habit.learn(contract, true);
    return seen;
  }

  async function guarded(call: Call, body: Body, known: Lost | undefined, flight?: Flight): Promise<Result> {
    try {
      return await loop(call, body, firstAsk, known, flight);
    } catch (error) {
      if (!isSemelError(error)) throw error;
      if (mayRunWithoutClaim(env, call, error)) return await runWithoutClaim(env, call);
      return refused(call, undefined, error);
    } finally {
      if (flight !== undefined) sharing.end(flight);
    }
  }

  async function answerLate(call: Call): Promise<Result> {
    try {
      const found = await findInTime(env, call);
      if (found === undefined) return refused(call, undefined, tooLate(call));
      return await loop(found.call, found.body, found.ask, undefined, undefined);
    } catch (error) {
      if (!isSemelError(error)) throw error;
      return refused(call, undefined, error);
    }
  }

  async function loop(
    call: Call,
    body: Body,
    first: Ask,
    known: Lost | undefined,
    flight: Flight | undefined,
  ): Promise<Result> {
    let ask = first;
    for (let answer: Won | Lost | undefined = known; ; answer = undefined) {
      if (answer === undefined) {
        answer = await claim(call, ask);
        if (ask === firstAsk) habit.learn(call.tool.contract, answer.is !== 'execute');
      }
      if (answer.is === 'execute') return hold(call, answer, ask, body, flight);
      tell(call, answer);
      let next: Waited;
      switch (answer.is) {
        case 'replay':
          return replay(call, answer.record);
        case 'conflict':
          return refused(call, answer.record, conflict(call, answer.record));
        case 'gone':
          return refused(call, undefined, gone(call));
        case 'foreign':
          next = await beside(call, answer, body);
          break;
        case 'busy':
          next = await wait(env, call, answer.record, sharing.insideOf(call));
          break;
        case 'in doubt':
          next = { doubt: answer.record, tried: ask.tried };
      }
      if ('result' in next) return next.result;
      if ('ask' in next) ask = next.ask;
      else {
        const { doubt } = next;
        // A worker that was faster has died since: what this call tried before was tried on another attempt.
        const tried = next.tried ?? (doubt.lapsed ? [] : ask.tried);
        const way = waysOut(call, doubt).find((each) => !tried.includes(each));
        if (way === undefined) return inDoubt(call, doubt);
        const { generation } = doubt;
        ask = {
          for: way,
          generation,
          rerunWithinMs: rerunWithin(call, doubt),
          tried: [...tried, way],
          doubt,
        };
      }
    }
  }

  /** Under a won claim: holds the lease, and ends exactly once in the ledger. */
  async function hold(call: Call, won: Won, ask: Ask, body: Body, flight?: Flight): Promise<Result> {
    const attempt = new Attempt(env, call, won);
    attempts.add(attempt);
    if (flight !== undefined) flight.attempt = attempt;
    const unlisten = endWithCaller(attempt);
    try {
      const ended =
        ask.for === 'verify'
          ? await verifyFirst(env, attempt, ask.doubt, body)
          : await execute(env, attempt, body);
      return await settleAttempt(env, attempt, ended);
    } finally {
      unlisten?.();
      attempt.rest();
      attempts.delete(attempt);
    }
  }

  /** What is harmless to repeat is written for each caller, but nothing is shared: after the other one, or without a record. */
  async function beside(
    call: Call,
    { record }: Extract<Lost, { is: 'foreign' }>,
    body: Body,
  ): Promise<Waited> {
    const isRunning = record.status === 'running' && !record.lapsed;
    if (isHarmless(call, record)) {
      if (isRunning && call.tool.contract.ifBusy === 'wait') return waitBehind(env, call, record);
      // The other caller's open question stays as it is.
      if (!isRunning && env.mayRunUnguarded && body === runIt) return { result: runWithoutClaim(env, call) };
    }
    return { result: refused(call, undefined, foreign(call, record)) };
  }

  /** What is wrong with a call before anything is claimed. */
  function problemOf(call: Call): SemelError | undefined {
    if (call.problem !== undefined) return call.problem;
    // What runs may still finish, with all that it calls.
    if (isClosing && (closing.signal.aborted || !sharing.isInsideAny())) return closed();
    if (call.signal?.aborted) return aborted(call);
    return sharing.isInside(call) ? reentrant(call) : undefined;
  }

  return {
    run,
    closing: closing.signal,
    async runWith(call, body) {
      const problem = problemOf(call);
      if (problem !== undefined) return refused(call, undefined, problem);
      const go = (found: Call) =>
        isLate(found, clock) ? answerLate(found) : guarded(found, body, knownOf(found));
      const placing = inOriginalTurn(env, call);
      return track(calls, placing === undefined ? go(call) : placed(call, placing, go));
    },
    async close(graceMs) {
      isClosing = true;
      const finished = new AbortController();
      void none(calls).then(() => finished.abort());
      await pause(clock, graceMs, [finished.signal]);
      closing.abort(interrupted());
      for (const attempt of attempts) attempt.end(interrupted());
      await none(calls);
      await none(settling);
    },
  };
}

/** Keeps the work in the set until it has ended. */
function track<T>(set: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  const end = () => void set.delete(work);
  set.add(work);
  work.then(end, end);
  return work;
}

/** Resolves when nothing is left, also of what joined meanwhile. */
async function none(set: ReadonlySet<Promise<unknown>>): Promise<void> {
  while (set.size > 0) await Promise.allSettled(set);
}
