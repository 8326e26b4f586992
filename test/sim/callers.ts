// Who calls: agents that call, wait, give up, call again, and come back after a crash.

import type { Call, Result, Tool } from '../../src/call/index.ts';
import { isRepeatable } from '../../src/core/contract/words.ts';
import { SemelError } from '../../src/core/errors.ts';
import { begin } from '../../src/semel/begin.ts';
import type { Plan, Version } from './contracts.ts';
import { meaningOf } from './fields.ts';
import type { CallLog } from './log.ts';
import type { Sim } from './sim.ts';
import { epoch } from './store-time.ts';
import { blocked, maybeSlow, toolFor, whileRunning } from './tools.ts';
import { sendAll, untilAborted } from './wire.ts';
import { type Asking, identityOf, scopeOf, type Wish, wordsOf } from './wishes.ts';
import type { Worker } from './worker.ts';

export interface Asked {
  readonly plan: Plan;
  readonly wish: Wish;
  readonly slot: number;
  /** Whose call it is; undefined: the program does not say. */
  readonly caller: string | undefined;
  readonly byHand: boolean;
  readonly final: boolean;
}

export interface FinalCall {
  readonly call: CallLog;
  readonly plan: Plan;
}

export function makeCall(sim: Sim, asked: Asked): CallLog {
  const { log, chance, scheduler, faults, workers, trace } = sim;
  const { plan, wish, slot } = asked;
  const worker = workers[slot] as Worker;
  const { version, contract } = worker.deployed(plan);
  const bounds = plan.callerKey ?? scopeOf(wish, plan.period, worker.clock.now());
  const scope = `${plan.name}, ${bounds}`;
  const identity = identityOf(scope, meaningOf(wish.meaning, plan.identity));
  const call = newCall(sim, { contract, asked, home: undefined, scope, identity, worker });
  const words = wordsOf(chance, asked, version, call.id);
  call.note = words.args.note as string | undefined;
  const own = toolFor(sim, plan, contract, worker, () => call);
  const tool = asked.byHand ? { ...own, run: stub(sim, call) } : own;
  const abort = faults.active && chance.happens(0.06) ? new AbortController() : undefined;
  const notAfter =
    faults.active && chance.happens(0.05) ? epoch + scheduler.now + chance.between(0, 5_000) : null;
  if (abort !== undefined)
    scheduler.after(chance.between(1, 6_000), worker, `${call.id} gives up`, () => {
      faults.count('caller gave up');
      call.gaveUp = true;
      abort.abort(new Error('gave up'));
    });

  call.over = keyed(sim, version, worker, tool, words)
    .then((base) => {
      const identity = { ...base.identity, toolCallId: call.id };
      const made = base.with({ tool, identity, notAfter, signal: abort?.signal });
      call.key = made.key;
      call.keys = [made.key, ...made.olderKeys];
      trace?.(`             ${call.id} asks in ${worker.name}: ${JSON.stringify(words)} ⇒ ${made.key}`);
      return asked.byHand ? byHand(sim, plan, worker, call, made) : worker.pipeline.run(made);
    })
    .then(
      (result) => told(sim, asked, call, result),
      (error: unknown) => {
        // Only what runs without the ledger lets the tool's own error through.
        const mayThrow = isRepeatable(contract.effect) && !(error instanceof SemelError);
        if (!mayThrow) log.violated('a call answers with a result', `${call.id} threw ${String(error)}`);
        call.threw = true;
      },
    );
  return call;
}

/** A call that is made now. */
export function newCall(
  { log, scheduler }: Sim,
  given: Pick<CallLog, 'contract' | 'asked' | 'home' | 'scope' | 'identity' | 'worker'>,
): CallLog {
  const call: CallLog = {
    ...given,
    id: `c${log.calls.length + 1}`,
    key: '',
    keys: [],
    note: undefined,
    sent: [],
    sentAt: undefined,
    returned: false,
    gaveUp: false,
    waitsFor: undefined,
    askedAt: scheduler.now,
    told: undefined,
    found: false,
    toldAt: 0,
    threw: false,
    over: Promise.resolve(),
  };
  log.calls.push(call);
  return call;
}

