// The path of a call, from the verdict to the receipt:
//
//   open ─► execute  → heartbeat ∥ [prepare → dispatch →] run → classify → settle → receipt
//           replay   → the stored value
//           busy     → wait | fail | skip
//           in doubt → claim for re-run or for verify → settled or executed again; else IN_DOUBT
//           conflict → KEY_CONFLICT

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { isRepeatable, stricter } from '../core/words.ts';
import { type Ledger, type Lost, pause } from '../ledger/index.ts';
import type { ClaimFor, StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { type Claimed, createClaims, first } from './claims.ts';
import { type Concluding, messageOf, settleLater } from './conclude.ts';
import { rerunWithin, waysOut } from './doubt.ts';
import { type Body, createExecutions } from './execution.ts';
import { createFirstTurns } from './first-turn.ts';
import { createFlights } from './flights.ts';
import { observe } from './observe.ts';
import { inDoubt, type Result, refused } from './receipt.ts';
import {
  aborted,
  closed,
  conflict,
  foreign,
  gone,
  harmless,
  interrupted,
  reentrant,
  tooLate,
} from './refusals.ts';
import { replay } from './replay.ts';
import { isLate, runTries } from './tries.ts';
import { isRejected, runRepeatable, runUnguarded } from './unguarded.ts';
import { type Waiting, wait, waitBehind } from './wait.ts';

export interface RunnerOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly random: Random;
  /** Who holds the claims of this process, as evidence for people. */
  readonly owner: string;
  readonly maxResultBytes: number;
  /** Repeatable classes may run while the store is away. */
  readonly mayRunUnguarded: boolean;
  /** Says it once. */
  readonly warn: (message: string) => void;
}

export interface Runner {
  /** A promise only where something has to be waited for: a replay often is at hand. */
  run(call: Call): Result | Promise<Result>;
  /** The same path with the execution in the caller's hands. */
  runWith(call: Call, body: Body): Promise<Result>;
  /** Aborts when those who still run or wait must end. */
  readonly closing: AbortSignal;
  /** Refuses new calls, lets running ones finish for a while, then ends them by what is known of them. */
  close(graceMs: number): Promise<void>;
}

/** Keeps the work in the set until it has ended. */
function until<T>(set: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  const end = () => void set.delete(work);
  set.add(work);
  work.then(end, end);
  return work;
}

/** Resolves when nothing is left, also of what joined meanwhile. */
async function none(set: ReadonlySet<Promise<unknown>>): Promise<void> {
  while (set.size > 0) await Promise.allSettled(set);
}

