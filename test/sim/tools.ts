// What the simulated tools do: send one request to the target, sometimes more, and say what became of it as real
// tools do: by a word, by a code that the contract classifies, or by an error that says nothing.

import { AlreadyLanded, MaybeLanded, NotLanded, Rejected } from '../../src/core/signals.ts';
import { isRepeatable } from '../../src/core/words.ts';
import {
  type AttemptContext,
  landed,
  notLanded,
  type Tool,
  unsure,
  type Verification,
} from '../../src/runner/index.ts';
import type { Intent } from './contracts.ts';
import type { Attempt, CallLog } from './log.ts';
import type { Sim } from './sim.ts';
import type { Worker } from './worker.ts';
import type { Answer } from './world.ts';

export interface Args {
  readonly id: string;
  readonly note: string;
}

/** What an effect returns: enough to tell which one it was. */
export interface Value {
  readonly effect: number;
}

const codes = { EREFUSED: 'rejected', ENOTSENT: 'notLanded' } as const;

export function toolFor(sim: Sim, intent: Intent, worker: Worker, call: CallLog): Tool {
  const { chance, scheduler, faults, log } = sim;
  const { contract } = intent;

  return {
    contract,
    run: async (args: Args, ctx: AttemptContext): Promise<Value> => {
      if (contract.dispatch === 'explicit') {
        if (chance.happens(0.3))
          await scheduler.pause(chance.between(10, 5_000), worker, 'works before the line');
        if (faults.active && chance.happens(0.04)) throw new TypeError('a mistake before the line');
        if (faults.active && chance.happens(0.03)) {
          if (chance.happens(0.4)) await blocked(sim, intent, worker);
          throw new Rejected('refused before the line');
        }
        if (chance.happens(0.1)) lookFirst(sim, call, ctx.fence);
        await ctx.dispatch();
      }
      await maybeBlocked(sim, intent, worker);
      if (intent.polite) ctx.signal.throwIfAborted();
      const value = valueFrom(sim, intent, await send(sim, intent, worker, call, args, ctx, ctx.prepared));
      if (!ctx.signal.aborted) call.returned = true;
      const attempt = log.keyLog(call.key).attempts.find(({ fence }) => fence === ctx.fence);
      if (attempt !== undefined) attempt.returned = true;
      return value;
    },
    prepare: intent.hasPrepare
      ? async (args: Args) => {
          await scheduler.pause(chance.between(10, chance.happens(0.2) ? 6_000 : 200), worker, 'prepares');
          if (faults.active && chance.happens(0.04)) throw new TypeError('a mistake while preparing');
          // A model writes it: it is never the same twice.
          return `${args.note} #${chance.below(1_000_000)}`;
        }
      : undefined,
    verify: intent.hasVerify ? () => verify(sim, intent, worker, call) : undefined,
    classify: intent.classifies
      ? (error) => codes[(error as { code?: keyof typeof codes }).code as keyof typeof codes]
      : undefined,
  } as Tool;
}

/** A careful tool looks before it sends. */
function lookFirst({ log, world }: Sim, call: CallLog, fence: number): void {
  const generation = log.keyLog(call.key).attempts.find((each) => each.fence === fence)?.generation ?? 0;
  const found = world.find(call.key, generation);
  // It looks for what it was asked to do: under a caller's own key there may be something else.
  if (found?.identity === call.identity) throw new AlreadyLanded({ effect: found.id });
}

/** The event loop is blocked, or the process stopped, between the line and the socket. */
async function maybeBlocked(sim: Sim, intent: Intent, worker: Worker) {
  const { chance, faults } = sim;
  if (faults.active && chance.happens(faults.profile.pause > 0 ? 0.12 : 0.02))
    await blocked(sim, intent, worker);
}

export async function blocked({ chance, faults, scheduler }: Sim, { contract }: Intent, worker: Worker) {
  faults.count('block');
  worker.stoppedUntil = scheduler.now + Math.round(contract.leaseMs * (0.5 + 2 * chance.fraction()));
  await scheduler.pause(0, worker, 'event loop goes on');
}

/** What is true of an attempt that sends its effect now. */
function maySend({ log, scheduler }: Sim, intent: Intent, call: CallLog, attempt: Attempt): void {
  const { contract, polite } = intent;
  const { key, fence, crossedAt, sentAt } = attempt;
  const detail = `${call.id} sends ${key} f${fence}`;
  if (crossedAt === undefined) log.violated('nothing is sent before the line', detail);
  if (polite && log.lost.has(attempt.token))
    log.violated('who was told that the lease is lost sends nothing', detail);
  const isJudged = contract.rerunWithinMs !== null && !isRepeatable(contract.effect);
  if (isJudged && sentAt !== undefined && (crossedAt ?? 0) < sentAt)
    log.violated("before every further try the provider's window is judged", detail);
  attempt.sentAt = scheduler.now;
}

export async function send(
  sim: Sim,
  intent: Intent,
  worker: Worker,
  call: CallLog,
  args: Args,
  ctx: { readonly key: string; readonly fence: number },
  prepared: unknown,
): Promise<Answer> {
  const { world, log } = sim;
  const { contract, target } = intent;
  const known = log.keyLog(call.key);
  const attempt = known.attempts.find(({ fence }) => fence === ctx.fence);
  const generation = attempt?.generation ?? 0;
  call.sent.push(ctx.fence);
  if (attempt !== undefined) maySend(sim, intent, call, attempt);
  if (call.waitsFor !== undefined && generation > call.waitsFor)
    log.violated(
      'a waiter never runs a newer generation',
      `${call.id} waited for g${call.waitsFor}, runs g${generation}`,
    );
  return world.send(worker, {
    target,
    key: call.key,
    generation,
    fence: ctx.fence,
    identity: args.id,
    body: JSON.stringify([args, prepared ?? null]),
    providerKey: contract.provider === undefined ? undefined : ctx.key,
    mayBeReworded: contract.redact.length > 0,
    bound: contract.quietMs,
    call: call.id,
  });
}

/** Throws as a real client does. */
export function valueFrom({ chance, faults }: Sim, { classifies }: Intent, answer: Answer): Value {
  switch (answer.kind) {
    case 'landed':
      if (faults.strike('effect landed, then another call failed', 0.05 * (1 + 2 * faults.profile.effect)))
        throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
      return { effect: answer.effect };
    case 'refused':
      throw classifies ? Object.assign(new Error('refused'), { code: 'EREFUSED' }) : new Rejected('refused');
    case 'not sent':
      throw classifies
        ? Object.assign(new Error('not sent'), { code: 'ENOTSENT' })
        : new NotLanded('not sent');
    case 'ambiguous':
      throw chance.happens(0.3) ? new MaybeLanded('no answer') : new Error('no answer');
  }
}

async function verify(sim: Sim, intent: Intent, worker: Worker, call: CallLog): Promise<Verification> {
  const { chance, scheduler, faults, log, world } = sim;
  const known = log.keyLog(call.key);
  known.looks += 1;
  if (known.looks > known.attempts.filter((each) => each.for === 'verify').length)
    log.violated('`verify` asks under a claim', `${call.id} looks for ${call.key}`);
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
  const generation = own?.generation ?? 0;
  const found = world.find(call.key, generation);
  await slow();
  if (faults.active && chance.happens(0.06)) await blocked(sim, intent, worker);
  return found === undefined ? notLanded() : landed({ effect: found.id });
}
