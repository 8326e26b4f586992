// Who calls: agents that call, wait, give up, call again, and come back after a crash.

import { SemelError } from '../../src/core/errors.ts';
import { isRepeatable } from '../../src/core/words.ts';
import type { Result } from '../../src/runner/index.ts';
import { begin } from '../../src/semel/begin.ts';
import type { Intent } from './contracts.ts';
import type { CallLog } from './log.ts';
import type { Sim } from './sim.ts';
import { epoch } from './store-time.ts';
import { type Args, send, toolFor, valueOf } from './tools.ts';
import type { Worker } from './worker.ts';

export interface Asked {
  readonly intent: Intent;
  readonly slot: number;
  /** Other identity args under the caller's own key: a conflict, unless the key is free. */
  readonly other: boolean;
  readonly byHand: boolean;
  readonly final: boolean;
}

export interface FinalCall {
  readonly call: CallLog;
  readonly intent: Intent;
}

export function makeCall(sim: Sim, asked: Asked): CallLog {
  const { log, chance, scheduler, faults, workers } = sim;
  const { intent, slot } = asked;
  const worker = workers[slot] as Worker;
  const id = asked.other ? `${intent.id}-other` : intent.id;
  const call: CallLog = {
    id: `c${log.calls.length + 1}`,
    contract: intent.contract,
    identity: id,
    key: '',
    sent: [],
    returned: false,
    waitsFor: undefined,
    told: undefined,
    toldAt: 0,
    threw: false,
    worker,
  };
  log.calls.push(call);
  const args: Args = { id, note: chance.happens(0.6) ? 'hello' : `hello, ${call.id}` };
  const tool = toolFor(sim, intent, worker, call);
  const abort = faults.active && chance.happens(0.06) ? new AbortController() : undefined;
  const options = {
    conversation: 'c',
    toolCallId: call.id,
    ...(intent.callerKey === undefined ? {} : { key: intent.callerKey }),
    ...(abort === undefined ? {} : { signal: abort.signal }),
    ...(faults.active && chance.happens(0.05) ? { notAfter: epoch + scheduler.now + chance.between(0, 5_000) } : {}),
  };
  if (abort !== undefined)
    scheduler.after(chance.between(1, 6_000), worker, `${call.id} gives up`, () => {
      faults.count('caller gave up');
      abort.abort(new Error('gave up'));
    });

  void worker
    .call(tool, args, options)
    .then((made) => {
      call.key = made.key;
      return asked.byHand ? byHand(sim, intent, worker, call, made) : worker.runner.run(made);
    })
    .then(
      (result) => told(sim, asked, call, result),
      (error: unknown) => {
        // Only what runs without the ledger lets the tool's own error through.
        const mayThrow = isRepeatable(intent.contract.effect) && !(error instanceof SemelError);
        if (!mayThrow) log.violated('a call answers with a result', `${call.id} threw ${String(error)}`);
        call.threw = true;
      },
    );
  return call;
}

/** A framework with a hook before and one after. */
async function byHand(
  sim: Sim,
  intent: Intent,
  worker: Worker,
  call: CallLog,
  made: Parameters<typeof begin>[1],
): Promise<Result> {
  const begun = await begin(worker.runner, made);
  if (!begun.execute) return begun.result;
  const { attempt } = begun;
  try {
    if (intent.contract.dispatch !== 'claim') await attempt.dispatch();
    if (intent.polite) attempt.signal.throwIfAborted();
    const answer = await send(sim, intent, worker, call, attempt.args as Args, attempt, undefined);
    const value = valueOf(sim, intent, answer);
    return await attempt.succeed(value);
  } catch (error) {
    return attempt.threw(error);
  }
}

function told(sim: Sim, asked: Asked, call: CallLog, result: Result): void {
  const { scheduler, chance, faults, trace } = sim;
  call.told = result;
  call.toldAt = scheduler.now;
  trace?.(`             ${call.id} (${(call.worker as Worker).name}) is told: ${result.ok ? JSON.stringify(result.value) : `${result.error.code} ${result.error.message.slice(0, 90)}`}`);
  if (result.ok || !faults.active || asked.final) return;
  const again = result.error.retriable ? 0.7 : 0.25;
  if (!chance.happens(again)) return;
  const waitMs = Math.min(120_000, result.error.retryAfterMs ?? 0) + chance.between(50, 3_000);
  scheduler.after(waitMs, call.worker, `calls again after ${call.id}`, () => void makeCall(sim, asked));
}
