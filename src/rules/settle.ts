// How the ending of an attempt changes the record. The holder decides; while earlier attempts are in doubt, its `failed`
// or `released` covers only its own attempt and the record stays `unknown`. What a fenced attempt reports is kept as
// evidence, and its success is never wasted.

import { isRepeatable } from '../core/contract/words.ts';
import {
  applyLateSuccess,
  extendInFlight,
  fail,
  leaveInDoubt,
  noValue,
  release,
  succeed,
} from './endings.ts';
import { isHolder, noFence } from './holder.ts';
import type { News, Row, StoredResult, StoreEvent } from './record.ts';
import type { SettleAnswer, SettleRequest } from './requests.ts';
import { event, isLapsed, noEvents, type Step, type Time, view } from './state.ts';

export function settle(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  if (isHolder(row, request)) return settleHeld(row, request, time);
  if (row !== undefined && isEnded(row, request)) return settleAgain(row, request, time);
  return settleFenced(row, request, time);
}

/** The record already shows how this claim ended. */
function isEnded(row: Row, { token, generation }: SettleRequest): boolean {
  const isSameGeneration = generation === row.generation || generation === noFence;
  return row.token === token && isSameGeneration && row.status !== 'running';
}

function settleHeld(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { news } = row;
  if (request.outcome === 'succeeded') {
    const isOwn = isOwnEffect(row, request);
    const isDuplicate = isOwn && isDoneByOther(news) && !isSameEffect(row, request, news.fence);
    const duplicate = isDuplicate ? event(row, time, 'duplicate', { fence: news.fence }) : undefined;
    return settled(succeed(explain(row, isOwn), withNote(row, request), time), time, duplicate);
  }
  if (news !== null) {
    const landed = applyLateSuccess(row, news, time);
    return settled(
      landed,
      time,
      event(landed, time, 'lateNews', { fence: news.fence, instead: request.outcome }),
    );
  }
  if (row.doubtFence !== null || request.outcome === 'unknown')
    return settled(leaveInDoubt(withoutKey(row, request), request, time), time);
  return settled(request.outcome === 'failed' ? fail(row, request, time) : release(row, request, time), time);
}

/** Whose effect it was, by a success that is reported as the attempt's own, or was found. */
function explain(row: Row, isOwn: boolean): Row {
  // What it found may be the effect of an earlier attempt, whose late report is not a second effect.
  if (!isOwn) return { ...row, dispatched: false };
  // What a verifier found meanwhile was this effect.
  return row.news?.found ? { ...row, news: null } : row;
}

/** What may have landed without a key is not known to the provider: its repeat would be a second effect. */
function withoutKey(row: Row, { outcome, keyed }: SettleRequest): Row {
  return outcome === 'unknown' && !keyed && row.keyed ? { ...row, keyed: false } : row;
}

function withNote({ notes, result: noted }: Row, { result, keepNote }: SettleRequest): StoredResult | null {
  const remoteRef = notes > 0 ? noted?.remoteRef : undefined;
  if (keepNote !== true || remoteRef == null || result?.remoteRef != null) return result;
  return { ...(result ?? noValue), remoteRef };
}

/** The same token again: its reply was lost, or it knows more now. */
function settleAgain(row: Row, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { outcome } = request;
  // The attempt ended later than recorded, so requests may be in flight from now on.
  const known = row.status === 'unknown' ? withoutKey(row, request) : row;
  const extended = request.late && row.status === 'unknown' ? extendInFlight(known, request, time) : known;
  const write = extended === row ? null : extended;
  if (row.status === outcome) return answered(write, extended, time, { settled: true, fenced: false });
  const isOpen = row.status === 'unknown' || row.status === 'released';
  if (outcome === 'succeeded' && isOpen) return settled(succeed(row, request.result, time), time);
  if (outcome === 'succeeded' && row.status === 'failed') {
    const contradiction = event(row, time, 'contradiction', { outcome, fence: request.fence });
    return answered(null, row, time, { settled: false, fenced: false }, contradiction);
  }
  if (row.status !== 'unknown') return answered(null, row, time, { settled: false, fenced: false });
  // The ending of this attempt decides the record only if no earlier attempt is in doubt; what it noted did not land.
  if (row.doubtFence !== row.fence) {
    const noted = request.result === null ? write : { ...extended, result: request.result };
    return answered(noted, noted ?? row, time, { settled: true, fenced: false });
  }
  const accounted = { ...row, doubtFence: null };
  return settled(
    outcome === 'failed' ? fail(accounted, request, time) : release(accounted, request, time),
    time,
  );
}

