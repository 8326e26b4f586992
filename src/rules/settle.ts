// How an attempt's ending becomes the record's. The holder's word decides; with doubt set, "failed" and
// "released" speak for that attempt only and the record stays unknown. News from an attempt that no longer
// holds the key is kept as evidence, and a success among it is never wasted.

import { isHolder, noFence } from './cross.ts';
import {
  applyLateSuccess,
  extendInFlight,
  fail,
  leaveInDoubt,
  noValue,
  release,
  succeed,
} from './endings.ts';
import type { News, Row, StoreEvent } from './record.ts';
import type { SettleAnswer, SettleRequest } from './requests.ts';
import { event, isLapsed, noEvents, type Step, type Time, view } from './state.ts';

export function settle(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  if (isHolder(row, request)) return settleHeld(row, request, time);
  if (row !== undefined && isEnded(row, request)) return settleAgain(row, request, time);
  return lateNews(row, request, time);
}

/** The record says how this very claim ended. */
function isEnded(row: Row, { token, generation }: SettleRequest): boolean {
  const isSameLife = generation === row.generation || generation === noFence;
  return row.token === token && isSameLife && row.status !== 'running';
}

function settleHeld(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { news } = row;
  if (request.outcome === 'succeeded') {
    const isSurplus = isOwnDoing(row, request) && isOther(news) && !isSameEffect(row, request, news.fence);
    const surplus = isSurplus ? event(row, time, 'duplicate', { fence: news.fence }) : undefined;
    // What a verifier found meanwhile was this.
    const explained = isOwnDoing(row, request) && news?.found ? { ...row, news: null } : row;
    return done(succeed(explained, request.result, time), time, surplus);
  }
  if (news !== null) {
    const landed = applyLateSuccess(row, news, time);
    return done(
      landed,
      time,
      event(landed, time, 'lateNews', { fence: news.fence, instead: request.outcome }),
    );
  }
  if (row.doubtFence !== null || request.outcome === 'unknown')
    return done(leaveInDoubt(row, request, time), time);
  return done(request.outcome === 'failed' ? fail(row, request, time) : release(row, request, time), time);
}

/** The same token once more: a lost reply, or news that is better than what was known. */
function settleAgain(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { outcome } = request;
  // It ended later than it was taken to have ended, so "not landed" waits from now on.
  const since = request.late && row.status === 'unknown' ? extendInFlight(row, request, time) : row;
  const told = since === row ? null : since;
  if (row.status === outcome) return answered(told, since, time, { settled: true, fenced: false });
  const isOpen = row.status === 'unknown' || row.status === 'released';
  if (outcome === 'succeeded' && isOpen) return done(succeed(row, request.result, time), time);
  if (outcome === 'succeeded' && row.status === 'failed') {
    const contradiction = event(row, time, 'contradiction', { outcome, fence: request.fence });
    return answered(null, row, time, { settled: false, fenced: false }, contradiction);
  }
  if (row.status !== 'unknown') return answered(null, row, time, { settled: false, fenced: false });
  // Only where no earlier attempt is unaccounted for does this attempt's ending speak for the record.
  if (row.doubtFence !== row.fence) return answered(told, since, time, { settled: true, fenced: false });
  const accounted = { ...row, doubtFence: null };
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

  // No attempt was ever made under a link.
  if (row === undefined || row.generation !== generation || row.movedTo !== null) {
    // A refusal that outlived its record tells nobody anything; a success does.
    return answered(null, row, time, fenced, outcome === 'succeeded' ? told('lateNews') : undefined);
  }
  if (row.news?.token === request.token) return answered(null, row, time, fenced);
  if (outcome !== 'succeeded') {
    // It could send until now, whoever asked meanwhile: as long as nobody has accounted for it, "not landed" waits anew.
    const since = request.late && isUnaccounted(row, fence) ? extendInFlight(row, request, time) : null;
    // One that only says that it still runs has no ending to tell.
    return answered(since, since ?? row, time, fenced, request.error === null ? undefined : told('fenced'));
  }

  if (row.status === 'failed') return answered(null, row, time, fenced, told('contradiction'));
  const isKnown = row.status === 'succeeded' || row.news !== null;
  if (request.found && isKnown) return answered(null, row, time, fenced, told('fenced'));
  if (isOther(row.news) || (row.news === null && row.status === 'succeeded' && row.dispatched)) {
    const sameEffect = isSameEffect(row, request, row.news?.fence ?? row.fence);
    return answered(null, row, time, fenced, told(sameEffect ? 'fenced' : 'duplicate'));
  }
  const news: News = { token: request.token, fence, found: request.found, result: request.result ?? noValue };
  if (row.status === 'unknown' || row.status === 'released' || isLapsed(row, time)) {
    const landed = applyLateSuccess(row, news, time);
    return answered(landed, landed, time, { settled: true, fenced: true }, told('lateNews'));
  }
  // Beside a running attempt it waits for that one's end. Beside a success that a verifier or a person found, it
  // tells whose that was: the first to report is no second effect, the next would be.
  const informed: Row = row.status === 'running' ? { ...row, news, updatedAt: time.wall } : { ...row, news };
  return answered(informed, informed, time, fenced, told('lateNews'));
}

/** The record is in doubt about this attempt, or about an earlier one too. */
function isUnaccounted({ status, doubtFence }: Row, fence: number): boolean {
  return (status === 'unknown' || status === 'running') && doubtFence !== null && doubtFence <= fence;
}

/** The holder did it itself; a verifier or somebody who never crossed the line only tells of it. */
function isOwnDoing(row: Row, { found }: SettleRequest): boolean {
  return row.dispatched && !found;
}

/** Another attempt has reported that it did it. */
function isOther(news: News | null): news is News {
  return news !== null && !news.found;
}

/** The target honours keys and saw one from both attempts, so it did one thing. */
function isSameEffect(row: Row, { fence, keyed }: SettleRequest, otherFence: number): boolean {
  return keyed && Math.min(fence, otherFence) >= row.providerKeyFence;
}

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
    events: noted === undefined ? noEvents : [noted],
  };
}
