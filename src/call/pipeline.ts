// The path of a call: claim, do what the answer says, claim again. Start reading at `loop`. `run` handles what comes before
// it, which the loop does not know about: observe mode, the original turn of a call, replays from memory, calls that share
// an execution, calls that come too late.

import type { Contract } from '../core/contract/contract.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { isSemelError, type SemelError } from '../core/errors.ts';
import { type Answer, createTimers, type LostAnswer } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { Claim, chooseWayOut, firstPurpose, PendingRead, type Purpose, reportAnswer } from './claim.ts';
import { endIfDead } from './death.ts';
import { type Claimant, createTicketReports, type Detached, detach, type TicketReports } from './detached.ts';
import type { Env } from './env.ts';
import { runAttempt } from './execute.ts';
import { createHabit } from './habit.ts';
import { refuseInDoubt } from './in-doubt-error.ts';
import { identityInside } from './modes/inner-calls.ts';
import { observe } from './modes/observe.ts';
import { findOriginalTurn, runInOriginalTurn } from './modes/original-turn.ts';
import { readOrStart } from './modes/read-first.ts';
import { answerLate } from './modes/too-late.ts';
import { mayRunWithoutClaim, runRepeatable, runUnguarded, runWithoutClaim } from './modes/without-claim.ts';
import { type Result, refuse } from './receipt.ts';
import {
  abortedError,
  closedError,
  conflictError,
  goneError,
  reentrantError,
  strictError,
} from './refusals.ts';
import { replay, replayCached } from './replay.ts';
import { type Body, isLate, runTool, type Try } from './run-tool.ts';
import { type ActiveCall, createSharing, waitForResult } from './sharing.ts';
import { changed, surrounding } from './surroundings.ts';
import { type NextStep, wait, waitForOtherCaller } from './wait.ts';
import { createWork, type Work } from './work.ts';

export type PipelineOptions = Omit<Env, 'timers' | 'closing' | 'inBackground' | 'onceInBackground'>;

export interface Pipeline extends Pick<Work, 'closing' | 'close'> {
  /** Returns a promise only if there is something to wait for: many replays are in memory. */
  run(call: Call): Result | Promise<Result>;
  /** The same path, but the caller executes the effect. */
  runWith(call: Call, body: Body): Promise<Result>;
  /** The same path with the tool's own effect, which starts once `before` agrees; else the attempt ends as that says. */
  runAfter(call: Call, before: (attempt: Attempt) => Promise<Try | undefined>): Promise<Result>;
  /** The same path, but another program executes the effect and reports by the ticket that it gets. */
  detach(call: Call, claimant: Claimant): Promise<Detached>;
  readonly tickets: TicketReports;
  /** The call as it was first made. */
  inOriginalTurn(call: Call): Promise<Call>;
  /** Ends the claim of a process that is proven dead. True: the record has changed. */
  endIfDead(record: StoredRecord): Promise<boolean>;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { ledger, clock } = options;
  const work = createWork(clock);
  const { closing, inBackground, onceInBackground } = work;
  const env: Env = { ...options, timers: createTimers(clock), closing, inBackground, onceInBackground };
  const sharing = createSharing(clock);
  const habit = createHabit();
  const toolBody: Body = Object.assign((attempt: Attempt) => runTool(env, attempt), {
    endsWithProcess: true,
  });

  return {
    run,
    runWith,
    runAfter,
    detach: (call, claimant) => detach(runWith, env, call, claimant),
    tickets: createTicketReports(env),
    inOriginalTurn,
    endIfDead: (record) => endIfDead(env, record),
    closing,
    close: work.close,
  };

  async function inOriginalTurn(call: Call): Promise<Call> {
    return (await findOriginalTurn(env, call)) ?? call;
  }