/** What a call with these words is, before anybody makes it: derived once per history, since hashes are expensive. */
async function keyed(
  sim: Sim,
  { schema }: Version,
  worker: Worker,
  tool: Tool,
  { args, options }: Asking,
): Promise<Call> {
  const { contract } = tool;
  // Two spellings of a zone are two objects, so they stand in the name.
  const name = JSON.stringify([contract.name, contract.version, contract.per, args, options]);
  const isNow = typeof contract.per === 'object' && options.at === undefined;
  const known = isNow ? undefined : sim.derived.get(name);
  if (known !== undefined) return known;
  const derived = await worker.call(tool, schema, args, options);
  sim.derived.set(name, derived);
  return derived;
}

/** What a framework executes itself has no code that semel could run. */
function stub({ log }: Sim, call: CallLog): Tool['run'] {
  return () => {
    log.violated('what a framework began, semel does not run', call.id);
    return { effect: 0 };
  };
}

/** A framework with a hook before and one after. */
async function byHand(sim: Sim, plan: Plan, worker: Worker, call: CallLog, made: Call): Promise<Result> {
  const { contract } = call;
  const begun = await begin(worker.pipeline, worker.clock, made);
  if (!begun.execute) return begun.result;
  const { attempt } = begun;
  const saysNow = () => {
    call.saidAt = sim.scheduler.now;
  };
  try {
    if (sim.faults.active && sim.chance.happens(0.1)) {
      if (sim.chance.happens(0.4)) await blocked(sim, contract, worker);
      saysNow();
      return await attempt.fail(new Error('not wanted'));
    }
    if (contract.dispatch !== 'claim') await attempt.dispatch();
    const { args } = attempt;
    const run = {
      sim,
      plan,
      contract,
      worker,
      call,
      args,
      ctx: attempt,
      prepared: undefined,
      hasSent: false,
      // Some frameworks know nothing of a timeout, and go on until they are answered.
      mustAnswer: sim.chance.happens(0.4),
    };
    const value = await whileRunning(sim.log.attemptOf(call, attempt.fence), async () => {
      await maybeSlow(sim, worker);
      const sending = sendAll(run);
      return run.mustAnswer ? sending : Promise.race([sending, untilAborted(attempt.signal)]);
    });
    saysNow();
    return await attempt.succeed(value);
  } catch (error) {
    saysNow();
    return attempt.threw(error);
  }
}

/** When a caller is told of a success, the store has heard of it. */
function durable({ log }: Sim, call: CallLog, { ok, receipt }: Result): void {
  if (!ok || receipt.skipped || receipt.unguarded) return;
  const { attempts, completions } = log.keyLog(receipt.key);
  const heard = attempts.some((each) => each.reported && each.generation === receipt.generation);
  if (!heard && !completions.has(receipt.generation))
    log.violated('acknowledged means durable', `${call.id}: nothing is on file of g${receipt.generation}`);
}

/** A call is answered. */
export function hear(sim: Sim, call: CallLog, result: Result): void {
  const { scheduler, trace } = sim;
  call.told = result;
  // An earlier form of the contract may have answered.
  if (result.receipt.key !== '') call.key = result.receipt.key;
  call.toldAt = scheduler.now;
  trace?.(
    `             ${call.id} (${(call.worker as Worker).name}) is told: ${result.ok ? JSON.stringify(result.value) : `${result.error.code} ${result.error.message.slice(0, 90)}`}`,
  );
  durable(sim, call, result);
}

function told(sim: Sim, asked: Asked, call: CallLog, result: Result): void {
  const { scheduler, chance, faults } = sim;
  hear(sim, call, result);
  if (result.ok || !faults.active || asked.final) return;
  const again = result.error.retriable ? 0.7 : 0.25;
  if (!chance.happens(again)) return;
  const waitMs = Math.min(120_000, result.error.retryAfterMs ?? 0) + chance.between(50, 3_000);
  scheduler.after(waitMs, call.worker, `calls again after ${call.id}`, () => void makeCall(sim, asked));
}
