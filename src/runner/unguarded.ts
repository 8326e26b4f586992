// Running without a claim: reads, and repeatable effects while the store is away.

import type { Clock, Random } from '../core/clock.ts';
import { Rejected } from '../core/signals.ts';
import { pause } from '../ledger/index.ts';
import type { Call, Tool } from './call.ts';
import { contextFor, type RequestLog } from './context.ts';
import { type Receipt, type Result, receiptOf } from './receipt.ts';
import { timedOut } from './refusals.ts';
import { createStop, type Stop } from './stop.ts';
import { backoffMs } from './tries.ts';

/** How a run without a claim reaches the outside. */
export interface Outside {
  readonly keyFence: number;
  readonly cross: () => Promise<void>;
  readonly note: (remoteRef: string) => void;
}

/** No record, no claim: the tool's own error passes as it is. `keyFence` is fresh: nothing ties it to another run. */
export async function runUnguarded(
  call: Call,
  keyFence: number,
  more: Partial<Receipt> = {},
): Promise<Result> {
  return ran(call, keyFence, more, ({ run }) => run());
}

/** The same within the contract's `timeout`, and as often as its `retry` says: what is repeatable may be tried again. */
export async function runRepeatable(
  call: Call,
  keyFence: number,
  { clock, random }: { clock: Clock; random: Random },
  more: Partial<Receipt> = {},
): Promise<Result> {
  const { retry } = call.tool.contract;
  const repeated = retry.tries > 1 ? preparingOnce(call) : call;
  for (let tries = 1; ; tries += 1) {
    try {
      return await ran(repeated, keyFence, more, (attempt) => timed(call, attempt, clock));
    } catch (error) {
      if (error instanceof Rejected || tries >= retry.tries) throw error;
      await pause(clock, backoffMs(retry, tries, random), [call.signal]);
      if (call.signal?.aborted) throw error;
    }
  }
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
  keyFence: number,
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

async function timed({ tool }: Call, { run, stop, log }: BareRun, clock: Clock): Promise<unknown> {
  const { timeoutMs } = tool.contract;
  if (!Number.isFinite(timeoutMs)) return run();
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = clock.setTimeout(
    () => {
      const reason = timedOut(tool.contract);
      stop.ask(reason);
      reject(reason);
    },
    timeoutMs,
    'background',
  );
  try {
    return await Promise.race([run(), over]);
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
