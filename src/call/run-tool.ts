// Runs the effect, as often as the contract allows, always under the same key, and says what it all meant.

import type { Clock, Random } from '../core/clock.ts';
import {
  type Classified,
  classify,
  type Ending,
  join,
  makeReadable,
  type RequestFate,
} from '../core/contract/classify.ts';
import type { Contract } from '../core/contract/contract.ts';
import { isRepeatable, stricter } from '../core/contract/words.ts';
import { isLazy } from '../core/plain.ts';
import { sleep } from '../ledger/index.ts';
import type { Attempt } from './attempt.ts';
import type { Call, Tool } from './call.ts';
import type { Env } from './env.ts';
import type { Result } from './receipt.ts';
import type { AttemptContext } from './sending/context.ts';

/** An ending, and what was thrown. */
export interface Try {
  readonly ending: Ending;
  readonly thrown: unknown;
  /** It was found out by asking, not by executing. */
  readonly verified?: true;
  /** No further try may follow, whatever class and provider allow. */
  readonly final?: true;
  /** The attempt was ended by its timeout before, and went on until now. */
  readonly late?: true;
  /** Hears how this ending was recorded, however late it came. */
  readonly hear?: (result: Promise<Result>) => void;
}

/** Executes under an attempt, and says how it ended. */
export interface Body {
  (attempt: Attempt): Promise<Try>;
  /** The effect is in somebody else's hands, who may never say how it ended. */
  readonly isExternal?: true;
}

export function runTool(env: Env, attempt: Attempt): Promise<Try> {
  return attempt.call.tool.contract.retry.tries > 1 ? runSeveralTimes(env, attempt) : runOnce(attempt);
}

async function runSeveralTimes({ clock, random }: Env, attempt: Attempt): Promise<Try> {
  const { retry } = attempt.call.tool.contract;
  let last = await runOnce(attempt);
  const tries = [last];
  for (;;) {
    const joined = joinTries(tries);
    // What was refused is refused again, also where an earlier try leaves the whole in doubt.
    const isFinal = last.final === true || last.ending.outcome === 'failed';
    if (isFinal || tries.length >= retry.tries || !mayTryAgain(attempt, joined.ending)) return joined;
    if (joined.ending.outcome === 'unknown') attempt.markTryOpen();
    await sleep(clock, backoffMs(retry, tries.length, random));
    if (attempt.stop.isRequested || isLate(attempt.call, clock)) return joined;
    try {
      await attempt.recheckProviderWindow();
    } catch {
      return joined;
    }
    last = await runOnce(attempt);
    tries.push(last);
  }
}

/** Nothing may be started any more. */
export function isLate({ notAfter }: Pick<Call, 'notAfter'>, clock: Clock): boolean {
  return notAfter !== null && clock.now() > notAfter;
}

/** Before the try after this many. */
export function backoffMs(retry: Contract['retry'], tries: number, random: Random): number {
  const longest = Math.min(retry.maxBackoffMs, retry.backoffMs * 2 ** (tries - 1));
  return longest * (0.5 + random.fraction() / 2);
}

async function runOnce(attempt: Attempt): Promise<Try> {
  const { tool } = attempt.call;
  try {
    attempt.stop.throwIfRequested();
    if (attempt.isLeaseShort) await attempt.ensureLease();
  } catch (thrown) {
    return { ending: { outcome: 'released', because: 'it was not started' }, thrown };
  }
  const { ctx, requests } = attempt.context();
  const args = attempt.args as never;
  try {
    const reaching = prepareAndDispatch(tool, args, ctx, attempt);
    if (reaching !== undefined) await reaching;
    const value = await tool.run(args, ctx);
    if (isLazy(value)) {
      await requests.close();
      return refuseLazyRun(attempt);
    }
    if (!attempt.record.dispatched) {
      await requests.close();
      return neverDispatched(tool.contract.name);
    }
    return { ending: { outcome: 'succeeded', value }, thrown: undefined };
  } catch (caught) {
    await requests.close();
    // "Nothing was thrown" means something else.
    const thrown = makeReadable(caught) ?? new Error(`${caught} was thrown`);
    return { ending: classifyThrown(attempt, thrown, requests.fates), thrown };
  }
}

