// What a call does while another worker holds its key. A waiter shares the outcome of the generation that it
// waits for, takes over only what is free, and never runs a newer generation.

import { formatDuration } from '../core/contract/duration.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { sleep } from '../ledger/index.ts';
import { withoutMark } from '../store/process-life.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { firstPurpose, type Purpose } from './claim.ts';
import { endIfDead } from './death.ts';
import { isHarmless } from './doubt.ts';
import type { Env } from './env.ts';
import { runWithoutClaim } from './modes/without-claim.ts';
import { createReceipt, errorFromRecord, type Result, refuse } from './receipt.ts';
import {
  abortedError,
  closedError,
  describeMutualWait,
  foreignError,
  goneError,
  inFlightError,
  leftBehindError,
} from './refusals.ts';
import { replay } from './replay.ts';
import type { Body } from './run-tool.ts';

/** What to do after the wait: answer the caller, claim again, or settle a doubt. */
export type NextStep =
  | { readonly result: Result | Promise<Result> }
  | { readonly purpose: Purpose }
  | { readonly doubt: StoredRecord; readonly tried?: Purpose['tried'] };

/** The other execution is over, and this call is a separate one: claim whatever is there. */
const startAnew: NextStep = { purpose: firstPurpose };

/** The record is free: claim it, in its generation only. */
const claimFree = ({ generation }: StoredRecord): NextStep => ({ purpose: { ...firstPurpose, generation } });

const firstPauseMs = 10;
const longestPauseMs = 1_000;
/** A person may think by now that the program hangs. */
const longMs = 5_000;
/** A nested call keeps its outer run waiting too, and the other side may be waiting for that. */
const longestNestedMs = 10 * 60_000;

/** `since`: when the call first had to wait. `outerContract`: the contract from whose run the call is made. */
export async function wait(
  env: Env,
  call: Call,
  first: StoredRecord,
  since: number,
  outerContract: string | undefined,
): Promise<NextStep> {
  const { contract } = call.tool;
  // The running write was sent before this call was made, and another write may have come between: this one is made too.
  const isSeparate = isRepeatable(contract.effect);
  // The same generation: by now another process may have finished it, and the next one is not this call's to start.
  const claimAgain = isSeparate ? startAnew : claimFree(first);
  if (await endIfDead(env, first)) return claimAgain;
  const answer = (result: Result | Promise<Result>): NextStep => ({ result });
  if (contract.ifBusy === 'skip')
    return answer({ ok: true, value: undefined, receipt: createReceipt(call, first, { skipped: true }) });
  if (contract.ifBusy === 'fail') return answer(refuse(call, first, inFlightError(call, first)));

  const { ledger, clock, warn } = env;
  const isUnbounded = !Number.isFinite(contract.waitMs) && outerContract !== undefined;
  const until = since + (isUnbounded ? longestNestedMs : contract.waitMs);
  let running = first;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const end = await pause(env, call, pauseMs, until);
    if (end === 'timeout') return answer(refuse(call, running, inFlightError(call, running, outerContract)));
    if (end === 'aborted') return answer(refuse(call, running, leftBehindError(call, running)));
    if (end === 'closed') return answer(refuse(call, running, closedError()));
    const now = await ledger.readAnswer(createQuery(call, running));
    const isOver = now.is === 'gone' || now.is === 'replay' || now.record.status === 'released';
    if (isSeparate && isOver) return startAnew;
    if (now.is === 'foreign') return answer(refuse(call, undefined, foreignError(call, now.record)));
    if (now.is === 'gone') return answer(refuse(call, undefined, goneError(call)));
    if (now.is === 'replay') return answer(replay(call, now.record));
    // A separate write has tried nothing yet: the doubt is about another one.
    if (now.is === 'in doubt') return { doubt: now.record, ...(isSeparate ? { tried: [] } : {}) };
    if (now.is === 'conflict') return claimFree(now.record);
    if (now.record.status === 'released') {
      // The winner used up its tries: N waiters must not make N more attempts. But after a verdict, which took the next
      // fence, or after a winner that gave up by itself, the call goes on.
      const isSpent = now.record.fence === running.fence && !gaveUp(now.record);
      return isSpent ? answer(refuse(call, now.record, errorFromRecord(now.record))) : claimFree(now.record);
    }
    if (now.record.lapsed) return claimFree(now.record);
    running = now.record;
    if (await endIfDead(env, running)) return claimAgain;
    if (clock.mono() - since >= longMs) warn(describeLongWait(contract, running, outerContract));
  }
}

/** Another caller's result is not shared. A call that is harmless to repeat runs all the same: after the other one, or without a record. */
export async function waitForOtherCaller(
  env: Env,
  call: Call,
  record: StoredRecord,
  since: number,
  body: Body,
): Promise<NextStep> {
  const isRunning = record.status === 'running' && !record.lapsed;
  if (isHarmless(call, record)) {
    if (isRunning && call.tool.contract.ifBusy === 'wait') return waitUntilOver(env, call, record, since);
    // The other caller's open doubt stays as it is.
    if (!isRunning && env.mayRunUnguarded) return { result: runWithoutClaim(env, call, body) };
  }
  return { result: refuse(call, undefined, foreignError(call, record)) };
}

async function waitUntilOver(env: Env, call: Call, first: StoredRecord, since: number): Promise<NextStep> {
  const until = since + call.tool.contract.waitMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const end = await pause(env, call, pauseMs, until);
    if (end === 'timeout') return { result: refuse(call, undefined, foreignError(call, first)) };
    if (end === 'aborted') return { result: refuse(call, undefined, abortedError(call)) };
    if (end === 'closed') return { result: refuse(call, undefined, closedError()) };
    const now = await env.ledger.readAnswer(createQuery(call, first));
    const isRunning = now.is === 'foreign' && now.record.status === 'running';
    if (!isRunning || now.record.lapsed) return startAnew;
  }
}

/** Sleeps before the next look at the record, with jitter; says why the wait is over, if it is. */
async function pause(
  { clock, random, closing }: Env,
  { signal }: Call,
  pauseMs: number,
  until: number,
): Promise<'timeout' | 'aborted' | 'closed' | undefined> {
  const leftMs = until - clock.mono();
  if (leftMs <= 0) return 'timeout';
  await sleep(clock, Math.min(leftMs, pauseMs * (0.5 + random.fraction() / 2)), [closing, signal]);
  if (signal?.aborted) return 'aborted';
  return closing.aborted ? 'closed' : undefined;
}

/** The record in the generation that the call waits for. */
function createQuery({ namespace, fingerprint, caller, share }: Call, { key, generation }: StoredRecord) {
  return { namespace, key, fingerprint, generation, caller, share };
}

function describeLongWait(
  { name, leaseMs }: Call['tool']['contract'],
  { owner }: StoredRecord,
  outerContract: string | undefined,
): string {
  const holder = withoutMark(owner);
  const mutual = outerContract === undefined ? '' : ` ${describeMutualWait(name, outerContract)}`;
  return (
    `${name}: a call is waiting for an equal one that ${holder} started. If ${holder} has died, the call continues when the lease of ` +
    `${formatDuration(leaseMs)} is over. Set a shorter \`lease\` to wait less.${mutual}`
  );
}

/** Its caller left, its time was over, or its process closed: the effect itself was not refused. */
function gaveUp({ error }: StoredRecord): boolean {
  return error?.code === 'ABORTED' || error?.code === 'EXPIRED';
}
