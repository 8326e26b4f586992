// Runs the effect, as often as the contract allows, always under the same key, and classifies how it ended.

import type { Clock, Random } from '../core/clock.ts';
import { type Classified, classify, type Ending, join, makeReadable } from '../core/contract/classify.ts';
import type { Contract } from '../core/contract/contract.ts';
import { oneRequest, type Seen } from '../core/contract/one-request.ts';
import { readRetryAfter } from '../core/contract/retry-after.ts';
import { isRepeatable, stricter } from '../core/contract/words.ts';
import { isLazy } from '../core/plain.ts';
import { AlreadyLanded, MaybeLanded } from '../core/signals.ts';
import { sleep } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { Call, Tool } from './call.ts';
import type { Claim, Purpose } from './claim.ts';
import type { Claimant } from './detached.ts';
import type { Env } from './env.ts';
import type { Result } from './receipt.ts';
import { type AttemptContext, setPrepared } from './sending/context.ts';
import type { Requests } from './sending/requests.ts';

/** How one try ended, and what it threw. */
export interface Try {
  readonly ending: Ending;
  readonly thrown: unknown;
  /** `verify` found it; nothing was executed. */
  readonly verified?: true;
  /** What `verify` answered, if that left the doubt. */
  readonly verdict?: string;
  /** No further try may follow, even if class and provider allow it. */
  readonly final?: true;
  /** Headers of the last response that `ctx.fetch` got. */
  readonly headers?: Headers | undefined;
  /** The effect ran on after its attempt had ended, or still does. */
  readonly late?: true;
  /** The claim stays until its lease ends: it is not settled. */
  readonly left?: true;
  /** The body was not called. */
  readonly unstarted?: true;
  /** Gets the result once this ending is settled, even after the timeout. */
  readonly onSettled?: (result: Promise<Result>) => void;
}

/** Executes the effect of an attempt. */
export interface Body {
  (attempt: Attempt): Promise<Try>;
  /** The effect runs outside of semel, and its end may never be reported. Runs it where there is no claim. */
  readonly runExternally?: Tool['run'];
  /** Whose claim it is, if not this process's. */
  readonly claimant?: Claimant;
  /** This process runs the effect by itself, so its death ends the attempt, as with a tool's own `run`. */
  readonly endsWithProcess?: boolean;
  /** The executor takes the claim as it was won, so that this process holds no attempt for it. Undefined: it must hold one. */
  readonly handOver?: (claim: Claim, record: StoredRecord, purpose: Purpose) => Result | undefined;
}

export function runTool(env: Env, attempt: Attempt): Promise<Try> {
  return attempt.call.tool.contract.retry.tries > 1 ? runSeveralTimes(env, attempt) : runOnce(attempt);
}

/** What it sent without a key may not be sent again, whatever the contract says of the provider. */
export function judgeTry(attempt: Attempt, ended: Try): Try {
  const { outcome } = ended.ending;
  // An effect that it found was not sent by it.
  const isSent = outcome === 'unknown' || (outcome === 'succeeded' && ended.thrown === undefined);
  attempt.judgeKeyUse(isSent);
  return ended;
}

