// The path of a call: ask the ledger, do what the answer says, ask again. What wraps the loop (observing, the original turn
// of a call, sharing, being too late) is unknown to it.

import { isSemelError, type SemelError } from '../core/errors.ts';
import { type Answer, createTimers, type LostAnswer, sleep } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { Claim, chooseWayOut, firstPurpose, Look, type Purpose, tell } from './claim.ts';
import { isHarmless } from './doubt.ts';
import type { Env } from './env.ts';
import { execute, stopWithCaller, verifyFirst } from './execute.ts';
import { createHabit } from './habit.ts';
import { observe, observeLate } from './modes/observe.ts';
import { findOriginalTurn } from './modes/original-turn.ts';
import { findInTime } from './modes/too-late.ts';
import { mayRunWithoutClaim, runRepeatable, runUnguarded, runWithoutClaim } from './modes/without-claim.ts';
import { type Result, refuse, refuseInDoubt } from './receipt.ts';
import {
  abortedError,
  closedError,
  conflictError,
  foreignError,
  goneError,
  interruptedError,
  reentrantError,
  tooLateError,
} from './refusals.ts';
import { replay, replayCached } from './replay.ts';
import { type Body, isLate, runTool } from './run-tool.ts';
import { settleAttempt } from './settle.ts';
import { type ActiveCall, createSharing, waitForResult } from './sharing.ts';
import { type NextStep, wait, waitBehind } from './wait.ts';

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
  /** What the loop is at work on; and what wraps it, or goes on after it. */
  const flights = new Set<ActiveCall | Look>();
  const wrapped = new Set<Promise<unknown>>();
  const settling = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let isClosing = false;
  const env: Env = {
    ...options,
    timers: createTimers(clock),
    closing: closing.signal,
    inBackground: (work) => void track(settling, work),
  };
  const sharing = createSharing(clock);
  const { inside } = sharing;
  const habit = createHabit();
  const runIt: Body = (attempt) => runTool(env, attempt);

  function run(call: Call): Result | Promise<Result> {
    const { effect, mode } = call.tool.contract;
    if (effect === 'read') return mode === 'enforce' ? runRepeatable(env, call) : runUnguarded(env, call);
    const problem = problemOf(call);
    if (mode === 'observe') return track(wrapped, observed(call, problem));
    if (problem !== undefined) return refuse(call, undefined, problem);
    const placing = findOriginalTurn(env, call);
    if (placing !== undefined) return track(wrapped, placed(call, placing, run));
    const known = knownOf(call);
    // A live value has to be fetched, which is work like any other.
    if (known?.is === 'replay' && call.tool.onReplay === undefined) {
      tell(env, call, known);
      return known.cached === undefined ? replay(call, known.record) : replayCached(call, known.cached);
    }
    if (known === undefined && ledger.readFirst !== undefined && habit.readsFirst(call.tool.contract)) {
      const look = new Look(call);
      look.result = seenOrLed(look, ledger.readFirst(call, look));
      return look.result;
    }
    return lead(call, known);
  }

  /** Shares the execution of an equal call, or starts one. */
  function lead(call: Call, known: LostAnswer | undefined): Promise<Result> {
    const shared = sharing.join(call);
    if (shared !== undefined) return shared;
    if (isLate(call, clock)) return track(wrapped, answerLate(call));
    const flight = sharing.lead(call);
    flight.result = inside.run(flight, loop, flight, runIt, firstPurpose, known);
    return waitForResult(call, flight);
  }

  /** One read instead of a claim that would lose; where that tells nothing, the claim does. */
  async function seenOrLed(look: Look, looking: Promise<LostAnswer | undefined>): Promise<Result> {
    const { call } = look;
    let seen: LostAnswer | undefined;
    flights.add(look);
    try {
      if (call.signal !== undefined) look.endWith(call.signal, looking);
      seen = await looking;
    } catch (error) {
      if (look.hasLeft) return refuse(call, undefined, error as SemelError);
    } finally {
      flights.delete(look);
    }
    // Since the store answered, its caller may have left, or this process closed.
    if (call.signal?.aborted) return refuse(call, undefined, abortedError(call));
    if (closing.signal.aborted) return refuse(call, undefined, closedError());
    if (seen !== undefined) habit.learn(call.tool.contract, true);
    if (seen?.is !== 'replay' || call.tool.onReplay !== undefined) return lead(call, seen);
    tell(env, call, seen);
    return replay(call, seen.record);
  }

  /** What the call would be told, where that is known or cheaper to read than to ask for. */
  function knownOf(call: Call): LostAnswer | undefined {
    const { contract } = call.tool;
    const remembered = ledger.findCached(call);
    if (remembered !== undefined || !habit.peeksFirst(contract)) return remembered;
    const seen = ledger.peek(call);
    if (seen !== undefined) habit.learn(contract, true);
    return seen;
  }

  /** Asks, does what the answer says, asks again. */
  async function loop(
    flight: ActiveCall,
    body: Body,
    first: Purpose,
    known: LostAnswer | undefined,
  ): Promise<Result> {
    const { call } = flight;
    flights.add(flight);
    try {
      let ask = first;
      for (let answer: Answer | undefined = known; ; answer = undefined) {
        if (answer === undefined) {
          answer = await claim(flight, ask);
          if (ask === firstPurpose) habit.learn(call.tool.contract, answer.is !== 'execute');
        }
        if (answer.is === 'execute') return await hold(flight, answer.record, ask, body);
        tell(env, call, answer);
        let next: NextStep;
        switch (answer.is) {
          case 'replay':
            return await replay(call, answer.record);
          case 'conflict':
            return refuse(call, answer.record, conflictError(call, answer.record));
          case 'gone':
            return refuse(call, undefined, goneError(call));
          case 'foreign':
            next = await beside(call, answer, body);
            break;
          case 'busy':
            next = await wait(env, call, answer.record, sharing.outerContract(call));
            break;
          case 'in doubt':
            next = { doubt: answer.record, tried: ask.tried };
        }
        if ('result' in next) return await next.result;
        if ('doubt' in next) {
          // A worker that was faster has died since: what this call tried before was tried on another attempt.
          const tried = next.tried ?? (next.doubt.lapsed ? [] : ask.tried);
          const wayOut = chooseWayOut(call, next.doubt, tried);
          if (wayOut === undefined) return refuseInDoubt(call, next.doubt);
          ask = wayOut;
        } else ask = next.ask;
      }
    } catch (error) {
      if (!isSemelError(error)) throw error;
      if (mayRunWithoutClaim(env, call, error)) return await runWithoutClaim(env, call);
      return refuse(call, undefined, error);
    } finally {
      flights.delete(flight);
      sharing.end(flight);
    }
  }

  function claim(flight: ActiveCall, ask: Purpose): Promise<Answer> {
    const { call } = flight;
    flight.claim = new Claim(env, call, ask);
    const answering = ledger.claim(flight.claim.request(), flight.claim);
    if (call.signal !== undefined) flight.claim.endWith(call.signal, answering);
    return answering;
  }

  /** Under a won claim: holds the lease, and ends exactly once in the ledger. */
  async function hold(flight: ActiveCall, record: StoredRecord, ask: Purpose, body: Body): Promise<Result> {
    const attempt = new Attempt(env, flight.claim as Claim, record);
    flight.claim = undefined;
    flight.attempt = attempt;
    const unlisten = stopWithCaller(attempt);
    try {
      const ended =
        ask.for === 'verify'
          ? await verifyFirst(env, attempt, ask.doubt, body)
          : await execute(env, attempt, body);
      return await settleAttempt(env, attempt, ended);
    } finally {
      unlisten?.();
      attempt.rest();
    }
  }

  /** A loop whose answer no equal call shares. */
  function loopAlone(call: Call, body: Body, ask: Purpose, known: LostAnswer | undefined): Promise<Result> {
    const flight = sharing.alone(call);
    flight.result = loop(flight, body, ask, known);
    return flight.result;
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
      return refuse(call, undefined, error);
    }
    return go(found.with({ inTurn: undefined }));
  }

  async function answerLate(call: Call): Promise<Result> {
    try {
      const found = await findInTime(env, call);
      if (found === undefined) return refuse(call, undefined, tooLateError(call));
      return await loopAlone(found.call, found.body, found.ask, undefined);
    } catch (error) {
      if (!isSemelError(error)) throw error;
      return refuse(call, undefined, error);
    }
  }

  async function observed(call: Call, problem: SemelError | undefined): Promise<Result> {
    if (problem === undefined && isLate(call, clock)) return observeLate(env, call);
    const flight = sharing.alone(call);
    flights.add(flight);
    try {
      return await observe(
        {
          env,
          claim: () => claim(flight, firstPurpose),
          hold: (record, body) => hold(flight, record, firstPurpose, body),
        },
        call,
        problem,
      );
    } finally {
      flights.delete(flight);
    }
  }

  /** What is harmless to repeat is written for each caller, but nothing is shared: after the other one, or without a record. */
  async function beside(
    call: Call,
    { record }: Extract<LostAnswer, { is: 'foreign' }>,
    body: Body,
  ): Promise<NextStep> {
    const isRunning = record.status === 'running' && !record.lapsed;
    if (isHarmless(call, record)) {
      if (isRunning && call.tool.contract.ifBusy === 'wait') return waitBehind(env, call, record);
      // The other caller's open question stays as it is.
      if (!isRunning && env.mayRunUnguarded && body === runIt) return { result: runWithoutClaim(env, call) };
    }
    return { result: refuse(call, undefined, foreignError(call, record)) };
  }

  /** What is wrong with a call before anything is claimed. */
  function problemOf(call: Call): SemelError | undefined {
    if (call.problem !== undefined) return call.problem;
    // What runs may still finish, with all that it calls.
    if (isClosing && (closing.signal.aborted || !sharing.isNested())) return closedError();
    if (call.signal?.aborted) return abortedError(call);
    return sharing.isReentrant(call) ? reentrantError(call) : undefined;
  }

  const pipeline: Pipeline = {
    run,
    closing: closing.signal,
    async runWith(call, body) {
      const problem = problemOf(call);
      if (problem !== undefined) return refuse(call, undefined, problem);
      const placing = findOriginalTurn(env, call);
      if (placing !== undefined)
        return track(
          wrapped,
          placed(call, placing, (found) => pipeline.runWith(found, body)),
        );
      if (isLate(call, clock)) return track(wrapped, answerLate(call));
      return loopAlone(call, body, firstPurpose, knownOf(call));
    },
    async close(graceMs) {
      isClosing = true;
      const finished = new AbortController();
      void ended().then(() => finished.abort());
      await sleep(clock, graceMs, [finished.signal]);
      closing.abort(interruptedError());
      for (const flight of flights) flight.close(interruptedError());
      await ended();
      await none(settling);
    },
  };
  return pipeline;

  /** Resolves when nothing runs or waits any more, also of what joined meanwhile. */
  async function ended(): Promise<void> {
    while (flights.size + wrapped.size > 0)
      await Promise.allSettled([...wrapped, ...Array.from(flights, ({ result }) => result)]);
  }
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