  function run(call: Call): Result | Promise<Result> {
    const { contract, onReplay } = call.tool;
    if (contract.effect === 'read' || contract.mode !== 'enforce')
      return surrounding.run(changed({ identity: identityInside(call, clock) }), runAside, call);
    const problem = findProblem(call);
    if (problem !== undefined) return refuse(call, undefined, problem);
    const originalTurn = findOriginalTurn(env, call);
    if (originalTurn !== undefined) return work.track(runInOriginalTurn(call, originalTurn, run));
    const known = peek(call);
    // `onReplay` fetches a live value, which is work like any other.
    if (known?.is === 'replay' && onReplay === undefined) {
      reportAnswer(env, call, known);
      return known.cached === undefined ? replay(call, known.record) : replayCached(call, known.cached);
    }
    if (known === undefined && ledger.readFirst !== undefined && readsFirst(contract)) {
      const read = new PendingRead(call);
      read.result = readOrStart(env, work, habit, read, start);
      return read.result;
    }
    return start(call, known);
  }

  /** Reads, and calls that are only observed. */
  function runAside(call: Call): Promise<Result> {
    const { effect, mode } = call.tool.contract;
    if (effect === 'read') return mode === 'enforce' ? runRepeatable(env, call) : runUnguarded(env, call);
    if (mode === 'off') return work.track(runUnguarded(env, call, { unguarded: true }));
    return work.track(observe(env, work, sharing.startAlone(call), findProblem(call)));
  }

  async function runWith(call: Call, body: Body): Promise<Result> {
    const problem = findProblem(call);
    if (problem !== undefined) return refuse(call, undefined, problem);
    const originalTurn = findOriginalTurn(env, call);
    if (originalTurn !== undefined)
      return work.track(runInOriginalTurn(call, originalTurn, (found) => runWith(found, body)));
    if (isLate(call, clock)) return work.track(answerLate(env, call, startAlone));
    return startAlone(call, body, firstPurpose, peek(call));
  }

  function runAfter(call: Call, before: (attempt: Attempt) => Promise<Try | undefined>): Promise<Result> {
    const body: Body = async (attempt) => (await before(attempt)) ?? toolBody(attempt);
    return runWith(call, Object.assign(body, { endsWithProcess: true }));
  }

  /** The reason to refuse a call before anything is claimed. */
  function findProblem(call: Call): SemelError | undefined {
    if (call.problem !== undefined) return call.problem;
    // Running effects may still finish, with all the calls that they make.
    if (work.isClosing && (closing.aborted || !sharing.isNested())) return closedError();
    if (call.signal?.aborted) return abortedError(call);
    return sharing.isReentrant(call) ? reentrantError(call) : undefined;
  }

  /** A repeatable write always runs, so there is nothing to read. */
  function readsFirst(contract: Contract): boolean {
    return !isRepeatable(contract.effect) && habit.readsFirst(contract);
  }

  /** The answer, if it is in memory or cheaper to read than to claim. */
  function peek(call: Call): LostAnswer | undefined {
    const { contract } = call.tool;
    if (isRepeatable(contract.effect)) return undefined;
    const cached = ledger.findCached(call);
    if (cached !== undefined || !habit.peeksFirst(contract)) return cached;
    const found = ledger.peek(call);
    if (found !== undefined) habit.learn(contract, true);
    return found;
  }

  /** Shares the execution of an equal call, or starts one. */
  function start(call: Call, known: LostAnswer | undefined): Promise<Result> {
    const shared = sharing.join(call);
    if (shared !== undefined) return shared;
    const identity = identityInside(call, clock);
    if (isLate(call, clock))
      return work.track(surrounding.run(changed({ identity }), answerLate, env, call, startAlone));
    const active = sharing.start(call);
    active.result = surrounding.run(
      changed({ identity, call: active }),
      loop,
      active,
      toolBody,
      firstPurpose,
      known,
    );
    return waitForResult(call, active);
  }

  /** Starts an execution that no equal call shares. */
  function startAlone(call: Call, body: Body, purpose: Purpose, known?: LostAnswer): Promise<Result> {
    const active = sharing.startAlone(call);
    active.result = surrounding.run(changed({ call: active }), loop, active, body, purpose, known);
    return active.result;
  }

