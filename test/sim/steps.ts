// Tools that make several writes with `ctx.step`. A step is a call of its own, with a record, faults and a log entry like any
// other, made from inside the run of its call.

import type { AttemptContext, Call, StepOptions, StepWork, Tool } from '../../src/call/index.ts';
import { withReceipt } from '../../src/core/errors.ts';
import { hear, newCall } from './callers.ts';
import { type StepPlan, stepName } from './contracts.ts';
import type { Attempt, CallLog, Home } from './log.ts';
import type { Sim } from './sim.ts';
import { maybeSlow, toolFor } from './tools.ts';
import { type Run, sendsItsOwn, type Value } from './wire.ts';
import type { Worker } from './worker.ts';

/** A step that a run has taken. */
export interface Taken {
  readonly plan: StepPlan;
  readonly home: Home;
  /** Once it is made. */
  call: CallLog | undefined;
}

export async function takeSteps(run: Run): Promise<Value> {
  const { plan, sim, worker, ctx } = run;
  sendsItsOwn(run);
  let values: readonly Value[] = [];
  if (plan.takesAtOnce) values = await Promise.all(plan.steps.map((step, nth) => take(run, step, nth)));
  else
    for (const [nth, step] of plan.steps.entries()) {
      if (plan.polite) ctx.signal.throwIfAborted();
      values = [await take(run, step, nth)];
      await maybeSlow(sim, worker);
    }
  if (sim.faults.strike('effect landed, then another call failed', 0.05))
    throw new Error('a mistake after its steps');
  return values.at(-1) as Value;
}

function take(run: Run, plan: StepPlan, nth: number): Promise<Value> {
  const { sim, worker, call, args, ctx, prepared } = run;
  const { key, generation, fence } = sim.log.attemptOf(call, ctx.fence) as Attempt;
  const taken: Taken = { plan, home: { call, key, generation, fence, step: nth }, call: undefined };
  const words = prepared === undefined ? args : { ...(args as object), prepared };
  const tool = (): Tool => {
    const own = taken.call as CallLog;
    return toolFor(sim, plan, own.contract, worker, () => own);
  };
  const work: StepWork<Value> = (own) => tool().run(words as never, own as never) as Promise<Value>;
  const options: StepOptions<Value> = {
    ...plan.options,
    ...(plan.hasVerify ? { verify: (_, asked) => tool().verify?.(words as never, asked) as never } : {}),
    ...(plan.isOneRequest || plan.classifies
      ? { classify: (error, seen) => tool().classify?.(error, seen) }
      : {}),
  };
  sim.taken.set(work as StepWork, taken);
  return (ctx as AttemptContext).step(stepName(nth), options, work);
}

/** What the toolbox of production does with a step, watched. */
export async function runStep(sim: Sim, worker: Worker, work: StepWork, made: Call): Promise<unknown> {
  const taken = sim.taken.get(work) as Taken;
  const { home, plan } = taken;
  const { asked, scope } = home.call;
  const call = newCall(sim, {
    contract: made.tool.contract,
    asked: { ...asked, plan },
    home,
    scope,
    // However its record is named, a step of one generation of its call is one intent.
    identity: `${home.key} g${home.generation} ${stepName(home.step)}`,
    worker,
  });
  taken.call = call;
  call.key = made.key;
  call.keys = [made.key, ...made.olderKeys];
  sim.trace?.(
    `             ${call.id} is ${stepName(home.step)} of ${home.call.id} in ${worker.name} ⇒ ${made.key}`,
  );
  const result = await worker.pipeline.run(
    made.with({ identity: { ...made.identity, toolCallId: call.id } }),
  );
  hear(sim, call, result);
  if (result.ok) return result.value;
  throw withReceipt(result.error, result.receipt);
}
