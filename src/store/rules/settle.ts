// How an attempt's ending becomes the record's. The holder's word decides; with doubt set, "failed" and
// "released" speak for that attempt only and the record stays unknown. News from an attempt that no longer
// holds the key is kept as evidence, and a success among it is never wasted.

import type { Row, SettleAnswer, SettleRequest, StoredResult, StoreEvent } from '../store.ts';
import { isHolder } from './cross.ts';
import { event, expiryOf, type Step, type Time, unchanged, view } from './state.ts';

export function settle(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  if (isHolder(row, request)) return settleHeld(row, request, time);
  if (row !== undefined && row.token === request.token) return settleAgain(row, request, time);
  return lateNews(row, request, time);
}

function settleHeld(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { news } = row;
  if (request.outcome === 'succeeded') {
    const surplus = news !== null && !request.keyed;
    return done(
      succeed(row, request.result, time),
      time,
      surplus ? [event(row, time, 'duplicate', { fence: news.fence })] : [],
    );
  }
  if (news !== null) {
    const landed = { ...succeed(row, news.result, time), token: news.token };
    return done(landed, time, [
      event(landed, time, 'lateNews', { fence: news.fence, instead: request.outcome }),
    ]);
  }
  if (row.doubtSince !== null || request.outcome === 'unknown') return done(doubt(row, request, time), time);
  return done(request.outcome === 'failed' ? fail(row, request, time) : release(row, request, time), time);
}

/** The same token once more: a lost reply, or news that is better than what was known. */
function settleAgain(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { outcome } = request;
  if (row.status === outcome) return unchanged({ settled: true, record: view(row, time), fenced: false });
  const isOpen = row.status === 'unknown' || row.status === 'released';
  if (outcome === 'succeeded' && isOpen) return done(succeed(row, request.result, time), time);
  if (outcome === 'succeeded' && row.status === 'failed') {
    return unchanged({ settled: false, record: view(row, time), fenced: false }, [
      event(row, time, 'contradiction', { outcome, fence: request.fence }),
    ]);
  }
  if (row.status !== 'unknown') return unchanged({ settled: false, record: view(row, time), fenced: false });
  // Only where no earlier attempt is unaccounted for does this attempt's ending speak for the record.
  if (row.doubtSince !== row.fence)
    return unchanged({ settled: true, record: view(row, time), fenced: false });
  const accounted = { ...row, doubtSince: null };
  return done(
    outcome === 'failed' ? fail(accounted, request, time) : release(accounted, request, time),
    time,
  );
}

/** The attempt was taken over, resolved or pruned away. */
function lateNews(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const detail = { outcome: request.outcome, fence: request.fence, error: request.error?.message ?? null };
  if (row === undefined || row.generation !== request.generation) {
    // A refusal that outlived its record tells nobody anything; a success does.
    if (request.outcome !== 'succeeded')
      return unchanged({ settled: false, record: row && view(row, time), fenced: true });
    const { namespace, key, generation, fence } = request;
    const orphan: StoreEvent = { at: time.wall, namespace, key, generation, fence, type: 'lateNews', detail };
    return unchanged({ settled: false, record: row && view(row, time), fenced: true }, [orphan]);
  }
  if (row.news?.token === request.token)
    return unchanged({ settled: false, record: view(row, time), fenced: true });
  if (request.outcome !== 'succeeded') return noted('fenced');

  const result = request.result ?? noValue;
  if (row.status === 'unknown' || row.status === 'released') {
    // The token goes with the success, so that the same news asked again is not taken for a second effect.
    const landed = { ...succeed(row, result, time), token: request.token };
    return {
      row: landed,
      answer: { settled: true, record: view(landed, time), fenced: true },
      events: [event(landed, time, 'lateNews', detail)],
    };
  }
  if (row.status === 'running') {
    const told: Row = {
      ...row,
      news: { token: request.token, fence: request.fence, result },
      updatedAt: time.wall,
    };
    return {
      row: told,
      answer: { settled: false, record: view(told, time), fenced: true },
      events: [event(row, time, 'lateNews', detail)],
    };
  }
  if (row.status === 'failed') return noted('contradiction');
  return noted(request.keyed ? 'fenced' : 'duplicate');

  function noted(type: 'fenced' | 'contradiction' | 'duplicate'): Step<SettleAnswer> {
    const found = row as Row;
    return unchanged({ settled: false, record: view(found, time), fenced: true }, [
      event(found, time, type, detail),
    ]);
  }
}

const noValue: StoredResult = { text: null, omitted: 'no value was reported', remoteRef: null };

function done(row: Row, time: Time, events: readonly StoreEvent[] = []): Step<SettleAnswer> {
  return { row, answer: { settled: true, record: view(row, time), fenced: false }, events };
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