/** Who keeps what was prepared, and is told of the line. */
export interface Line {
  readonly hasPrepared: boolean;
  prepare(output: unknown): void;
  dispatch(): Promise<void>;
}

/** Up to the line: what is sent is prepared once, and stored before it is sent. */
export function prepareAndDispatch(
  tool: Tool,
  args: never,
  ctx: AttemptContext,
  line: Line,
): Promise<void> | undefined {
  const mustPrepare = tool.prepare !== undefined && !line.hasPrepared;
  const mustDispatch = tool.contract.dispatch === 'prepared';
  return mustPrepare || mustDispatch ? prepareFirst() : undefined;

  async function prepareFirst(): Promise<void> {
    if (mustPrepare) line.prepare(await tool.prepare?.(args, ctx));
    if (mustDispatch) await line.dispatch();
  }
}

export function classifyThrown(attempt: Attempt, thrown: unknown, fates: readonly RequestFate[]): Ending {
  const { tool } = attempt.call;
  return classify({
    error: thrown,
    dispatched: attempt.record.dispatched,
    repeatable: isRepeatable(stricter(tool.contract.effect, attempt.record.effect)),
    classified: askClassifiers(tool, thrown, fates),
    requests: fates,
    via: tool.contract.via,
  });
}

export function askClassifiers(
  tool: Tool,
  thrown: unknown,
  fates: readonly RequestFate[] = [],
): Classified | undefined {
  const word = ask(tool.classify, thrown);
  if (word !== undefined) return word;
  // The provider knows the last request by its error; of the ones before it says nothing.
  const isOpen = fates.slice(0, -1).some((fate) => fate === 'landed' || fate === 'ambiguous');
  const { provider, rerunWithinMs, via } = tool.contract;
  // Nor does it of what was done elsewhere, unless its key covers all that `run` does.
  const isAll = rerunWithinMs !== null || via !== undefined;
  const known = ask(provider?.classify, thrown);
  return (isOpen || !isAll) && (known === 'notLanded' || known === 'rejected') ? undefined : known;
}

/** A classifier that throws has not recognised the error. */
function ask(classifier: Tool['classify'], thrown: unknown): Classified | undefined {
  try {
    return classifier?.(thrown);
  } catch {
    return undefined;
  }
}

/** Only what did not land, or what class or provider make harmless. */
function mayTryAgain(attempt: Attempt, ending: Ending): boolean {
  if (attempt.stop.isRequested) return false;
  if (ending.outcome === 'released') return true;
  const { contract } = attempt.call.tool;
  const isKeyed = contract.rerunWithinMs !== null && attempt.record.keyed;
  return ending.outcome === 'unknown' && (isRepeatable(attempt.record.effect) || isKeyed);
}

function joinTries(tries: readonly Try[]): Try {
  const ending = join(tries.map((each) => each.ending));
  return tries.find((each) => each.ending === ending) as Try;
}

export function neverDispatched(name: string): Try {
  const thrown = new Error(
    `\`run\` returned without \`ctx.dispatch()\`, so ${name} may have had its effect before the line: write \`await ctx.dispatch()\` in front of it`,
  );
  return { ending: { outcome: 'unknown', because: 'it never crossed the line' }, thrown, final: true };
}

export function lazyRunError(name: string): Error {
  return new Error(
    `\`run\` of ${name} returned a generator, whose body has not run: await it inside \`run\` and return its result`,
  );
}

/** What runs later would run outside the attempt, or never: it cannot be recorded as done. */
function refuseLazyRun({ call, record }: Attempt): Try {
  const { name, effect } = call.tool.contract;
  const thrown = lazyRunError(name);
  // The rest of `run` may have had an effect.
  const outcome = isRepeatable(stricter(effect, record.effect)) ? 'released' : 'unknown';
  return { ending: { outcome, because: 'it returned a generator' }, thrown, final: true };
}
