// The path of a call, from the verdict to the receipt:
//
//   open ─► execute  → heartbeat ∥ [prepare → dispatch →] run → classify → settle → receipt
//           replay   → the stored value
//           busy     → wait | fail | skip
//           in doubt → claim for re-run or for verify → settled or executed again; else IN_DOUBT
//           conflict → KEY_CONFLICT

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { isRepeatable } from '../core/words.ts';
import type { Ledger, Verdict } from '../ledger/index.ts';
import type { ClaimFor, ClaimRequest, StoredRecord } from '../store/store.ts';
import { type Attempt, startAttempt } from './attempt.ts';
import type { Call } from './call.ts';
import { type Concluding, conclude, settleLater } from './conclude.ts';
import { rerunWithin, verify, waysOut } from './doubt.ts';
import { createFlights } from './flights.ts';
import { observe, runUnguarded } from './observe.ts';
import { evidenceOf, inDoubt, type Result, receiptOf, refused } from './receipt.ts';
import { replay } from './replay.ts';
import { runTries, type Try } from './tries.ts';
import { wait } from './wait.ts';

export interface RunnerOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly random: Random;
  /** Who holds the claims of this process, as evidence for people. */
  readonly owner: string;
  readonly maxResultBytes: number;
  /** Repeatable classes may run while the store is away. */
  readonly mayRunUnguarded: boolean;
}

/** Executes under an attempt, and says how it ended. */
export type Body = (attempt: Attempt) => Promise<Try>;

export interface Runner {
  run(call: Call): Promise<Result>;
  /** The same path with the execution in the caller's hands. */
  runWith(call: Call, body: Body): Promise<Result>;
  /** Refuses new calls, lets running ones finish for a while, then ends them by what is known of them. */
  close(graceMs: number): Promise<void>;
}

