// Running without a claim: reads, and repeatable effects while the store is away.

import { legible } from '../core/classify.ts';
import type { Clock, Random } from '../core/clock.ts';
import { isLazy } from '../core/plain.ts';
import { AlreadyLanded, Rejected } from '../core/signals.ts';
import { pause } from '../ledger/index.ts';
import type { Call, Tool } from './call.ts';
import { contextFor, type RequestLog } from './context.ts';
import { type Receipt, type Result, receiptOf } from './receipt.ts';
import { timedOut } from './refusals.ts';
import { createStop, type Stop } from './stop.ts';
import { backoffMs, classifiedBy, isLate, lazyRun } from './tries.ts';

/** How a run without a claim reaches the outside. */
export interface Outside {
  readonly keyFence: number | string;
  readonly cross: (unkeyed?: string) => Promise<void>;
  readonly note: (remoteRef: string) => void;
}

/** No record, no claim: the tool's own error passes as it is. `keyFence` is fresh: nothing ties it to another run. */
export async function runUnguarded(
  call: Call,
  keyFence: number | string,
  more: Partial<Receipt> = {},
): Promise<Result> {
  return ran(call, keyFence, more, ({ run }) => run());
}

export interface Repeating {
  readonly clock: Clock;
  readonly random: Random;
  /** Aborts when no further try may follow. */
  readonly closing: AbortSignal;
}

/** The same within the contract's `timeout`, and as often as its `retry` says: what is repeatable may be tried again. */
export async function runRepeatable(
  call: Call,
  keyFence: number | string,
  { clock, random, closing }: Repeating,
  more: Partial<Receipt> = {},
): Promise<Result> {
  const { retry } = call.tool.contract;
  const repeated = retry.tries > 1 ? preparingOnce(call) : call;
  const isOver = () => closing.aborted || call.signal?.aborted === true;
  for (let tries = 1; ; tries += 1) {
    try {
      return await ran(repeated, keyFence, more, (attempt) => timed(call, attempt, clock).catch(hadLanded));
    } catch (error) {
      if (tries >= retry.tries || isRejected(call, error) || isOver()) throw error;
      await pause(clock, backoffMs(retry, tries, random), [call.signal, closing]);
      if (isOver() || isLate(call, clock)) throw error;
    }
  }
}

/** The tool or its provider says that trying the same again is no use. */
export function isRejected({ tool }: Call, error: unknown): boolean {
  return legible(error) instanceof Rejected || classifiedBy(tool, error) === 'rejected';
}

/** Every try has the same key, and a provider would refuse another request under it. */
function preparingOnce(call: Call): Call {
  const { prepare } = call.tool;
  if (prepare === undefined) return call;
  let prepared: { readonly output: unknown } | undefined;
  const once: Tool['prepare'] = async (args, ctx) => {
    prepared ??= { output: await prepare(args, ctx) };
    return prepared.output;
  };
  return { ...call, tool: { ...call.tool, prepare: once } };
}

async function ran(
  call: Call,
  keyFence: number | string,
  more: Partial<Receipt>,
  running: (attempt: BareRun) => Promise<unknown>,
): Promise<Result> {
  let remoteRef: string | undefined;
  const note = (ref: string) => {
    remoteRef = ref;
  };
  const value = await running(bare(call, { keyFence, cross: async () => undefined, note }));
  return { ok: true, value, receipt: receiptOf(call, undefined, { executed: true, remoteRef, ...more }) };
}

/** Had it been there already, that is a success too. */
function hadLanded(error: unknown): unknown {
  const thrown = legible(error);
  if (thrown instanceof AlreadyLanded) return thrown.value;
  throw error;
}

async function timed({ tool }: Call, { run, stop, log }: BareRun, clock: Clock): Promise<unknown> {
  const { timeoutMs } = tool.contract;
  const { promise: over, reject } = Promise.withResolvers<never>();
  const end = () => {
    const reason = timedOut(tool.contract);
    stop.ask(reason);
    reject(reason);
  };
  const timer = Number.isFinite(timeoutMs) ? clock.setTimeout(end, timeoutMs, 'background') : undefined;
  try {
    const value = await Promise.race([run(), over]);
    // Without a record too: nobody may be told that it is done. What a read returns is its caller's to run.
    if (isLazy(value) && tool.contract.effect !== 'read') throw lazyRun(tool.contract.name);
    return value;
  } catch (error) {
    // What it left behind sends nothing beside a further try.
    void log.close();
    throw error;
  } finally {
    clock.clearTimeout(timer);
  }
}

export interface BareRun {
  run(): Promise<unknown>;
  readonly log: RequestLog;
  readonly stop: Stop;
}

export function bare(call: Call, { keyFence, cross, note }: Outside): BareRun {
  let prepared: unknown;
  const { stop, forget } = stopOf(call);
  const { ctx, log } = contextFor({
    namespace: call.namespace,
    recordKey: call.key,
    keyFence: () => keyFence,
    provider: call.tool.contract.provider,
    issued: new Set(),
    // Without a claim nothing is held back.
    mayRepeat: () => true,
    fence: 0,
    attempt: 1,
    stop,
    cross,
    note,
    prepared: () => prepared,
  });
  const args = call.args as never;
  return {
    log,
    stop,
    async run() {
      try {
        prepared = await call.tool.prepare?.(args, ctx);
        if (call.tool.contract.dispatch === 'prepared') await cross();
        return await call.tool.run(args, ctx);
      } finally {
        forget();
      }
    },
  };
}

/** The caller's signal may outlive a million calls, so each lets go of it. */
function stopOf({ signal }: Call): { readonly stop: Stop; readonly forget: () => void } {
  const stop = createStop();
  const ask = () => stop.ask(signal?.reason);
  if (signal?.aborted) ask();
  signal?.addEventListener('abort', ask);
  return { stop, forget: () => signal?.removeEventListener('abort', ask) };
}
