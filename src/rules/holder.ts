// What only the holder of the claim may do while its attempt runs: renew the lease, mark the attempt dispatched, and
// clear the doubt about earlier attempts after a verdict. Each is refused unless the token is the record's own.

import { markDispatched } from './claim.ts';
import { unconfirmed } from './endings.ts';
import type { Row } from './record.ts';
import type {
  ClearRequest,
  CrossAnswer,
  DispatchRequest,
  Held,
  Refusal,
  RenewAnswer,
  RenewRequest,
} from './requests.ts';
import {
  event,
  inFlightEnd,
  inFlightMs,
  isLapsed,
  isWithinWindow,
  type Step,
  type Time,
  unchanged,
  view,
} from './state.ts';

/** Allowed after the lease is over, as long as nobody has taken over. Also stores the id that the attempt noted. */
export function renew(row: Row | undefined, request: RenewRequest, time: Time): Step<RenewAnswer> {
  if (!isHolder(row, request)) return unchanged({ held: false, record: row && view(row, time) });
  const { note } = request;
  const isNews = note !== undefined && note.nth > row.notes;
  const renewed: Row = {
    ...row,
    result: isNews ? unconfirmed(note.remoteRef) : row.result,
    notes: isNews ? note.nth : row.notes,
    leaseBoot: time.boot,
    leaseUntil: time.mono + request.leaseMs,
    // The attempt may send until this lease is over.
    inFlightUntil: row.dispatched
      ? inFlightEnd(request.leaseMs + row.networkMs, row.inFlightUntil, time)
      : row.inFlightUntil,
    updatedAt: time.wall,
  };
  // Anyone who read the record while it was lapsed saw an attempt that had stopped sending. It continues, so a verdict
  // based on that read must no longer match.
  const resumed: Row =
    row.dispatched && isLapsed(row, time) ? markDispatched(renewed, request.inFlightForMs, time) : renewed;
  return { row: resumed, answer: { held: true, record: view(resumed, time) }, events: [] };
}

/** Repeated before every further try, so that the provider's window is checked each time. */
export function dispatch(row: Row | undefined, request: DispatchRequest, time: Time): Step<CrossAnswer> {
  const refusal = findRefusal(row, request, time);
  if (row === undefined || refusal !== undefined) return refuse(refusal ?? 'fenced', row, time);
  if (!isWithinWindow(row, request.rerunWithinMs, time)) return refuse('window', row, time);
  // One dispatch without a key, and the provider's key no longer covers everything that may have landed.
  const keyed = row.keyed && request.keyed;
  const sent = markDispatched(
    { ...row, keyed, prepared: row.prepared ?? request.prepared },
    request.inFlightForMs,
    time,
  );
  return { row: sent, answer: { ok: true, record: view(sent, time) }, events: [] };
}

/** "Not landed" covers every attempt before this claim. The same claim continues, without a release in between. */
export function clear(row: Row | undefined, request: ClearRequest, time: Time): Step<CrossAnswer> {
  const refusal = findRefusal(row, request, time);
  if (row === undefined || refusal !== undefined) return refuse(refusal ?? 'fenced', row, time);
  if (row.doubtFence === null) return repeatClear(row, request, time);
  // A look while requests were still in flight may have missed what landed since, however late the verdict arrives.
  const lookedAt = { ...time, wall: Math.min(time.wall, request.seenAt) };
  if (inFlightMs(row, lookedAt) > 0) return refuse('early', row, time);
  // Within the provider's window the old key still protects against an older request that lands late.
  const newKey = request.freshKey || !isWithinWindow(row, request.rerunWithinMs, time);
  const cleared: Row = {
    ...row,
    providerKeyFence: newKey ? row.fence : row.providerKeyFence,
    // Requests sent without a key are accounted for now; only a contract that sends keys has a window.
    keyed: row.keyed || request.rerunWithinMs !== null,
    doubtFence: null,
    firstDispatchedAt: null,
    // The id that an earlier attempt noted says nothing about this one.
    result: null,
    updatedAt: time.wall,
  };
  const result = request.crossing ? markDispatched(cleared, request.inFlightForMs, time) : cleared;
  return {
    row: result,
    answer: { ok: true, record: view(result, time) },
    events: [
      event(result, time, 'cleared', { doubtFence: row.doubtFence, dispatchedAt: row.lastDispatchedAt }),
    ],
  };
}

/** A repeat after a lost reply: a claim that took over a doubt has none only once it was cleared. */
function repeatClear(row: Row, request: ClearRequest, time: Time): Step<CrossAnswer> {
  if (row.dispatched || !request.crossing) return unchanged({ ok: true, record: view(row, time) });
  const sent = markDispatched(row, request.inFlightForMs, time);
  return { row: sent, answer: { ok: true, record: view(sent, time) }, events: [] };
}

/**
 * The fence distinguishes a claim from a late copy of it, which may have taken the key again under the same token after
 * the record was pruned. A worker that never got the answer to its claim has no fence to show.
 */
export function isHolder(row: Row | undefined, held: Held): row is Row & { readonly status: 'running' } {
  if (row === undefined || row.status !== 'running' || row.token !== held.token) return false;
  return held.fence === row.fence || held.fence === noFence;
}

/** The fence and generation of a claim whose answer was lost. */
export const noFence = 0;

function findRefusal(row: Row | undefined, held: Held, time: Time): Refusal | undefined {
  if (!isHolder(row, held)) return 'fenced';
  if (row.news !== null) return 'landed';
  if (isLapsed(row, time)) return 'lapsed';
  return undefined;
}

function refuse(why: Refusal, row: Row | undefined, time: Time): Step<CrossAnswer> {
  return unchanged({ ok: false, why, record: row && view(row, time) });
}
