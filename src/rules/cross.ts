// What only the holder of the token may do while its attempt runs: renew the lease, cross the line, and clear
// the doubt of earlier attempts after a verdict. Each acts iff the token is the record's and says so if not.

import { markDispatched } from './claim.ts';
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

/** Allowed after the lease is over, as long as nobody took the key: the claim is still the last one. */
export function renew(row: Row | undefined, request: RenewRequest, time: Time): Step<RenewAnswer> {
  if (!isHolder(row, request)) return unchanged({ held: false, record: row && view(row, time) });
  const renewed: Row = {
    ...row,
    leaseBoot: time.boot,
    leaseUntil: time.mono + request.leaseMs,
    // Until this lease is over, it may send.
    inFlightUntil: row.dispatched
      ? inFlightEnd(request.leaseMs + row.networkMs, row.inFlightUntil, time)
      : row.inFlightUntil,
    updatedAt: time.wall,
  };
  // Whoever looked at it while it was lapsed saw an attempt that had stopped sending. It goes on, so what they
  // concluded must no longer match.
  const resumed: Row =
    row.dispatched && isLapsed(row, time) ? markDispatched(renewed, request.inFlightForMs, time) : renewed;
  return { row: resumed, answer: { held: true, record: view(resumed, time) }, events: [] };
}

/** Crosses the line; repeated before every further try, so that a provider's window is judged each time. */
export function dispatch(row: Row | undefined, request: DispatchRequest, time: Time): Step<CrossAnswer> {
  const refusal = mayCross(row, request, time);
  if (row === undefined || refusal !== undefined) return refuse(refusal ?? 'fenced', row, time);
  if (!isWithinWindow(row, request.rerunWithinMs, time)) return refuse('window', row, time);
  // From now on no key speaks for all that may have landed.
  const keyed = row.keyed && request.keyed;
  const sent = markDispatched(
    { ...row, keyed, prepared: row.prepared ?? request.prepared },
    request.inFlightForMs,
    time,
  );
  return { row: sent, answer: { ok: true, record: view(sent, time) }, events: [] };
}

/** "Not landed" speaks for every attempt before this claim, and the same claim goes on, with no release in between. */
export function clear(row: Row | undefined, request: ClearRequest, time: Time): Step<CrossAnswer> {
  const refusal = mayCross(row, request, time);
  if (row === undefined || refusal !== undefined) return refuse(refusal ?? 'fenced', row, time);
  if (row.doubtFence === null) return already(row, request, time);
  // Whoever looked before it was quiet may have missed what landed since, however late the verdict arrives.
  const lookedAt = { ...time, wall: Math.min(time.wall, request.seenAt) };
  if (inFlightMs(row, lookedAt) > 0) return refuse('early', row, time);
  // Within the provider's window the old key still protects against an older request that lands after all.
  const newKey = request.freshKey || !isWithinWindow(row, request.rerunWithinMs, time);
  const cleared: Row = {
    ...row,
    providerKeyFence: newKey ? row.fence : row.providerKeyFence,
    // What went without a key is accounted for; only a contract that sends one judges by a window.
    keyed: row.keyed || request.rerunWithinMs !== null,
    doubtFence: null,
    firstDispatchedAt: null,
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

/** A lost reply is asked again: a claim that took a doubt has none only if it was cleared. */
function already(row: Row, request: ClearRequest, time: Time): Step<CrossAnswer> {
  if (row.dispatched || !request.crossing) return unchanged({ ok: true, record: view(row, time) });
  const sent = markDispatched(row, request.inFlightForMs, time);
  return { row: sent, answer: { ok: true, record: view(sent, time) }, events: [] };
}

/**
 * The fence tells a claim from a late copy of it, which may have taken the key once more under the same token when
 * the record was gone. Whoever never heard of their claim has none to tell.
 */
export function isHolder(row: Row | undefined, held: Held): row is Row & { readonly status: 'running' } {
  if (row === undefined || row.status !== 'running' || row.token !== held.token) return false;
  return held.fence === row.fence || held.fence === noFence;
}

/** The fence and generation of a claim whose answer never came. */
export const noFence = 0;

function mayCross(row: Row | undefined, held: Held, time: Time): Refusal | undefined {
  if (!isHolder(row, held)) return 'fenced';
  if (row.news !== null) return 'landed';
  if (isLapsed(row, time)) return 'lapsed';
  return undefined;
}

function refuse(why: Refusal, row: Row | undefined, time: Time): Step<CrossAnswer> {
  return unchanged({ ok: false, why, record: row && view(row, time) });
}
