// Running without the guarantee: reads, repeatable effects while the store is away, and observe mode, in which
// every call runs as it did before semel and the records say what semel would have done.

import type { SemelError } from '../core/errors.ts';
import type { Ledger } from '../ledger/index.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { first, type OpenClaim } from './claims.ts';
import { contextFor, type RequestLog } from './context.ts';
import type { Body, Executions } from './execution.ts';
import { type Receipt, type Result, receiptOf } from './receipt.ts';
import { createStop, type Stop } from './stop.ts';
import { meaningOf, type Try } from './tries.ts';

/** How a run without a claim reaches the outside. */
interface Outside {
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
  let remoteRef: string | undefined;
  const note = (ref: string) => {
    remoteRef = ref;
  };
  const value = await bare(call, { keyFence, cross: async () => undefined, note }).run();
  return { ok: true, value, receipt: receiptOf(call, undefined, { executed: true, remoteRef, ...more }) };
}

function bare(call: Call, { keyFence, cross, note }: Outside): { run(): Promise<unknown>; log: RequestLog } {
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

interface Observing {
  readonly ledger: Ledger;
  readonly open: OpenClaim;
  readonly execute: Executions['execute'];
  readonly freshFence: () => number;
}

/** `problem` is why the call would have been refused before anything was claimed. */
export async function observe(
  call: Call,
  problem: SemelError | undefined,
  { open, execute, ledger, freshFence }: Observing,
): Promise<Result> {
  if (problem !== undefined) return runUnguarded(call, freshFence(), { observed: `refuse: ${problem.code}` });
  const claimed = await open(call, first).catch(() => undefined);
  if (claimed === undefined)
    return runUnguarded(call, freshFence(), { observed: 'refuse: STORE_UNAVAILABLE' });
  const { verdict } = claimed;
  if (verdict.kind === 'execute')
    return observed(call, (body) => execute(call, claimed, verdict.record, body));
  if (verdict.kind !== 'gone') ledger.observe(verdict.record, verdict.kind);
  return runUnguarded(call, freshFence(), { observed: verdict.kind });
}

/** Records what the effect does, and gives the caller exactly what the effect gave, when it gave it. */
async function observed(call: Call, execute: (body: Body) => Promise<Result>): Promise<Result> {
  let effect: Promise<unknown> | undefined;
  const body = async (attempt: Attempt): Promise<Try> => {
    const { run, log } = bare(call, {
      keyFence: attempt.record.keyFence,
      // What the ledger thinks of it changes nothing.
      cross: () => attempt.cross().catch(() => undefined),
      note: (ref) => attempt.note(ref),
    });
    effect = run();
    try {
      return { ending: { outcome: 'succeeded', value: await effect }, thrown: undefined };
    } catch (thrown) {
      return { ending: meaningOf(attempt, thrown, log.fates), thrown };
    }
  };
  const { receipt } = await execute(body);
  const value = effect === undefined ? await bare(call, nowhere).run() : await effect;
  return { ok: true, value, receipt: { ...receipt, executed: true } };
}

/** The attempt ended before its effect began. */
const nowhere: Outside = { keyFence: 0, cross: async () => undefined, note: () => undefined };
