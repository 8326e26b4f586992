// What a call does while another worker holds its key. A waiter shares the outcome of the generation that it
// waits for, takes over only what is free, and never runs a newer generation.

import { formatDuration } from '../core/contract/duration.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { sleep } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { firstPurpose, type Purpose } from './claim.ts';
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

/** `outerContract`: the contract from whose run the call is made. */
export async function wait(
  env: Env,
  call: Call,
  first: StoredRecord,
  outerContract: string | undefined,
): Promise<NextStep> {
  const { contract } = call.tool;
  const answer = (result: Result | Promise<Result>): NextStep => ({ result });
  if (contract.ifBusy === 'skip')
    return answer({ ok: true, value: undefined, receipt: createReceipt(call, first, { skipped: true }) });
  if (contract.ifBusy === 'fail') return answer(refuse(call, first, inFlightError(call, first)));

  const { ledger, clock, random, closing, warn } = env;
  // The running write was sent before this call was made, and another write may have come between: this one is made too.
  const isSeparate = isRepeatable(contract.effect);
  const since = clock.mono();
  const isUnbounded = !Number.isFinite(contract.waitMs) && outerContract !== undefined;
  const until = since + (isUnbounded ? longestNestedMs : contract.waitMs);
  let running = first;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const left = until - clock.mono();
    if (left <= 0) return answer(refuse(call, running, inFlightError(call, running, outerContract)));
    await sleep(clock, Math.min(left, pauseMs * (0.5 + random.fraction() / 2)), [closing, call.signal]);
    if (call.signal?.aborted) return answer(refuse(call, running, leftBehindError(call, running)));
    if (closing.aborted) return answer(refuse(call, running, closedError()));

    const { namespace, fingerprint, caller, share } = call;
    const { generation } = first;
    const query = { namespace, key: running.key, fingerprint, generation, caller, share };
    const now = await ledger.readAnswer(query);
    const isOver = now.is === 'gone' || now.is === 'replay' || now.record.status === 'released';
    if (isSeparate && isOver) return startAnew;
    if (now.is === 'foreign') return answer(refuse(call, undefined, foreignError(call, now.record)));
    if (now.is === 'gone') return answer(refuse(call, undefined, goneError(call)));
    if (now.is === 'replay') return answer(replay(call, now.record));
    if (now.is === 'in doubt') return { doubt: now.record };
    if (now.is === 'conflict') return claimFree(now.record);
    if (now.record.status === 'released') {
      // The winner used up its tries: N waiters must not make N more attempts. But after a verdict, which took the next
      // fence, or after a winner that gave up by itself, the call goes on.
      const isSpent = now.record.fence === running.fence && !gaveUp(now.record);
      return isSpent ? answer(refuse(call, now.record, errorFromRecord(now.record))) : claimFree(now.record);
    }
    if (now.record.lapsed) return claimFree(now.record);
    running = now.record;
    if (clock.mono() - since >= longMs) warn(longWait(contract, running, outerContract));
  }
}

/** Another caller's result is not shared. A call that is harmless to repeat runs all the same: after the other one, or without a record. */
export async function waitForOtherCaller(
  env: Env,
  call: Call,
  record: StoredRecord,
  isToolBody: boolean,
): Promise<NextStep> {
  const isRunning = record.status === 'running' && !record.lapsed;
  if (isHarmless(call, record)) {
    if (isRunning && call.tool.contract.ifBusy === 'wait') return waitUntilOver(env, call, record);
    // The other caller's open doubt stays as it is.
    if (!isRunning && env.mayRunUnguarded && isToolBody) return { result: runWithoutClaim(env, call) };
  }
  return { result: refuse(call, undefined, foreignError(call, record)) };
}

async function waitUntilOver(env: Env, call: Call, first: StoredRecord): Promise<NextStep> {
  const { ledger, clock, random, closing } = env;
  const { namespace, fingerprint, caller, share, tool } = call;
  const query = { namespace, key: first.key, fingerprint, generation: first.generation, caller, share };
  const until = clock.mono() + tool.contract.waitMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const left = until - clock.mono();
    if (left <= 0) return { result: refuse(call, undefined, foreignError(call, first)) };
    await sleep(clock, Math.min(left, pauseMs * (0.5 + random.fraction() / 2)), [closing, call.signal]);
    if (call.signal?.aborted) return { result: refuse(call, undefined, abortedError(call)) };
    if (closing.aborted) return { result: refuse(call, undefined, closedError()) };
    const now = await ledger.readAnswer(query);
    const isRunning = now.is === 'foreign' && now.record.status === 'running';
    if (!isRunning || now.record.lapsed) return startAnew;
  }
}

function longWait(
  { name, leaseMs }: Call['tool']['contract'],
  { owner }: StoredRecord,
  outerContract: string | undefined,
): string {
  const mutual = outerContract === undefined ? '' : ` ${describeMutualWait(name, outerContract)}`;
  return (
    `${name}: a call waits for the same one, which ${owner} began. If that has died, it goes on when the lease of ` +
    `${formatDuration(leaseMs)} is over; \`lease\` makes it shorter.${mutual}`
  );
}

/** Its caller left, its time was over, or its process closed: the effect itself was not refused. */
function gaveUp({ error }: StoredRecord): boolean {
  return error?.code === 'ABORTED' || error?.code === 'EXPIRED';
}
