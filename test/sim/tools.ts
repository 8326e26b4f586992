// What the simulated tools do: send their requests to the target, and say what became of them as real tools do: by a
// word, by a code that the contract classifies, or by an error that says nothing.

import type { AttemptContext, Tool } from '../../src/call/index.ts';
import type { Contract } from '../../src/core/contract/contract.ts';
import { oneRequest } from '../../src/core/contract/one-request.ts';
import { isRepeatable } from '../../src/core/contract/words.ts';
import { AlreadyLanded, Rejected } from '../../src/core/signals.ts';
import {
  landed,
  notLanded,
  unsure,
  type Verification,
  type VerifyContext,
} from '../../src/core/verification.ts';
import type { Plan } from './contracts.ts';
import type { Attempt, CallLog, Effect } from './log.ts';
import { checkGivenRef, judgeNote, noteId } from './notes.ts';
import type { Sim } from './sim.ts';
import { meaningOfCode, type Part } from './targets.ts';
import { noteIn, sendAll, type Value } from './wire.ts';
import type { Worker } from './worker.ts';
import type { World } from './world.ts';

/** The call that a run or a look belongs to, known from what the tool is given. */
type CallOf = (mark: () => string) => CallLog | Promise<CallLog>;

export function toolFor(sim: Sim, plan: Plan, contract: Contract, worker: Worker, callOf: CallOf): Tool {
  const { chance, scheduler, faults, log } = sim;

  async function runTool(call: CallLog, args: unknown, ctx: AttemptContext): Promise<unknown> {
    if (contract.dispatch === 'explicit') {
      if (chance.happens(0.3))
        await scheduler.pause(chance.between(10, 5_000), worker, 'works before the line');
      if (faults.active && chance.happens(0.04)) throw new TypeError('a mistake before the line');
      if (faults.active && chance.happens(0.03)) {
        if (chance.happens(0.4)) await blocked(sim, contract, worker);
        throw new Rejected('refused before the line');
      }
      if (!isRepeatable(contract.effect) && chance.happens(0.1)) lookFirst(sim, plan, call, ctx.fence);
      // `ctx.fetch` crosses the line by itself.
      if (plan.parts[0]?.way === 'sdk' || chance.happens(0.5)) await ctx.dispatch();
    }
    await maybeBlocked(sim, contract, worker);
    await maybeSlow(sim, worker);
    await sim.besides(plan, worker, call);
    const run = { sim, plan, contract, worker, call, args, ctx, prepared: ctx.prepared, hasSent: false };
    // Nobody runs its body: nothing is sent.
    if (plan.isLazy) return later(() => sendAll(run));
    // An id that the tool chose itself, or one that the target gave it.
    const chosen = plan.hasNotes && chance.happens(0.5) ? await noteId(sim, call, ctx) : undefined;
    const value = await sendAll(run).catch((error: unknown) => {
      judgeNote(chosen, error);
      throw error;
    });
    if (plan.hasNotes && chance.happens(0.5)) await noteId(sim, call, ctx);
    if (!ctx.signal.aborted) call.returned = true;
    const attempt = log.attemptOf(call, ctx.fence);
    if (attempt !== undefined) attempt.returned = true;
    return value;
  }

  return {
    contract,
    run: async (args: unknown, ctx: AttemptContext): Promise<unknown> => {
      const call = await callOf(() => ctx.mark());
      return whileRunning(log.attemptOf(call, ctx.fence), () => runTool(call, args, ctx));
    },
    prepare: plan.hasPrepare
      ? async (args: unknown) => {
          await scheduler.pause(chance.between(10, chance.happens(0.2) ? 6_000 : 200), worker, 'prepares');
          if (faults.active && chance.happens(0.04)) throw new TypeError('a mistake while preparing');
          // A model writes it: it is never the same twice.
          return `${JSON.stringify(args)} #${chance.below(1_000_000)}`;
        }
      : undefined,
    verify: plan.hasVerify
      ? async (args: unknown, ctx: VerifyContext) =>
          verify(sim, plan, contract, worker, await callOf(() => ctx.mark()), args, ctx)
      : undefined,
    classify: plan.isOneRequest
      ? (error, seen) => (plan.classifies ? meaningOfCode(error) : undefined) ?? oneRequest(error, seen)
      : plan.classifies
        ? meaningOfCode
        : undefined,
    keyUse: worker.keyUseOf(contract),
  } as Tool;
}

async function* later(work: () => Promise<unknown>): AsyncGenerator<unknown> {
  yield await work();
}