  /** Claims, does what the answer says, claims again. `known`: an answer that was read before the first claim. */
  async function loop(
    active: ActiveCall,
    body: Body,
    first: Purpose,
    known: LostAnswer | undefined,
  ): Promise<Result> {
    const { call } = active;
    const claimant = body.claimant ?? { owner: chooseOwner(env, call, body) };
    work.active.add(active);
    try {
      let purpose = first;
      // Others may take the key again and again: all waits of a call are one.
      let waitsSince: number | undefined;
      for (let answer: Answer | undefined = known; ; answer = undefined) {
        if (answer === undefined) {
          // Decided by the store: src/rules/claim.ts.
          const claim = new Claim(env, call, purpose, claimant);
          active.claim = claim;
          answer = await claim.orAbandon(ledger.claim(claim.request(), claim));
          if (purpose === firstPurpose) habit.learn(call.tool.contract, answer.is !== 'execute');
        }
        if (answer.is === 'execute') {
          const handedOver = body.handOver?.(active.claim as Claim, answer.record, purpose);
          return handedOver ?? (await runAttempt(env, active, answer.record, purpose, body));
        }
        if (isPastWrite(call, answer)) {
          active.hasStarted = true;
          return await runWithoutClaim(env, call, body);
        }
        reportAnswer(env, call, answer);
        let next: NextStep;
        switch (answer.is) {
          case 'replay':
            return await replay(call, answer.record);
          case 'conflict':
            return refuse(call, answer.record, conflictError(call, answer.record));
          case 'gone':
            // The record that this call waited for was removed.
            return refuse(call, undefined, goneError(call));
          case 'foreign':
            // The record is another caller's.
            waitsSince ??= clock.mono();
            next = await waitForOtherCaller(env, call, answer.record, waitsSince, body);
            break;
          case 'busy': {
            const conflict = findStrictConflict(call, answer.record);
            if (conflict !== undefined) return conflict;
            waitsSince ??= clock.mono();
            next = await wait(env, call, answer.record, waitsSince, sharing.outerContract(call));
            break;
          }
          case 'in doubt':
            next = { doubt: answer.record, tried: isAnother(answer.record, purpose) ? [] : purpose.tried };
        }
        if ('result' in next) {
          active.hasStarted = true;
          return await next.result;
        }
        if ('doubt' in next) {
          // It would re-run or verify what is not its own effect.
          const conflict = findStrictConflict(call, next.doubt);
          if (conflict !== undefined) return conflict;
          // What was tried (a re-run, `verify`) was tried on one attempt; a lapsed record shows that another has died since.
          const tried = next.tried ?? (next.doubt.lapsed ? [] : purpose.tried);
          const wayOut = chooseWayOut(call, next.doubt, tried);
          if (wayOut === undefined) return refuseInDoubt(call, next.doubt);
          purpose = wayOut;
        } else purpose = next.purpose;
      }
    } catch (error) {
      if (!isSemelError(error)) throw error;
      if (mayRunWithoutClaim(env, call, error)) {
        active.hasStarted = true;
        return await runWithoutClaim(env, call, body);
      }
      return refuse(call, undefined, error);
    } finally {
      work.active.remove(active);
      sharing.end(active);
    }
  }
}

/** A child process of the tool may send after the death of this one; `ctx.fetch` cannot. */
function chooseOwner({ owner, provableOwner, loneOwner }: Env, { tool }: Call, body: Body): string {
  if (body.endsWithProcess !== true) return owner;
  return tool.contract.via === 'fetch' ? loneOwner : provableOwner;
}

/** Another attempt has been made since the last look: nothing was tried on it. */
function isAnother({ fence }: StoredRecord, { doubt }: Purpose): boolean {
  return doubt !== undefined && doubt.fence !== fence;
}

function findStrictConflict(call: Call, record: StoredRecord): Result | undefined {
  const fields = call.findConflict(record);
  return fields.length === 0 ? undefined : refuse(call, record, strictError(call, record, fields));
}

/** Remembered under an earlier, stricter contract; by the present one, every call is a write of its own. */
function isPastWrite({ tool, generation }: Call, answer: LostAnswer): boolean {
  return answer.is === 'replay' && isRepeatable(tool.contract.effect) && generation === null;
}
