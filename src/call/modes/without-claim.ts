// Runs without a claim: reads, and repeatable effects while the store is down.

import { onAbort } from '../../core/abort.ts';
import { makeReadable } from '../../core/contract/classify.ts';
import { isRepeatable } from '../../core/contract/words.ts';
import { SemelError } from '../../core/errors.ts';
import { deferred } from '../../core/older-node.ts';
import { isLazy } from '../../core/plain.ts';
import { AlreadyLanded, isSignal, NotLanded, Rejected } from '../../core/signals.ts';
import { CallbackTimer, sleep, type Timers } from '../../ledger/index.ts';
import type { Call, Tool } from '../call.ts';
import type { Env } from '../env.ts';
import { createReceipt, type Receipt, type Result, refuse } from '../receipt.ts';
import { repeatableError, timeoutError, tooLateError } from '../refusals.ts';
import {
  askClassifiers,
  type Body,
  backoffMs,
  isLate,
  lazyRunError,
  lookAt,
  type PrepareTarget,
  prepareAndDispatch,
} from '../run-tool.ts';
import { type ContextSource, createContext } from '../sending/context.ts';
import type { Requests } from '../sending/requests.ts';
import { Stop } from '../sending/stop.ts';
import { describeError } from '../settle.ts';
import { noStepsError, type StepOptions, type StepWork } from '../steps.ts';
import { withoutWord } from './own-error.ts';

/** What `ctx` of a run without a claim does. */
export interface RunHooks {
  readonly providerKeyFence: number | string;
  readonly markFence?: number;
  readonly dispatch: (unkeyed?: string) => Promise<void>;
  /** Before a step, which gets no record. */
  readonly enterStep: () => Promise<void>;
  readonly note: (remoteRef: string) => Promise<boolean>;
}

/** Without record and claim: the tool's own error is thrown as it is. */
export async function runUnguarded(
  { random }: Env,
  call: Call,
  more: Partial<Receipt> = {},
): Promise<Result> {
  return runOnce(call, random.token(), more, ({ run }) => withoutWord(call.tool.contract, run()));
}

/** The same within the contract's `timeout` and with its `retry`. */
export async function runRepeatable(
  { clock, random, timers, closing }: Env,
  call: Call,
  more: Partial<Receipt> = {},
  maxTries: number = call.tool.contract.retry.tries,
): Promise<Result> {
  const { retry } = call.tool.contract;
  // Each run is a separate effect: under one key, a provider would answer the second run with the first.
  const providerKeyFence = random.token();
  const repeated = maxTries > 1 ? prepareOnce(call) : call;
  const isOver = () => closing.aborted || call.signal?.aborted === true;
  for (let tries = 1; ; tries += 1) {
    try {
      return await runOnce(repeated, providerKeyFence, more, (attempt) =>
        runWithTimeout(call, attempt, timers).catch(valueIfLanded),
      );
    } catch (error) {
      if (tries >= maxTries || isRejected(call, error) || isOver()) throw ownError(call, error);
      await sleep(clock, backoffMs(retry, tries, random), [call.signal, closing]);
      if (isOver() || isLate(call, clock)) throw ownError(call, error);
    }
  }
}

/** The store is down, and the effect class allows running without it. */
export function mayRunWithoutClaim(env: Env, { tool, verifyOnly }: Call, { code }: SemelError): boolean {
  const mayGoOn =
    !env.closing.aborted && env.mayRunUnguarded && isRepeatable(tool.contract.effect) && !verifyOnly;
  return code === 'STORE_UNAVAILABLE' && mayGoOn;
}

/** Runs a repeatable effect without a record. */
export async function runWithoutClaim(env: Env, call: Call, { runExternally }: Body): Promise<Result> {
  try {
    // It may have become too late while waiting for the store.
    if (isLate(call, env.clock)) return refuse(call, undefined, tooLateError(call));
    if (runExternally === undefined) return await runRepeatable(env, call, { unguarded: true });
    const external = call.with({ tool: { ...call.tool, run: runExternally } });
    // The caller executes it, and does so once.
    return await runRepeatable(env, external, { unguarded: true }, 1);
  } catch (cause) {
    return refuse(call, undefined, toRefusal(call, cause), { executed: true, unguarded: true });
  }
}

/** What a read throws reaches its caller, but what it says about itself must not count for an effect that called it. */
function ownError(call: Call, error: unknown): unknown {
  return call.tool.contract.effect === 'read' && isSignal(makeReadable(error))
    ? toRefusal(call, error)
    : error;
}

function toRefusal(call: Call, cause: unknown): SemelError {
  const { name } = call.tool.contract;
  return isRejected(call, cause)
    ? new SemelError('FAILED', `${name} failed: ${describeError(cause)}.`, { cause })
    : repeatableError(name, describeError(cause), { cause });
}

/** The tool or its provider says that a retry is useless. */
function isRejected({ tool }: Call, error: unknown): boolean {
  const thrown = makeReadable(error);
  return thrown instanceof Rejected || askClassifiers(tool, thrown, lookAt(tool, thrown)) === 'rejected';
}

