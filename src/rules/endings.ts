// How a row looks after an attempt, a verdict or a late success has ended it.

import type { DraftRow, News, Row, StoredResult } from './record.ts';
import type { SettleRequest } from './requests.ts';
import { computeExpiry, inFlightEnd, type Time } from './state.ts';

export const noValue: StoredResult = { text: null, omitted: 'no value was reported', remoteRef: null };

/** The provider's id for what may have landed. */
export function unconfirmed(remoteRef: string | null): StoredResult {
  return { text: null, omitted: 'it is not known to have landed', remoteRef };
}

/** The row takes over the token of the success, so that a repeated report does not count as a second effect. */
export function applyLateSuccess(row: Row, news: News, time: Time): Row {
  return { ...succeed(row, news.result, time), token: news.token, news };
}

/** The usual ending of a call, so it copies the row only once. */
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
  // `expiresAt` has replaced the windows; only `keep` still matters.
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

/** Also for an attempt with a definite ending, while an earlier attempt is not accounted for. */
export function leaveInDoubt(
  row: Row,
  request: Pick<SettleRequest, 'error' | 'result'> &
    Partial<Pick<SettleRequest, 'outcome' | 'found' | 'late'>>,
  time: Time,
): Row {
  // An attempt that does not know its outcome, and was not just verifying, may have sent something before dispatch.
  const maySend = row.dispatched || (request.outcome === 'unknown' && request.found === false);
  return {
    ...closeAttempt(row, time),
    status: 'unknown',
    doubtFence: row.doubtFence ?? row.fence,
    error: request.error ?? row.error,
    // The provider's id helps to find out whether it landed.
    result: request.result ?? row.result,
    // An attempt that has ended sends nothing more: only requests in the network may still arrive.
    inFlightUntil: maySend
      ? inFlightEnd(row.networkMs, request.late ? row.inFlightUntil : earlierInFlight(row), time)
      : row.inFlightUntil,
    expiresAt: null,
  };
}

/** The attempt kept sending until now, and may still be running. */
export function extendInFlight(row: Row, { error }: Pick<SettleRequest, 'error'>, time: Time): Row {
  const waitMs = error === null ? Math.max(row.networkMs, stillRunningMs) : row.networkMs;
  return { ...row, inFlightUntil: inFlightEnd(waitMs, row.inFlightUntil, time) };
}

/** An attempt that still runs reports so every third of this, or of `networkMs` where that is longer. */
export const stillRunningMs = 30_000;

/** While an earlier attempt is not accounted for, its in-flight time still counts. */
function earlierInFlight(row: Row): number | null {
  return row.doubtFence === null ? null : row.inFlightUntil;
}

function closeAttempt(row: Row, time: Time): DraftRow {
  const { wall } = time;
  return { ...row, leaseBoot: null, leaseUntil: null, notes: 0, settledAt: wall, updatedAt: wall };
}