export function createRunner(options: RunnerOptions): Runner {
  const { ledger, clock, random, owner, mayRunUnguarded } = options;
  const flights = createFlights();
  const attempts = new Set<Attempt>();
  const background = new Set<Promise<unknown>>();
  let closed = false;

  const concluding: Concluding = {
    ledger,
    clock,
    maxResultBytes: options.maxResultBytes,
    inBackground(work) {
      background.add(work);
      void work.finally(() => background.delete(work));
    },
    isClosed: () => closed,
  };

  const runTool: Body = (attempt) => runTries(attempt, clock, random);

  async function run(call: Call): Promise<Result> {
    const { contract } = call.tool;
    if (contract.effect === 'read') return runUnguarded(call, { unguarded: false });
    const problem = earlyProblem(call);
    if (problem !== undefined) return refused(call, undefined, problem);
    if (contract.mode === 'observe') return observe(call, { open, execute, ledger, clock });

    const at = `${call.namespace}\0${call.key}`;
    const flight = flights.find(at);
    if (flight !== undefined && flight.fingerprint === call.fingerprint && contract.ifBusy === 'wait') {
      flight.callers += 1;
      return share(call, await untilAborted(call, flight.result));
    }
    return flights.lead(at, call.fingerprint, () => flights.inside(at, () => guarded(call, runTool))).result;
  }

  async function guarded(call: Call, body: Body): Promise<Result> {
    try {
      return await follow(call, await open(call, 'execute', null, null), body);
    } catch (error) {
      if (!isSemelError(error)) throw error;
      const storeIsAway = error.code === 'STORE_UNAVAILABLE';
      if (storeIsAway && mayRunUnguarded && isRepeatable(call.tool.contract.effect))
        return runUnguarded(call, { unguarded: true });
      return refused(call, undefined, error);
    }
  }

  type Claimed = { readonly verdict: Verdict; readonly token: string; readonly askedAt: number };

  /** One claim, under one token; a claim whose answer never came is given back as soon as the store answers. */
  async function open(
    call: Call,
    purpose: ClaimFor,
    generation: number | null,
    withinMs: number | null,
  ): Promise<Claimed> {
    const token = random.token();
    const askedAt = clock.mono();
    try {
      const verdict = await ledger.open(claimRequest(call, token, purpose, generation, withinMs), {
        ...call.identity,
        owner,
      });
      return { verdict, token, askedAt };
    } catch (error) {
      const { namespace, key } = call;
      const giveBack = {
        namespace,
        key,
        token,
        fence: 0,
        generation: 0,
        outcome: 'released',
        result: null,
        error: null,
        keyed: false,
      } as const;
      if (isSemelError(error, 'STORE_UNAVAILABLE'))
        concluding.inBackground(settleLater(concluding, giveBack));
      throw error;
    }
  }

  function claimRequest(
    call: Call,
    token: string,
    purpose: ClaimFor,
    generation: number | null,
    rerunWithinMs: number | null,
  ): ClaimRequest {
    const { contract } = call.tool;
    const { conversation, turn, toolCallId, run: runId } = call.identity;
    return {
      namespace: call.namespace,
      key: call.key,
      olderKeys: call.olderKeys,
      token,
      fingerprint: call.fingerprint,
      for: purpose,
      generation,
      crossing: contract.dispatch === 'claim',
      leaseMs: contract.leaseMs,
      rerunWithinMs,
      maxCrashes: contract.maxAttempts,
      verifyAfterMs: contract.verifyAfterMs,
      tailMs: contract.tailMs,
      version: contract.version,
      effect: contract.effect,
      keyed: contract.rerunWithinMs !== null,
      retention: {
        windowMs: contract.windowMs,
        failureWindowMs: contract.failureWindowMs,
        keep: contract.per === 'ever' && contract.windowMs > 0,
        periodEndsAt: call.periodEndsAt,
      },
      owner,
      args: call.storedArgs,
      content: call.content,
      notAfter: call.notAfter,
      conversation: conversation ?? null,
      turn: turn ?? null,
      toolCallId: toolCallId ?? null,
      run: runId ?? null,
    };
  }

  async function follow(
    call: Call,
    claimed: Claimed,
    body: Body,
    tried: readonly ClaimFor[] = [],
  ): Promise<Result> {
    const { verdict } = claimed;
    switch (verdict.kind) {
      case 'execute':
        return verdict.record.doubtSince !== null && tried.at(-1) === 'verify'
          ? verifyFirst(call, claimed, verdict.record, body)
          : execute(call, claimed, verdict.record, body);
      case 'replay':
        return replay(call, verdict.record);
      case 'busy':
        return wait(call, verdict.record, {
          ledger,
          clock,
          random,
          goOn: async (record) =>
            follow(call, await open(call, 'execute', record.generation, null), body, tried),
          settleDoubt: (record) => settleDoubt(call, record, body, tried),
        });
      case 'in doubt':
        return settleDoubt(call, verdict.record, body, tried);
      case 'conflict':
        return refused(
          call,
          verdict.record,
          new SemelError(
            'KEY_CONFLICT',
            `${call.tool.contract.name}: this key stands for other identity args.`,
            {
              evidence: evidenceOf(verdict.record),
            },
          ),
        );
      case 'gone':
        return refused(
          call,
          undefined,
          new SemelError(
            'EXPIRED',
            `${call.tool.contract.name}: the execution that this call waited for is over, and its record too.`,
            {
              next: 'Nothing was run. Call again if it is still wanted.',
            },
          ),
        );
    }
  }

  async function settleDoubt(
    call: Call,
    record: StoredRecord,
    body: Body,
    tried: readonly ClaimFor[],
  ): Promise<Result> {
    const way = waysOut(call, record).find((each) => !tried.includes(each));
    if (way === undefined) return inDoubt(call, record);
    const claimed = await open(call, way, record.generation, rerunWithin(call, record));
    return follow(call, claimed, body, [...tried, way]);
  }

  async function verifyFirst(
    call: Call,
    claimed: Claimed,
    record: StoredRecord,
    body: Body,
  ): Promise<Result> {
    return withAttempt(call, claimed, record, async (attempt) => {
      const answer = await verify(attempt);
      if (answer.verdict === 'landed')
        return { ending: { outcome: 'succeeded', value: answer.value }, thrown: undefined };
      const refusal = answer.verdict === 'notLanded' ? await attempt.clear() : undefined;
      if (answer.verdict === 'unsure' || refusal !== undefined) {
        const because = answer.verdict === 'unsure' ? answer.because : refusalText(refusal as string);
        return {
          ending: { outcome: 'unknown', because: because ?? 'unsure' },
          thrown: undefined,
        };
      }
      return bounded(attempt, body);
    });
  }

  function execute(call: Call, claimed: Claimed, record: StoredRecord, body: Body): Promise<Result> {
    return withAttempt(call, claimed, record, (attempt) => bounded(attempt, body));
  }

  async function withAttempt(
    call: Call,
    { token, askedAt }: Claimed,
    record: StoredRecord,
    work: Body,
  ): Promise<Result> {
    const attempt = startAttempt({ ledger, clock, call, record, token, askedAt });
    attempts.add(attempt);
    const unlisten = abortWith(call, attempt);
    try {
      return await conclude(concluding, attempt, await work(attempt));
    } finally {
      unlisten();
      attempt.stop();
      attempts.delete(attempt);
    }
  }

  /** The effect, or the end of its time; what it says afterwards is still told to the ledger. */
  async function bounded(attempt: Attempt, body: Body): Promise<Try> {
    const late = lateProblem(attempt.call);
    if (late !== undefined) return { ending: { outcome: 'released', because: late.message }, thrown: late };
    const running = body(attempt);
    const ended = await Promise.race([running, attempt.over]);
    if (!(ended instanceof SemelError)) return ended;
    concluding.inBackground(running.then((news) => conclude(concluding, attempt, news)));
    return {
      ending: { outcome: attempt.dispatched ? 'unknown' : 'released', because: ended.message },
      thrown: ended,
    };
  }

  /** A caller's signal ends the attempt only while nobody else waits for it. */
  function abortWith(call: Call, attempt: Attempt): () => void {
    const { signal } = call;
    if (signal === undefined) return () => undefined;
    const listener = () => {
      const callers = flights.find(`${call.namespace}\0${call.key}`)?.callers ?? 1;
      if (callers <= 1)
        attempt.abort(
          new SemelError('ABORTED', `${call.tool.contract.name}: the caller gave up.`, {
            cause: signal.reason,
          }),
        );
    };
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    return () => signal.removeEventListener('abort', listener);
  }

  function earlyProblem(call: Call): SemelError | undefined {
    if (closed)
      return new SemelError('STORE_UNAVAILABLE', 'This semel is closed.', {
        next: 'Create a new one.',
        retriable: false,
      });
    if (call.signal?.aborted)
      return new SemelError(
        'ABORTED',
        `${call.tool.contract.name}: the call was aborted before anything was claimed.`,
        { cause: call.signal.reason },
      );
    if (flights.isInside(`${call.namespace}\0${call.key}`)) {
      return new SemelError(
        'REENTRANT',
        `${call.tool.contract.name} was called from inside its own run, with the same identity.`,
      );
    }
    return lateProblem(call);
  }

  function lateProblem({ notAfter, tool }: Call): SemelError | undefined {
    if (notAfter === null || clock.now() <= notAfter) return undefined;
    return new SemelError(
      'EXPIRED',
      `${tool.contract.name} was not to start after ${new Date(notAfter).toISOString()}.`,
    );
  }

  return {
    run,
    async runWith(call, body) {
      const problem = earlyProblem(call);
      return problem === undefined ? guarded(call, body) : refused(call, undefined, problem);
    },
    async close(graceMs) {
      if (closed) return;
      const finished = Promise.allSettled([...flights.all(), ...background]);
      let timer: unknown;
      const grace = new Promise<void>((resolve) => {
        timer = clock.setTimeout(resolve, graceMs);
      });
      if (attempts.size > 0) await Promise.race([finished, grace]);
      clock.clearTimeout(timer);
      closed = true;
      for (const attempt of attempts)
        attempt.abort(new SemelError('ABORTED', 'interrupted: the process is closing.'));
      await Promise.allSettled(flights.all());
    },
  };
}

function refusalText(why: string): string {
  return why === 'early'
    ? 'it says "not landed", but a request may still be on its way'
    : `the claim was ${why}`;
}

/** Equal calls share one flight: each gets a value of its own, so that nobody changes another's. */
async function share(call: Call, result: Result | undefined): Promise<Result> {
  if (result === undefined) {
    return refused(
      call,
      undefined,
      new SemelError(
        'ABORTED',
        `${call.tool.contract.name}: this caller gave up; the call goes on for others.`,
        { retriable: false },
      ),
    );
  }
  const receipt = { ...receiptOf(call, undefined), ...result.receipt, executed: false, replayed: true };
  return result.ok ? { ...result, value: copyOf(result.value), receipt } : { ...result, receipt };
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  try {
    return structuredClone(value);
  } catch {
    return value;
  }
}

async function untilAborted(call: Call, result: Promise<Result>): Promise<Result | undefined> {
  const { signal } = call;
  if (signal === undefined) return result;
  return new Promise((resolve, reject) => {
    const give = () => resolve(undefined);
    signal.addEventListener('abort', give, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', give));
  });
}