/** What can be seen of one generation: its value where all of it landed, nothing, or only a part. */
export function seen(
  world: World,
  plan: Plan,
  key: string,
  generation: number,
  isMeant: (effect: Effect) => boolean = () => true,
): Value | 'nothing' | 'a part' {
  const effects = world.find(key, generation).filter(isMeant);
  if (effects.length === 0) return 'nothing';
  const nthOf = (effect: Effect) => (effect.key === key ? effect.part : effect.of?.step);
  const parts = plan.steps.length > 0 ? plan.steps.map(({ parts: [only] }) => only as Part) : plan.parts;
  const landedParts = parts.map((_, nth) => effects.find((effect) => nthOf(effect) === nth));
  const isWhole = parts.every(({ optional }, nth) => optional || landedParts[nth] !== undefined);
  return isWhole ? { effect: landedParts.at(-1)?.id as number } : 'a part';
}

/** A careful tool looks before it sends. */
function lookFirst({ log, world }: Sim, plan: Plan, call: CallLog, fence: number): void {
  const attempt = log.attemptOf(call, fence);
  const found = seen(world, plan, attempt?.key ?? call.key, attempt?.generation ?? 0);
  if (typeof found === 'string') return;
  const effect = log.effects.find(({ id }) => id === found.effect);
  // It looks for what it was asked to do, and by whom: under a caller's own key there may be something else.
  if (effect?.identity === call.identity && effect.caller === call.asked.caller)
    throw new AlreadyLanded(found);
}

/** The event loop is blocked, or the process stopped, between the line and the socket. */
async function maybeBlocked(sim: Sim, contract: Contract, worker: Worker) {
  const { chance, faults } = sim;
  if (faults.active && chance.happens(faults.profile.pause > 0 ? 0.12 : 0.02))
    await blocked(sim, contract, worker);
}

/** It takes its time between the line and the socket, sometimes more than it has. */
export async function maybeSlow({ chance, faults, scheduler }: Sim, worker: Worker): Promise<void> {
  if (faults.strike('run slow', 0.04))
    await scheduler.pause(chance.between(1_000, 90_000), worker, 'works on after the line');
}

/** Whatever its attempt is told meanwhile, a run may send until it is over. */
export async function whileRunning<Ended>(
  attempt: Attempt | undefined,
  run: () => Promise<Ended>,
): Promise<Ended> {
  if (attempt !== undefined) attempt.isRunning = true;
  try {
    return await run();
  } finally {
    if (attempt !== undefined) attempt.isRunning = false;
  }
}

export async function blocked({ chance, faults, scheduler }: Sim, { leaseMs }: Contract, worker: Worker) {
  faults.count('block');
  worker.stoppedUntil = scheduler.now + Math.round(leaseMs * (0.5 + 2 * chance.fraction()));
  await scheduler.pause(0, worker, 'event loop goes on');
}

async function verify(
  sim: Sim,
  plan: Plan,
  contract: Contract,
  worker: Worker,
  call: CallLog,
  args: unknown,
  { signal, remoteRef }: VerifyContext,
): Promise<Verification> {
  const { chance, scheduler, faults, log, world } = sim;
  const known = log.keyLog(log.attemptOf(call)?.key ?? call.key);
  const ownAttempts = known.attempts.filter(({ token }) => log.askers.get(token) === worker);
  const isOpen = ({ endedAt }: { readonly endedAt: number | undefined }) => endedAt === undefined;
  const ofCall = ownAttempts.filter(({ call: by }) => by === call.id);
  // A sweep asks in the name of the call that the record was made for, perhaps while that call's own attempt still runs.
  const asking = ofCall.findLast(isOpen) ?? ofCall.at(-1) ?? ownAttempts.at(-1);
  if (asking === undefined || !isOpen(asking))
    log.violated('`verify` asks under a claim', `${call.id} looks for ${known.key}`);
  checkGivenRef(sim, known, asking, remoteRef);
  const slow = () =>
    faults.strike('verify slow', 0.15)
      ? scheduler.pause(chance.between(500, 40_000), worker, 'verify is slow')
      : scheduler.pause(chance.between(5, 60), worker, 'verify asks');
  await slow();
  if (faults.strike('verify threw', 0.08)) throw new Error('the target does not answer');
  if (faults.strike('verify unsure', 0.08)) return unsure();
  // Of the attempt that asks; a sweep goes by the record as it is.
  const { attempts } = known;
  const own = attempts.findLast(({ call: by }) => by === call.id) ?? attempts.at(-1);
  // Of several writes, it looks for the one that these args ask for.
  const isMeant = ({ contract: sentBy, note }: Effect) =>
    !isRepeatable(sentBy.effect) || note === noteIn(args);
  const found = seen(world, plan, known.key, own?.generation ?? 0, isMeant);
  await slow();
  if (faults.active && chance.happens(0.1)) await blocked(sim, contract, worker);
  if (found === 'a part') return unsure('only a part of it landed');
  if (found === 'nothing') return notLanded();
  if (asking?.call === call.id && !signal.aborted) call.found = true;
  return landed(found);
}
