// How an attempt's ending becomes the record's. The holder's word decides; with doubt set, "failed" and
// "released" speak for that attempt only and the record stays unknown. News from an attempt that no longer
// holds the key is kept as evidence, and a success among it is never wasted.

import type { Row, SettleAnswer, SettleRequest, StoredResult, StoreEvent } from '../store.ts';
import { isHolder } from './cross.ts';
import { event, expiryOf, type Step, type Time, view } from './state.ts';

export function settle(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  if (isHolder(row, request)) return settleHeld(row, request, time);
  if (row !== undefined && row.token === request.token) return settleAgain(row, request, time);
  return lateNews(row, request, time);
}

function settleHeld(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { news } = row;
  if (request.outcome === 'succeeded') {
    const surplus =
      news !== null && !request.keyed ? event(row, time, 'duplicate', { fence: news.fence }) : undefined;
    return done(succeed(row, request.result, time), time, surplus);
  }
  if (news !== null) {
    const landed = { ...succeed(row, news.result, time), token: news.token };
    return done(
      landed,
      time,
      event(landed, time, 'lateNews', { fence: news.fence, instead: request.outcome }),
    );
  }
  if (row.doubtSince !== null || request.outcome === 'unknown') return done(doubt(row, request, time), time);
  return done(request.outcome === 'failed' ? fail(row, request, time) : release(row, request, time), time);
}

/** The same token once more: a lost reply, or news that is better than what was known. */
function settleAgain(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { outcome } = request;
  if (row.status === outcome) return answered(null, row, time, { settled: true, fenced: false });
  const isOpen = row.status === 'unknown' || row.status === 'released';
  if (outcome === 'succeeded' && isOpen) return done(succeed(row, request.result, time), time);
  if (outcome === 'succeeded' && row.status === 'failed') {
    const contradiction = event(row, time, 'contradiction', { outcome, fence: request.fence });
    return answered(null, row, time, { settled: false, fenced: false }, contradiction);
  }
  if (row.status !== 'unknown') return answered(null, row, time, { settled: false, fenced: false });
  // Only where no earlier attempt is unaccounted for does this attempt's ending speak for the record.
  if (row.doubtSince !== row.fence) return answered(null, row, time, { settled: true, fenced: false });
  const accounted = { ...row, doubtSince: null };
  return done(
    outcome === 'failed' ? fail(accounted, request, time) : release(accounted, request, time),
    time,
  );
}

/** The attempt was taken over, resolved or pruned away. */
function lateNews(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { namespace, key, generation, fence, outcome } = request;
  const detail = { outcome, fence, error: request.error?.message ?? null };
  const told = (type: StoreEvent['type']): StoreEvent => ({
    at: time.wall,
    namespace,
    key,
    generation,
    fence,
    type,
    detail,
  });
  const fenced = { settled: false, fenced: true };

  if (row === undefined || row.generation !== generation) {
    // A refusal that outlived its record tells nobody anything; a success does.
    return answered(null, row, time, fenced, outcome === 'succeeded' ? told('lateNews') : undefined);
  }
  if (row.news?.token === request.token) return answered(null, row, time, fenced);
  if (outcome !== 'succeeded') return answered(null, row, time, fenced, told('fenced'));

  const result = request.result ?? noValue;
  if (row.status === 'unknown' || row.status === 'released') {
    // The token goes with the success, so that the same news asked again is not taken for a second effect.
    const landed = { ...succeed(row, result, time), token: request.token };
    return answered(landed, landed, time, { settled: true, fenced: true }, told('lateNews'));
  }
  if (row.status === 'running') {
    const informed: Row = { ...row, news: { token: request.token, fence, result }, updatedAt: time.wall };
    return answered(informed, informed, time, fenced, told('lateNews'));
  }
  if (row.status === 'failed') return answered(null, row, time, fenced, told('contradiction'));
  return answered(null, row, time, fenced, told(request.keyed ? 'fenced' : 'duplicate'));
}

const noValue: StoredResult = { text: null, omitted: 'no value was reported', remoteRef: null };

function done(row: Row, time: Time, noted?: StoreEvent): Step<SettleAnswer> {
  return answered(row, row, time, { settled: true, fenced: false }, noted);
}

function answered(
  write: Row | null,
  shown: Row | undefined,
  time: Time,
  { settled, fenced }: { settled: boolean; fenced: boolean },
  noted?: StoreEvent,
): Step<SettleAnswer> {
  return {
    row: write,
    answer: { settled, fenced, record: shown && view(shown, time), noted: noted?.type },
    events: noted === undefined ? [] : [noted],
  };
}

function ended(row: Row, time: Time): Row {
  return { ...row, leaseBoot: null, leaseUntil: null, settledAt: time.wall, updatedAt: time.wall };
}

export function succeed(row: Row, result: StoredResult | null, time: Time): Row {
  return {
    ...ended(row, time),
    status: 'succeeded',
    doubtSince: null,
    result: result ?? noValue,
    error: null,
    prepared: null,
    quietAt: null,
    tailMs: 0,
    expiresAt: expiryOf(row, 'success', time),
    // The windows have become an instant; only whether the key stays for good is still asked.
    retention: row.retention && {
      windowMs: 0,
      failureWindowMs: 0,
      keep: row.retention.keep,
      periodEndsAt: null,
    },
  };
}

function fail(row: Row, request: SettleRequest, time: Time): Row {
  return {
    ...ended(row, time),
    status: 'failed',
    error: request.error,
    // A refusal is remembered for a while only, also where a success would be kept for good.
    retention: row.retention && { ...row.retention, keep: false },
    expiresAt: expiryOf(row, 'failure', time),
  };
}

export function release(row: Row, request: Pick<SettleRequest, 'error'>, time: Time): Row {
  return {
    ...ended(row, time),
    status: 'released',
    error: request.error,
    expiresAt: expiryOf(row, 'failure', time),
  };
}

/** Nobody knows. Also the ending of an attempt that is sure of itself, where an earlier one is not accounted for. */
function doubt(row: Row, request: SettleRequest, time: Time): Row {
  return {
    ...ended(row, time),
    status: 'unknown',
    doubtSince: row.doubtSince ?? row.fence,
    error: request.error ?? row.error,
    // The attempt has reported its end, so it sends nothing more: what may still be on its way is the tail.
    quietAt: row.dispatched ? Math.max(earlierQuiet(row), time.wall + row.tailMs) : row.quietAt,
    expiresAt: null,
  };
}

/** With an earlier attempt unaccounted for, its own waiting time stands. */
function earlierQuiet(row: Row): number {
  return row.doubtSince === null ? 0 : (row.quietAt ?? 0);
}
