// Who calls: agents that call, wait, give up, call again, and come back after a crash.

import { SemelError } from '../../src/core/errors.ts';
import { isRepeatable } from '../../src/core/words.ts';
import type { Call, Result, Tool } from '../../src/runner/index.ts';
import { begin } from '../../src/semel/begin.ts';
import type { Intent } from './contracts.ts';
import type { CallLog } from './log.ts';
import type { Sim } from './sim.ts';
import { epoch } from './store-time.ts';
import { type Args, blocked, send, toolFor, valueFrom } from './tools.ts';
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
    askedAt: scheduler.now,
    told: undefined,
    toldAt: 0,
    threw: false,
    worker,
  };
  log.calls.push(call);
  const args: Args = { id, note: chance.happens(0.6) ? 'hello' : `hello, ${call.id}` };
  const tool = toolFor(sim, intent, worker, call);
  const abort = faults.active && chance.happens(0.06) ? new AbortController() : undefined;
  const notAfter =
    faults.active && chance.happens(0.05) ? epoch + scheduler.now + chance.between(0, 5_000) : null;
  if (abort !== undefined)
    scheduler.after(chance.between(1, 6_000), worker, `${call.id} gives up`, () => {
      faults.count('caller gave up');
      abort.abort(new Error('gave up'));
    });

  void keyed(sim, asked, worker, args)
    .then((base) => {
      const identity = { ...base.identity, toolCallId: call.id };
      const made: Call = { ...base, tool, args, identity, notAfter, signal: abort?.signal };
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

/** What a call with these words is, before anybody makes it: derived once per history, since hashes are dear. */
async function keyed(sim: Sim, { intent }: Asked, worker: Worker, args: Args): Promise<Call> {
  const name = `${args.id} ${args.note}`;
  const known = sim.derived.get(name);
  if (known !== undefined) return known;
  const tool: Tool = { contract: intent.contract, run: () => undefined };
  const own = intent.callerKey === undefined ? {} : { key: intent.callerKey };
  const derived = await worker.call(tool, args, { conversation: 'c', ...own });
  sim.derived.set(name, derived);
  return derived;
}

/** A framework with a hook before and one after. */
async function byHand(sim: Sim, intent: Intent, worker: Worker, call: CallLog, made: Call): Promise<Result> {
  const begun = await begin(worker.runner, worker.clock, made);
  if (!begun.execute) return begun.result;
  const { attempt } = begun;
  try {
    if (sim.faults.active && sim.chance.happens(0.1)) {
      if (sim.chance.happens(0.4)) await blocked(sim, intent, worker);
      return await attempt.fail(new Error('not wanted'));
    }
    if (intent.contract.dispatch !== 'claim') await attempt.dispatch();
    if (intent.polite) attempt.signal.throwIfAborted();
    const sent = send(sim, intent, worker, call, attempt.args as Args, attempt, undefined);
    const value = valueFrom(sim, intent, await Promise.race([sent, untilAborted(attempt.signal)]));
    return await attempt.succeed(value);
  } catch (error) {
    return attempt.threw(error);
  }
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** When a caller is told of a success, the store has heard of it. */
function durable({ log }: Sim, call: CallLog, { ok, receipt }: Result): void {
  if (!ok || receipt.skipped || receipt.unguarded) return;
  const { attempts, completions } = log.keyLog(call.key);
  const heard = attempts.some((each) => each.reported && each.generation === receipt.generation);
  if (!heard && !completions.has(receipt.generation))
    log.violated('acknowledged means durable', `${call.id}: nothing is on file of g${receipt.generation}`);
}

function told(sim: Sim, asked: Asked, call: CallLog, result: Result): void {
  const { scheduler, chance, faults, trace } = sim;
  call.told = result;
  call.toldAt = scheduler.now;
  trace?.(
    `             ${call.id} (${(call.worker as Worker).name}) is told: ${result.ok ? JSON.stringify(result.value) : `${result.error.code} ${result.error.message.slice(0, 90)}`}`,
  );
  durable(sim, call, result);
  if (result.ok || !faults.active || asked.final) return;
  const again = result.error.retriable ? 0.7 : 0.25;
  if (!chance.happens(again)) return;
  const waitMs = Math.min(120_000, result.error.retryAfterMs ?? 0) + chance.between(50, 3_000);
  scheduler.after(waitMs, call.worker, `calls again after ${call.id}`, () => void makeCall(sim, asked));
}