async function runSeveralTimes({ clock, random }: Env, attempt: Attempt): Promise<Try> {
  const { retry } = attempt.call.tool.contract;
  let last = await runOnce(attempt);
  const tries = [last];
  for (;;) {
    if (last.ending.outcome !== 'succeeded') attempt.endTry(last.ending.outcome);
    const joined = joinTries(attempt, tries);
    // A refused effect would be refused again, also where an earlier try leaves the whole in doubt.
    const isFinal = last.final === true || last.ending.outcome === 'failed';
    if (isFinal || tries.length >= retry.tries || !mayTryAgain(attempt, joined.ending)) return joined;
    if (joined.ending.outcome === 'unknown') attempt.markTryOpen();
    if (attempt.hasNoted && !(await attempt.forgetEndedTry())) return joined;
    // The caller learns how long the target wants, and need not be kept waiting for it.
    const wantedMs = readDelayMs(last, clock) ?? 0;
    if (wantedMs > retry.maxBackoffMs) return joined;
    await sleep(clock, Math.max(wantedMs, backoffMs(retry, tries.length, random)));
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

/** Past `notAfter`: nothing may start any more. */
export function isLate({ notAfter }: Pick<Call, 'notAfter'>, clock: Clock): boolean {
  return notAfter !== null && clock.now() > notAfter;
}

/** The pause after this many tries. */
export function backoffMs(retry: Contract['retry'], tries: number, random: Random): number {
  const longest = Math.min(retry.maxBackoffMs, retry.backoffMs * 2 ** (tries - 1));
  return longest * (0.5 + random.fraction() / 2);
}

async function runOnce(attempt: Attempt): Promise<Try> {
  const ended = await runBody(attempt);
  return attempt.provider === undefined ? ended : judgeTry(attempt, ended);
}

async function runBody(attempt: Attempt): Promise<Try> {
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
    const preparing = prepareAndDispatch(tool, args, ctx, attempt);
    if (preparing !== undefined) await preparing;
    const value = await (asksForRequests(tool)
      ? requests.count(() => tool.run(args, ctx))
      : tool.run(args, ctx));
    if (attempt.steps !== undefined) await attempt.steps.finish();
    if (isLazy(value)) {
      await requests.close();
      return refuseLazyRun(attempt);
    }
    if (!attempt.record.dispatched) {
      await requests.close();
      return neverDispatched(tool.contract.name);
    }
    attempt.warnOfIgnored(requests.failedStatus);
    return { ending: { outcome: 'succeeded', value }, thrown: undefined };
  } catch (caught) {
    await requests.close();
    // `undefined` can be thrown, but here it means that nothing was.
    const readable = makeReadable(caught) ?? new Error(`${caught} was thrown`);
    const thrown = tellPartial(attempt, readable);
    return { ending: classifyThrown(attempt, thrown, requests), thrown, headers: requests.headers };
  }
}

/** Only a classifier asks how many requests there were, and `via` whether one of them got no answer. */
function asksForRequests({ classify: own, contract }: Tool): boolean {
  return own !== undefined || contract.via === 'fetch';
}

/** Says which steps landed, where the steps are all that it did. */
export function tellPartial(attempt: Attempt, thrown: unknown): unknown {
  if (!attempt.isStepsOnly || thrown instanceof AlreadyLanded || thrown instanceof MaybeLanded) return thrown;
  return attempt.steps?.toPartialSuccess(thrown) ?? thrown;
}

/** How long the target asked to wait before it is tried again. */
export function readDelayMs({ thrown, headers }: Try, clock: Clock): number | undefined {
  return readRetryAfter(thrown, clock.now()) ?? readRetryAfter({ headers }, clock.now());
}

/** Stores the output of `prepare`, and the dispatch. */
export interface PrepareTarget {
  readonly hasPrepared: boolean;
  prepare(output: unknown): void;
  dispatch(): Promise<void>;
}

/** The output of `prepare` is made once, and stored before it is sent. */
export function prepareAndDispatch(
  tool: Tool,
  args: never,
  ctx: AttemptContext,
  target: PrepareTarget,
): Promise<void> | undefined {
  const mustPrepare = tool.prepare !== undefined && !target.hasPrepared;
  const mustDispatch = tool.contract.dispatch === 'prepared';
  return mustPrepare || mustDispatch ? prepareFirst() : undefined;

  async function prepareFirst(): Promise<void> {
    if (mustPrepare) {
      const output = await tool.prepare?.(args, ctx);
      target.prepare(output);
      setPrepared(ctx, output);
    }
    if (mustDispatch) await target.dispatch();
  }
}

/** The requests of a try, as far as they were seen. */
type SeenRequests = Pick<Requests, 'fates' | 'sent' | 'hasSuccess' | 'hasLostAnswer' | 'answer'>;

export function classifyThrown(attempt: Attempt, thrown: unknown, requests: SeenRequests): Ending {
  const { tool } = attempt.call;
  const seen = lookAt(tool, thrown, requests);
  return classify({
    error: thrown,
    dispatched: attempt.record.dispatched,
    repeatable: isRepeatable(stricter(tool.contract.effect, attempt.record.effect)),
    classified: askClassifiers(tool, thrown, seen),
    asOneRequest: tryClassifier(oneRequest, thrown, seen),
    // Below `fetch`, a dispatcher may repeat a request: only the last answer shows in its fate.
    requests: requests.hasLostAnswer ? [...requests.fates, 'ambiguous'] : requests.fates,
    steps: attempt.steps?.fates ?? [],
    via: tool.contract.via,
  });
}

const noRequests: SeenRequests = {
  fates: [],
  sent: 0,
  hasSuccess: false,
  hasLostAnswer: false,
  answer: undefined,
};

export function lookAt(tool: Tool, thrown: unknown, requests = noRequests): Seen {
  const { fates, sent, hasSuccess, answer } = requests;
  const seen = { requests: fates, sent, hasSuccess, answer, provider: undefined };
  return { ...seen, provider: tryClassifier(tool.contract.provider?.classify, thrown, seen) };
}

export function askClassifiers(tool: Tool, thrown: unknown, seen: Seen): Classified | undefined {
  const own = tryClassifier(tool.classify, thrown, seen);
  if (own !== undefined) return own;
  // The error is about the last request only: the provider says nothing about the ones before.
  const isOpen = seen.requests.slice(0, -1).some((fate) => fate === 'landed' || fate === 'ambiguous');
  const { rerunWithinMs, via } = tool.contract;
  // Nor does it say anything about effects elsewhere, unless its key covers all that `run` does.
  const isAll = rerunWithinMs !== null || via !== undefined;
  const known = seen.provider;
  return (isOpen || !isAll) && (known === 'notLanded' || known === 'rejected') ? undefined : known;
}

/** A classifier that throws has not recognised the error. */
function tryClassifier(classifier: Tool['classify'], thrown: unknown, seen: Seen): Classified | undefined {
  try {
    return classifier?.(thrown, seen);
  } catch {
    return undefined;
  }
}

/** Only if the try did not land, or if class or provider make a repeat harmless. */
function mayTryAgain(attempt: Attempt, ending: Ending): boolean {
  if (attempt.stop.isRequested) return false;
  if (ending.outcome === 'released') return true;
  const { contract } = attempt.call.tool;
  const isKeyed = contract.rerunWithinMs !== null && attempt.record.keyed;
  return ending.outcome === 'unknown' && (isRepeatable(attempt.record.effect) || isKeyed);
}

function joinTries({ isStepsOnly }: Attempt, tries: readonly Try[]): Try {
  const last = tries.at(-1) as Try;
  // It knows what became of the steps of the tries before it, and which of them it made itself.
  if (isStepsOnly && last.ending.outcome === 'unknown') return last;
  const ending = join(tries.map((each) => each.ending));
  return tries.find((each) => each.ending === ending) as Try;
}

export function neverDispatched(name: string): Try {
  const thrown = new Error(
    `\`run\` returned without \`ctx.dispatch()\`, so ${name} may have had its effect without it: write \`await ctx.dispatch()\` before the effect`,
  );
  return { ending: { outcome: 'unknown', because: 'it was never dispatched' }, thrown, final: true };
}

export function lazyRunError(name: string): Error {
  return new Error(
    `\`run\` of ${name} returned a generator or promises, which have not run or not ended: await them inside \`run\` and return the result`,
  );
}

/** A generator would run outside the attempt, or never, and promises end outside of it: they cannot be recorded as done. */
export function refuseLazyRun({ call, record }: Attempt): Try {
  const { name, effect } = call.tool.contract;
  const thrown = lazyRunError(name);
  // The rest of `run` may have had an effect.
  const outcome = isRepeatable(stricter(effect, record.effect)) ? 'released' : 'unknown';
  return { ending: { outcome, because: 'it returned a generator or promises' }, thrown, final: true };
}