/** The attempt was taken over, or its record was resolved or pruned. */
function settleFenced(row: Row | undefined, request: SettleRequest, time: Time): Step<SettleAnswer> {
  const { namespace, key, generation, fence, outcome } = request;
  const detail = { outcome, fence, error: request.error?.message ?? null };
  const noted = (type: StoreEvent['type']): StoreEvent => ({
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
    // Without the record, only a success is worth an event.
    return answered(null, row, time, fenced, outcome === 'succeeded' ? noted('lateNews') : undefined);
  }
  if (row.news?.token === request.token) return answered(null, row, time, fenced);
  if (outcome !== 'succeeded') {
    // It could send until now, so while it is not accounted for, its requests may be in flight from now on.
    const known = isUnaccounted(row, fence) ? withoutKey(row, request) : row;
    const extended = request.late && isUnaccounted(row, fence) ? extendInFlight(known, request, time) : known;
    const write = extended === row ? null : extended;
    // Without an error it only reports that it still runs.
    return answered(write, write ?? row, time, fenced, request.error === null ? undefined : noted('fenced'));
  }

  if (row.status === 'failed') return answered(null, row, time, fenced, noted('contradiction'));
  const isKnown = row.status === 'succeeded' || row.news !== null;
  if (request.found && isKnown) return answered(null, row, time, fenced, noted('fenced'));
  if (isDoneByOther(row.news) || (row.news === null && row.status === 'succeeded' && row.dispatched)) {
    const sameEffect = isSameEffect(row, request, row.news?.fence ?? row.fence);
    return answered(null, row, time, fenced, noted(sameEffect ? 'fenced' : 'duplicate'));
  }
  if (isOtherWrite(row, fence, time)) return answered(null, row, time, fenced, noted('fenced'));
  const news: News = { token: request.token, fence, found: request.found, result: request.result ?? noValue };
  if (row.status === 'unknown' || row.status === 'released' || isLapsed(row, time)) {
    const landed = applyLateSuccess(row, news, time);
    return answered(landed, landed, time, { settled: true, fenced: true }, noted('lateNews'));
  }
  // While another attempt runs, the success waits for its end. After a success that a verifier or a person found, it says
  // whose effect that was: the first report is not a second effect, the next would be.
  const informed: Row = row.status === 'running' ? { ...row, news, updatedAt: time.wall } : { ...row, news };
  return answered(informed, informed, time, fenced, noted('lateNews'));
}

/**
 * A repeatable write that runs now is other work, which the success of an earlier one does not replace; and one with other content,
 * which got a provider key of its own, stays other work when it is over.
 */
function isOtherWrite(row: Row, fence: number, time: Time): boolean {
  if (!isRepeatable(row.effect)) return false;
  return (row.status === 'running' && !isLapsed(row, time)) || fence < row.providerKeyFence;
}

/** The record is in doubt about this attempt, and perhaps about earlier ones. */
function isUnaccounted({ status, doubtFence }: Row, fence: number): boolean {
  return (status === 'unknown' || status === 'running') && doubtFence !== null && doubtFence <= fence;
}

/** The attempt did it itself, instead of finding that it had been done. */
function isOwnEffect(row: Row, { found }: SettleRequest): boolean {
  return row.dispatched && !found;
}

/** Another attempt has reported that it did it. */
function isDoneByOther(news: News | null): news is News {
  return news !== null && !news.found;
}

/** The target honours keys and got the same one from both attempts, so there is one effect. */
function isSameEffect(row: Row, { fence, keyed }: SettleRequest, otherFence: number): boolean {
  return keyed && Math.min(fence, otherFence) >= row.providerKeyFence;
}

function settled(row: Row, time: Time, noted?: StoreEvent): Step<SettleAnswer> {
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
