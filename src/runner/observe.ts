// Running without the guarantee: reads, repeatable effects while the store is away, and observe mode, in which
// every call runs as it did before semel and the records say what semel would have done.

import type { Clock } from '../core/clock.ts';
import type { Ledger } from '../ledger/index.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { first, type OpenClaim } from './claims.ts';
import { contextFor } from './context.ts';
import type { Body, Executions } from './execution.ts';
import { type Receipt, type Result, receiptOf } from './receipt.ts';
import { createStop, type Stop } from './stop.ts';
import type { Try } from './tries.ts';

/** No record, no claim: the tool's own error passes as it is. */
export async function runUnguarded(call: Call, more: Partial<Receipt>, keyFence = 0): Promise<Result> {
  const { ctx } = contextFor({
    namespace: call.namespace,
    recordKey: call.key,
    keyFence: () => keyFence,
    provider: call.tool.contract.provider,
    fence: 0,
    attempt: 1,
    stop: stopOf(call),
    cross: async () => undefined,
    note: () => undefined,
    prepared: () => prepared,
  });
  const args = call.args as never;
  const prepared: unknown = await call.tool.prepare?.(args, ctx);
  const value = await call.tool.run(args, ctx);
  return { ok: true, value, receipt: receiptOf(call, undefined, { executed: true, ...more }) };
}

function stopOf({ signal }: Call): Stop {
  const stop = createStop();
  if (signal?.aborted) stop.ask(signal.reason);
  signal?.addEventListener('abort', () => stop.ask(signal.reason), { once: true });
  return stop;
}

interface Observing {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly open: OpenClaim;
  readonly execute: Executions['execute'];
}

export async function observe(call: Call, { open, execute, ledger, clock }: Observing): Promise<Result> {
  const claimed = await open(call, first).catch(() => undefined);
  if (claimed === undefined) return runUnguarded(call, { observed: 'refuse: the store is away' });
  const { verdict } = claimed;
  if (verdict.kind === 'execute')
    return observed(call, (body) => execute(call, claimed, verdict.record, body));
  if (verdict.kind !== 'gone') ledger.observe(verdict.record, verdict.kind);
  // As before semel, nothing may tie this run to an earlier one, at the provider neither.
  return runUnguarded(call, { observed: verdict.kind }, clock.now());
}

/** Records what the effect does, and gives the caller exactly what the effect gave. */
async function observed(call: Call, execute: (body: Body) => Promise<Result>): Promise<Result> {
  let outcome: { value: unknown } | { thrown: unknown } | undefined;
  const body = async (attempt: Attempt): Promise<Try> => {
    try {
      const result = await runUnguarded(call, {}, attempt.record.keyFence);
      outcome = { value: result.ok ? result.value : undefined };
      return { ending: { outcome: 'succeeded', value: outcome.value }, thrown: undefined };
    } catch (thrown) {
      outcome = { thrown };
      return {
        ending: { outcome: attempt.dispatched ? 'unknown' : 'released', because: 'it threw' },
        thrown,
      };
    }
  };
  const result = await execute(body);
  if (outcome !== undefined && 'thrown' in outcome) throw outcome.thrown;
  if (outcome === undefined || result.ok) return result;
  return { ok: true, value: outcome.value, receipt: result.receipt };
}