/** Every try has the same key, and a provider would refuse a different request under it. */
function prepareOnce(call: Call): Call {
  const { prepare } = call.tool;
  if (prepare === undefined) return call;
  let prepared: { readonly output: unknown } | undefined;
  const once: Tool['prepare'] = async (args, ctx) => {
    prepared ??= { output: await prepare(args, ctx) };
    return prepared.output;
  };
  return call.with({ tool: { ...call.tool, prepare: once } });
}

async function runOnce(
  call: Call,
  providerKeyFence: number | string,
  more: Partial<Receipt>,
  running: (attempt: BareRun) => Promise<unknown>,
): Promise<Result> {
  let remoteRef: string | undefined;
  const note = async (ref: string) => {
    remoteRef = ref;
    return false;
  };
  const nothing = async () => undefined;
  const value = await running(
    createBareRun(call, { providerKeyFence, dispatch: nothing, enterStep: nothing, note }),
  );
  return { ok: true, value, receipt: createReceipt(call, undefined, { executed: true, remoteRef, ...more }) };
}

/** An effect that had landed already is a success too. */
function valueIfLanded(error: unknown): unknown {
  const thrown = makeReadable(error);
  if (thrown instanceof AlreadyLanded) return thrown.value;
  throw error;
}

async function runWithTimeout(
  { tool }: Call,
  { run, stop, requests }: BareRun,
  timers: Timers,
): Promise<unknown> {
  const { timeoutMs } = tool.contract;
  const { promise: over, reject } = deferred<never>();
  const timer = new CallbackTimer(() => {
    const reason = timeoutError(tool.contract);
    stop.request(reason);
    reject(reason);
  });
  if (Number.isFinite(timeoutMs)) timers.start(timeoutMs, timer);
  try {
    const value = await Promise.race([run(), over]);
    // A generator has not run yet, so it is not done. One that a read returns is the caller's to run.
    if (isLazy(value) && tool.contract.effect !== 'read') throw lazyRunError(tool.contract.name);
    return value;
  } catch (error) {
    // Code that it left running must not send beside a further try.
    void requests.close();
    throw error;
  } finally {
    timer.list?.remove(timer);
  }
}

export interface BareRun {
  run(): Promise<unknown>;
  readonly requests: Requests;
  readonly stop: Stop;
  /** A step has landed, or may have, and has no record. */
  readonly hasOpenStep: boolean;
}

export function createBareRun(
  call: Call,
  { providerKeyFence, markFence, dispatch, enterStep, note }: RunHooks,
): BareRun {
  const { stop, unlink } = linkStop(call);
  const { tool, namespace, key } = call;
  let steps = 0;
  let openSteps = 0;
  const runningSteps = new Set<Promise<unknown>>();
  const target: PrepareTarget & { prepared: unknown } = {
    prepared: undefined,
    hasPrepared: false,
    prepare(output) {
      target.prepared = output;
    },
    dispatch,
  };
  const source: ContextSource = {
    namespace,
    recordKey: key,
    providerKeyFence,
    ...(markFence === undefined ? {} : { markFence }),
    provider: tool.contract.provider,
    issuedKeys: new Set(),
    // Without a claim, nothing is held back.
    mayRepeat: true,
    fence: 0,
    attempt: 1,
    stop,
    dispatch,
    note,
    isStepsOnly: false,
    // Without a guard, a step just runs its work.
    takeStep(name, ...rest) {
      const running = runStep(rest);
      runningSteps.add(running);
      const end = () => runningSteps.delete(running);
      running.then(end, end);
      return withoutWord({ name: `${tool.contract.name}.${name}`, effect: 'write-non-idempotent' }, running);
    },
    get prepared() {
      return target.prepared;
    },
  };
  const { ctx, requests } = createContext(source);
  const args = call.args as never;

  /** Under a key of its own: to a provider, two steps under one key would be one effect. */
  async function runStep(given: readonly unknown[]): Promise<unknown> {
    const { mode, name } = tool.contract;
    if (mode === 'enforce') throw noStepsError(name);
    const [{ provider }, work] = (given.length === 1 ? [{}, given[0]] : given) as [StepOptions, StepWork];
    steps += 1;
    const { markFence: _, ...own } = source;
    const inner = createContext({
      ...{ ...own, provider, issuedKeys: new Set() },
      providerKeyFence: `${providerKeyFence}/${steps}`,
      note: async () => false,
    });
    openSteps += 1;
    await enterStep();
    try {
      return await work(inner.ctx as never);
    } catch (thrown) {
      const error = makeReadable(thrown);
      if (error instanceof NotLanded || error instanceof Rejected) openSteps -= 1;
      throw thrown;
    }
  }

  return {
    requests,
    stop,
    get hasOpenStep() {
      return openSteps > 0;
    },
    async run() {
      try {
        await prepareAndDispatch(tool, args, ctx, target);
        const value = await tool.run(args, ctx);
        // It is not done before the steps are that it did not wait for.
        while (runningSteps.size > 0) await Promise.all(runningSteps);
        return value;
      } finally {
        unlink();
      }
    },
  };
}

/** The caller's signal may outlive a million calls, so each must remove its listener. */
function linkStop({ signal }: Call): { readonly stop: Stop; readonly unlink: () => void } {
  const stop = new Stop();
  const abort = () => stop.request(signal?.reason);
  if (signal?.aborted) abort();
  return { stop, unlink: onAbort(signal, abort) };
}