export function createRunner({
  ledger,
  clock,
  random,
  owner,
  maxResultBytes,
  mayRunUnguarded,
  warn,
}: RunnerOptions): Runner {
  const flights = createFlights(clock);
  const calls = new Set<Promise<unknown>>();
  const settling = new Set<Promise<unknown>>();
  /** Aborts when those who still run or wait must end. */
  const closing = new AbortController();
  let isClosing = false;

  const concluding: Concluding = {
    ledger,
    clock,
    maxResultBytes,
    warn,
    inBackground: (work) => void until(settling, work),
    closing: closing.signal,
  };
  const executions = createExecutions({
    ledger,
    clock,
    concluding,
    onStart: (call, attempt) => flights.started(call, attempt),
    warn,
  });
  const { open, glance, tell } = createClaims({
    ledger,
    clock,
    random,
    owner,
    closing: closing.signal,
    giveBack(token, { namespace, key, olderKeys }) {
      const nobody = {
        namespace,
        token,
        fence: 0,
        generation: 0,
        result: null,
        error: null,
        keyed: false,
        found: false,
      };
      for (const form of [key, ...olderKeys]) {
        concluding.inBackground(settleLater(concluding, { ...nobody, key: form, outcome: 'released' }));
      }
    },
  });
  const inFirstTurn = createFirstTurns({ ledger, random, owner });
  /** Every run is an effect of its own: under one key a provider would answer the second with the first. */
  const freshFence = () => random.token();
  const repeating = { clock, random, closing: closing.signal };
  const runTool: Body = (attempt) => runTries(attempt, clock, random);

  function run(call: Call): Result | Promise<Result> {
    const { contract } = call.tool;
    if (contract.effect === 'read')
      return contract.mode === 'enforce'
        ? runRepeatable(call, freshFence(), repeating)
        : runUnguarded(call, freshFence());
    const problem = problemOf(call);
    if (contract.mode === 'observe' && problem === undefined && isLate(call, clock))
      return until(calls, observeLate(call));
    if (contract.mode === 'observe')
      return until(calls, observe(call, problem, { open, execute: executions.execute, ledger, freshFence }));
    if (problem !== undefined) return refused(call, undefined, problem);
    const placing = inFirstTurn(call);
    return placing === undefined ? runHere(call) : until(calls, placed(call, placing, runHere));
  }

  /** Whoever cannot look up where the call belongs does not run it: it may be done. */
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

  function runHere(call: Call): Result | Promise<Result> {
    const lost = glance(call);
    // What fetches a live value is work like any other.
    if (lost?.kind === 'replay' && call.tool.onReplay === undefined) {
      tell(call, lost);
      return replay(call, lost.record);
    }
    const shared = flights.join(call);
    if (shared !== undefined) return shared;
    if (isLate(call, clock)) return until(calls, tooLateToRun(call));
    return flights.lead(call, (led) => until(calls, guarded(led, lost, runTool)));
  }

  async function guarded(call: Call, lost: Lost | undefined, body: Body): Promise<Result> {
    try {
      if (lost !== undefined) return await answer(call, lost, body, []);
      return await follow(call, await open(call, first), body, []);
    } catch (error) {
      if (!isSemelError(error)) throw error;
      const isOver = closing.signal.aborted;
      const mayGoOn = !isOver && mayRunUnguarded && isRepeatable(call.tool.contract.effect);
      if (error.code === 'STORE_UNAVAILABLE' && mayGoOn) return unguarded(call);
      return refused(call, undefined, error);
    }
  }

  /** What is harmless to repeat is written for each caller, but nothing is shared: after the other one, or without a record. */
  function beside(call: Call, record: StoredRecord, body: Body, waiting: Waiting): Result | Promise<Result> {
    const isRunning = record.status === 'running' && !record.lapsed;
    if (isRunning && call.tool.contract.ifBusy === 'wait') return waitBehind(call, record, waiting);
    // The other caller's open question stays as it is.
    if (!isRunning && mayRunUnguarded && body === runTool) return unguarded(call);
    return refused(call, undefined, foreign(call, record));
  }

  async function unguarded(call: Call): Promise<Result> {
    try {
      // The store's patience took its time.
      if (isLate(call, clock)) return refused(call, undefined, tooLate(call));
      return await runRepeatable(call, freshFence(), repeating, { unguarded: true });
    } catch (cause) {
      const { name } = call.tool.contract;
      const error = isRejected(call, cause)
        ? new SemelError('FAILED', `${name} failed: ${messageOf(cause)}.`, { cause })
        : harmless(name, messageOf(cause), { cause });
      return refused(call, undefined, error, { executed: true, unguarded: true });
    }
  }

  function follow(
    call: Call,
    claimed: Claimed,
    body: Body,
    tried: readonly ClaimFor[],
  ): Result | Promise<Result> {
    const { verdict, purpose } = claimed;
    if (verdict.kind !== 'execute') return answer(call, verdict, body, tried);
    return purpose === 'verify'
      ? executions.verifyFirst(call, claimed, verdict.record, body)
      : executions.execute(call, claimed, verdict.record, body);
  }

  function answer(
    call: Call,
    verdict: Lost,
    body: Body,
    tried: readonly ClaimFor[],
  ): Result | Promise<Result> {
    tell(call, verdict);
    const waiting = (): Waiting => ({
      ledger,
      clock,
      random,
      goOn: async ({ generation }) => follow(call, await open(call, { ...first, generation }), body, []),
      // Whoever was faster has died since: what this call tried before was tried on another attempt.
      settleDoubt: (record) => settleDoubt(call, record, body, record.lapsed ? [] : tried),
      startAnew: async () => follow(call, await open(call, first), body, []),
      closing: closing.signal,
      warn,
      insideOf: flights.insideOf(call),
    });
    switch (verdict.kind) {
      case 'replay':
        return replay(call, verdict.record);
      case 'busy':
        return wait(call, verdict.record, waiting());
      case 'in doubt':
        return settleDoubt(call, verdict.record, body, tried);
      case 'conflict':
        return refused(call, verdict.record, conflict(call, verdict.record));
      case 'foreign':
        return isHarmless(call, verdict.record)
          ? beside(call, verdict.record, body, waiting())
          : refused(call, undefined, foreign(call, verdict.record));
      case 'gone':
        return refused(call, undefined, gone(call));
    }
  }

  async function settleDoubt(
    call: Call,
    record: StoredRecord,
    body: Body,
    tried: readonly ClaimFor[],
  ): Promise<Result> {
    const purpose = waysOut(call, record).find((way) => !tried.includes(way));
    if (purpose === undefined) return inDoubt(call, record);
    const { generation } = record;
    const claimed = await open(call, { purpose, generation, rerunWithinMs: rerunWithin(call, record) });
    return follow(call, { ...claimed, inDoubt: record }, body, [...tried, purpose]);
  }

  /** What is wrong with a call before anything is claimed. */
  function problemOf(call: Call): SemelError | undefined {
    if (call.problem !== undefined) return call.problem;
    // What runs may still finish, with all that it calls.
    if (closing.signal.aborted || (isClosing && !flights.isInsideAny())) return closed();
    if (call.signal?.aborted) return aborted(call);
    return flights.isInside(call) ? reentrant(call) : undefined;
  }

  /** Nothing is run any more; but whoever asks for what was done in time, or may have been, is told. */
  async function tooLateToRun(call: Call): Promise<Result> {
    const thrown = tooLate(call);
    const nothing: Body = async () => ({ ending: { outcome: 'released', because: thrown.message }, thrown });
    // Whether it landed may be asked at any time.
    const asking: Call = { ...call, notAfter: null, asksOnly: true };
    try {
      for (const key of [call.key, ...call.olderKeys]) {
        const verdict = await ledger.look({ ...call, key });
        if (verdict.kind === 'gone' || verdict.record.expired || isFree(verdict.record)) continue;
        const { generation } = verdict.record;
        return await follow(asking, await open(asking, { ...first, generation }), nothing, []);
      }
      return refused(call, undefined, thrown);
    } catch (error) {
      if (!isSemelError(error)) throw error;
      return refused(call, undefined, error);
    }
  }

  async function observeLate(call: Call): Promise<Result> {
    const verdict = await ledger.look(call).catch(() => undefined);
    const isReplay = verdict?.kind === 'replay' && !verdict.record.expired;
    const observed = isReplay ? 'replay' : `refuse: ${tooLate(call).code}`;
    return runUnguarded(call, freshFence(), { observed });
  }

  return {
    run,
    closing: closing.signal,
    async runWith(call, body) {
      const problem = problemOf(call);
      if (problem !== undefined) return refused(call, undefined, problem);
      const go = (found: Call) =>
        isLate(found, clock) ? tooLateToRun(found) : guarded(found, glance(found), body);
      const placing = inFirstTurn(call);
      return until(calls, placing === undefined ? go(call) : placed(call, placing, go));
    },
    async close(graceMs) {
      isClosing = true;
      const finished = new AbortController();
      void none(calls).then(() => finished.abort());
      await pause(clock, graceMs, [finished.signal]);
      closing.abort(interrupted());
      executions.interrupt();
      await none(calls);
      await none(settling);
    },
  };
}

/** Also by the contract under which it was begun. */
function isHarmless({ tool }: Call, record: StoredRecord): boolean {
  return isRepeatable(stricter(tool.contract.effect, record.effect));
}

/** A claim would win it. */
function isFree({ status, lapsed, inDoubt: isInDoubt }: StoredRecord): boolean {
  return status === 'released' || (lapsed && !isInDoubt);
}
