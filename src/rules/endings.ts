// How a row looks once an attempt, a verdict or late news has ended what was under way.

import type { News, Row, StoredResult } from './record.ts';
import type { SettleRequest } from './requests.ts';
import { computeExpiry, inFlightEnd, type Time } from './state.ts';

export const noValue: StoredResult = { text: null, omitted: 'no value was reported', remoteRef: null };

/**
 * A fenced attempt's success ends it. The token goes with the success, so that the same news asked again is not
 * taken for a second effect.
 */
export function applyLateSuccess(row: Row, news: News, time: Time): Row {
  return { ...succeed(row, news.result, time), token: news.token, news };
}

/** Most calls end so: the one copy of the row is written in place. */
export function succeed(row: Row, result: StoredResult | null, time: Time): Row {
  const after = closeAttempt(row, time);
  after.status = 'succeeded';
  after.doubtFence = null;
  after.result = result ?? noValue;
  after.error = null;
  after.prepared = null;
  after.inFlightUntil = null;
  after.networkMs = 0;
  after.expiresAt = computeExpiry(row, 'success', time);
  // The windows have become an instant; only whether the key stays for good is still asked.
  after.retention = row.retention && (row.retention.keep ? keptForGood : keptForNow);
  return after;
}

const keptForNow = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null } as const;
const keptForGood = { ...keptForNow, keep: true } as const;

export function fail(row: Row, request: SettleRequest, time: Time): Row {
  return {
    ...closeAttempt(row, time),
    status: 'failed',
    error: request.error,
    expiresAt: computeExpiry(row, 'failure', time),
  };
}

export function release(row: Row, request: Pick<SettleRequest, 'error'>, time: Time): Row {
  return {
    ...closeAttempt(row, time),
    status: 'released',
    error: request.error,
    expiresAt: computeExpiry(row, 'failure', time),
  };
}

/** Nobody knows. Also the ending of an attempt that is sure of itself, where an earlier one is not accounted for. */
export function leaveInDoubt(
  row: Row,
  request: Pick<SettleRequest, 'error' | 'result'> & Partial<Pick<SettleRequest, 'outcome' | 'found'>>,
  time: Time,
): Row {
  // One that cannot tell, and did more than ask, may have sent something before it crossed the line.
  const maySend = row.dispatched || (request.outcome === 'unknown' && request.found === false);
  return {
    ...closeAttempt(row, time),
    status: 'unknown',
    doubtFence: row.doubtFence ?? row.fence,
    error: request.error ?? row.error,
    // What the provider called it helps to find out.
    result: request.result ?? row.result,
    // The attempt has reported its end, so it sends nothing more: what may still be on its way is the tail.
    inFlightUntil: maySend ? inFlightEnd(row.networkMs, earlierInFlight(row), time) : row.inFlightUntil,
    expiresAt: null,
  };
}

/** An attempt went on sending until now, and perhaps goes on. */
export function extendInFlight(row: Row, { error }: Pick<SettleRequest, 'error'>, time: Time): Row {
  const waitMs = error === null ? Math.max(row.networkMs, stillRunningMs) : row.networkMs;
  return { ...row, inFlightUntil: inFlightEnd(waitMs, row.inFlightUntil, time) };
}

/** One that still runs says so at a third of this, or of its tail where that is longer. */
export const stillRunningMs = 30_000;

/** With an earlier attempt unaccounted for, its own waiting time stands. */
function earlierInFlight(row: Row): number | null {
  return row.doubtFence === null ? null : row.inFlightUntil;
}

function closeAttempt(row: Row, time: Time): { -readonly [Field in keyof Row]: Row[Field] } {
  return { ...row, leaseBoot: null, leaseUntil: null, settledAt: time.wall, updatedAt: time.wall };
}
