// What a call does while another worker holds its key. A waiter shares the outcome of the generation that it
// waits for, takes over only what is free, and never runs a newer generation.

import type { Clock, Random } from '../core/clock.ts';
import { formatDuration } from '../core/duration.ts';
import { driftOf } from '../core/identity.ts';
import { isRepeatable } from '../core/words.ts';
import { type Ledger, pause } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { type Result, receiptOf, recordedError, refused } from './receipt.ts';
import { aborted, closed, foreign, gone, inFlight, leftBehind, mutualWait } from './refusals.ts';
import { replay } from './replay.ts';

export interface Waiting {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly random: Random;
  /** The record is free: claim it, in its generation only. */
  readonly goOn: (record: StoredRecord) => Promise<Result>;
  readonly settleDoubt: (record: StoredRecord) => Promise<Result>;
  /** It is over, and this call is one of its own: claim whatever is there. */
  readonly startAnew: () => Promise<Result>;
  /** Aborts when this process stops waiting for anything. */
  readonly closing: AbortSignal;
  /** Says it once. */
  readonly warn: (message: string) => void;
  /** The contract from whose run the call is made. */
  readonly insideOf: string | undefined;
}

const firstPauseMs = 10;
const longestPauseMs = 1_000;
/** From here on somebody may think that the program hangs. */
const longMs = 5_000;
/** What waits inside another run keeps that one waiting too, and the other side may wait for it. */
const longestNestedMs = 10 * 60_000;

export async function wait(call: Call, first: StoredRecord, deps: Waiting): Promise<Result> {
  const { contract } = call.tool;
  if (contract.ifBusy === 'skip')
    return { ok: true, value: undefined, receipt: receiptOf(call, first, { skipped: true }) };
  if (contract.ifBusy === 'fail') return refused(call, first, inFlight(call, first));

  const { ledger, clock, random, closing, warn, insideOf } = deps;
  // What is written each time anew is not shared with a caller who wants something else written.
  const isAnother = isRepeatable(contract.effect) && driftOf(first.content, call.content()).length > 0;
  const since = clock.mono();
  const isUnbounded = !Number.isFinite(contract.waitMs) && insideOf !== undefined;
  const until = since + (isUnbounded ? longestNestedMs : contract.waitMs);
  let running = first;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const left = until - clock.mono();
    if (left <= 0) return refused(call, running, inFlight(call, running, insideOf));
    await pause(clock, Math.min(left, pauseMs * (0.5 + random.fraction() / 2)), [closing, call.signal]);
    if (call.signal?.aborted) return refused(call, running, leftBehind(call, running));
    if (closing.aborted) return refused(call, running, closed());

    const { namespace, fingerprint, caller, share } = call;
    const { generation } = first;
    const asked = { namespace, key: running.key, fingerprint, generation, caller, share };
    const verdict = await ledger.look(asked);
    const isOver =
      verdict.kind === 'gone' || verdict.kind === 'replay' || verdict.record.status === 'released';
    if (isAnother && isOver) return deps.startAnew();
    if (verdict.kind === 'foreign') return refused(call, undefined, foreign(call, verdict.record));
    if (verdict.kind === 'gone') return refused(call, undefined, gone(call));
    if (verdict.kind === 'replay') return replay(call, verdict.record);
    if (verdict.kind === 'in doubt') return deps.settleDoubt(verdict.record);
    if (verdict.kind === 'conflict') return deps.goOn(verdict.record);
    if (verdict.record.status === 'released') {
      // The winner used up its tries: N waiters do not make N attempts of it. A verdict took the next fence,
      // and whoever gave it wants the call to go on; so do those who wait for a winner that gave up by itself.
      const isSpent = verdict.record.fence === running.fence && !gaveUp(verdict.record);
      return isSpent
        ? refused(call, verdict.record, recordedError(verdict.record))
        : deps.goOn(verdict.record);
    }
    if (verdict.record.lapsed) return deps.goOn(verdict.record);
    running = verdict.record;
    if (clock.mono() - since >= longMs) warn(longWait(contract, running, insideOf));
  }
}

/**
 * What another caller is writing is not shared. What is harmless to repeat is not refused for that either: it is written
 * when the other one has ended.
 */
export async function waitBehind(call: Call, first: StoredRecord, deps: Waiting): Promise<Result> {
  const { ledger, clock, random, closing, startAnew } = deps;
  const { namespace, fingerprint, caller, share, tool } = call;
  const asked = { namespace, key: first.key, fingerprint, generation: first.generation, caller, share };
  const until = clock.mono() + tool.contract.waitMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const left = until - clock.mono();
    if (left <= 0) return refused(call, undefined, foreign(call, first));
    await pause(clock, Math.min(left, pauseMs * (0.5 + random.fraction() / 2)), [closing, call.signal]);
    if (call.signal?.aborted) return refused(call, undefined, aborted(call));
    if (closing.aborted) return refused(call, undefined, closed());
    const verdict = await ledger.look(asked);
    const isRunning = verdict.kind === 'foreign' && verdict.record.status === 'running';
    if (!isRunning || verdict.record.lapsed) return startAnew();
  }
}

function longWait(
  { name, leaseMs }: Call['tool']['contract'],
  { owner }: StoredRecord,
  insideOf: string | undefined,
): string {
  const mutual = insideOf === undefined ? '' : ` ${mutualWait(name, insideOf)}`;
  return (
    `${name}: a call waits for the same one, which ${owner} began. If that has died, it goes on when the lease of ` +
    `${formatDuration(leaseMs)} is over; \`lease\` makes it shorter.${mutual}`
  );
}

/** Its caller left, its time was over, or its process closed: reasons of its own, none of the effect's. */
function gaveUp({ error }: StoredRecord): boolean {
  return error?.code === 'ABORTED' || error?.code === 'EXPIRED';
}
