// Who may act on a key. Wins, or changes nothing and tells whom it lost to. Two exceptions: a record whose
// attempts keep dying before the line is closed as poisoned, so that it stops killing workers; and one whose
// holder lapsed with another attempt's success on file is settled with it.

import { majorVersion } from '../core/contract/contract.ts';
import { isRepeatable, stricter } from '../core/contract/words.ts';
import { applyLateSuccess } from './endings.ts';
import type { News, Row, StoreEvent } from './record.ts';
import type { Asking, ClaimAnswer, ClaimRequest, Loss } from './requests.ts';
import {
  canAnswer,
  event,
  inFlightEnd,
  isExpired,
  isFree,
  isInDoubt,
  isLapsed,
  isWithinWindow,
  noEvents,
  noInstant,
  type Step,
  type Time,
  unchanged,
  view,
} from './state.ts';

/**
 * Which form of the key a claim acts on. Under any earlier form of the contract there may be a live record of
 * the same intent: one that is not free decides; a free one is imported on; else the present form is used.
 */
export function chooseForm(rows: readonly (Row | undefined)[], time: Time): number {
  const isLive = (row: Row | undefined): row is Row => row !== undefined && !isExpired(row, time);
  const decided = rows.findIndex((row) => isLive(row) && !isFree(row, time));
  if (decided >= 0) return decided;
  return Math.max(0, rows.findIndex(isLive));
}

/** `floor` is the highest fence that pruning ever removed. */
export function claim(
  row: Row | undefined,
  request: ClaimRequest,
  time: Time,
  floor: number,
): Step<ClaimAnswer> {
  if (isMeant(row, request) && row.token === request.token) return repeated(row, time);
  if (isTaken(row, request, time)) {
    if (!mayTakeDoubt(row, request, time)) return lose(row, time);
    return win({ ...next(row, request, time), doubtFence: row.doubtFence ?? row.fence }, time, row, request);
  }
  if (row === undefined) return win(fresh(request, floor + 1, time), time);
  if (isExpired(row, time)) return win(fresh(request, Math.max(floor, row.fence) + 1, time), time);
  if (row.news !== null && isLapsed(row, time)) return landed(row, row.news, time);
  // What comes from another ledger takes a free record's place; a doubt that is kept here stays with its record.
  const isElse = !isSameIntent(row, request);
  if (isElse || (request.imported !== undefined && row.doubtFence === null))
    return win(fresh(request, row.fence + 1, time), time);
  const lapsed = isLapsed(row, time);
  if (lapsed && row.crashes + 1 >= request.maxCrashes) return poison(row, time);
  // Whatever was dispatched before did not land, or its repetition was accepted: the provider's window starts anew.
  const restarted = { ...row, firstDispatchedAt: null, crashes: lapsed ? row.crashes + 1 : 0 };
  return win(next(restarted, request, time), time, lapsed ? row : undefined, request);
}

/** What whoever comes to execute would lose to, without changing anything; undefined: a claim would change something. */
export function findLoss(row: Row | undefined, asking: Asking, time: Time): Loss | undefined {
  return isTaken(row, asking, time) ? { won: false, record: row && view(row, time) } : undefined;
}

/** Nobody may execute it now. Whoever came for one generation may act on no other. */
function isTaken(row: Row | undefined, asking: Asking, time: Time): boolean {
  const isWaiter = asking.generation !== null;
  if (!isMeant(row, asking) || isExpired(row, time)) return isWaiter;
  if (row.news !== null && isLapsed(row, time)) return false;
  if (!isFree(row, time)) return true;
  // With doubt kept, another intent may not wipe it out; nor may whoever came for this generation start another.
  return !isSameIntent(row, asking) && (row.doubtFence !== null || isWaiter);
}

/** The same wish of the same caller. Another caller is given nothing of it: neither args nor what was prepared. */
function isSameIntent(row: Row, asking: Asking): boolean {
  return row.fingerprint === asking.fingerprint && canAnswer(row, asking);
}

function isMeant(row: Row | undefined, { generation }: Asking): row is Row {
  return row !== undefined && (generation === null || row.generation === generation);
}

function mayTakeDoubt(row: Row | undefined, request: ClaimRequest, time: Time): row is Row {
  if (!isMeant(row, request) || !isSameIntent(row, request) || !isInDoubt(row, time)) return false;
  if (request.for === 'verify') return true;
  return request.for === 'rerun' && isWithinWindow(row, request.rerunWithinMs, time);
}

/** A lost reply is asked again and answers "yours"; a token that was closed claims nothing more. */
function repeated(row: Row, time: Time): Step<ClaimAnswer> {
  if (row.status !== 'running') return lose(row, time);
  return unchanged({ won: true, record: view(row, time), takeover: false });
}

function lose(row: Row | undefined, time: Time): Step<ClaimAnswer> {
  return unchanged({ won: false, record: row && view(row, time) });
}

function win(row: Row, time: Time, over?: Row, request?: ClaimRequest): Step<ClaimAnswer> {
  const held =
    request !== undefined && dispatchesAtClaim(request)
      ? markDispatched(row, request.inFlightForMs, time)
      : row;
  const events =
    over === undefined
      ? noEvents
      : [
          event(held, time, 'takeover', {
            from: over.owner,
            fence: over.fence,
            dispatched: over.dispatched,
            // Else it had reported its end: whoever was alive then had not lost its lease.
            lapsed: over.status === 'running',
            for: request?.for,
            ...(request === undefined ? {} : termsOf(held, request)),
          }),
        ];
  return { row: held, answer: { won: true, record: view(held, time), takeover: over !== undefined }, events };
}

/** By which right a doubt was taken, for whoever asks later: only the contract knew, and records do not keep it. */
function termsOf({ effect }: Row, request: ClaimRequest): StoreEvent['detail'] {
  const { rerunWithinMs, retention } = request;
  if (rerunWithinMs !== null) return { rerunWithinMs, windowMs: retention.windowMs };
  return request.for === 'rerun' && !isRepeatable(effect) ? { accepted: true } : {};
}

/** Taking over would repeat what is known to have landed. */
function landed(row: Row, news: News, time: Time): Step<ClaimAnswer> {
  const settled = applyLateSuccess(row, news, time);
  return {
    row: settled,
    answer: { won: false, record: view(settled, time) },
    events: [event(settled, time, 'lateNews', { fence: news.fence, instead: 'lapsed' })],
  };
}

function poison(row: Row, time: Time): Step<ClaimAnswer> {
  const crashes = row.crashes + 1;
  const poisoned: Row = {
    ...row,
    status: 'failed',
    fence: row.fence + 1,
    token: '',
    leaseBoot: null,
    leaseUntil: null,
    crashes,
    error: {
      code: 'POISON',
      message: `${crashes} attempts died before they dispatched anything.`,
      retriable: false,
    },
    settledAt: time.wall,
    updatedAt: time.wall,
    expiresAt: row.retention && time.wall + row.retention.failureWindowMs,
  };
  return {
    row: poisoned,
    answer: { won: false, record: view(poisoned, time) },
    events: [event(poisoned, time, 'poisoned', { crashes })],
  };
}

/** A first claim: a new generation, named by its fence. */
function fresh(request: ClaimRequest, lowest: number, time: Time): Row {
  const { imported } = request;
  const fence = Math.max(lowest, (imported?.fence ?? 0) + 1);
  const row: Draft = {
    namespace: request.namespace,
    key: request.key,
    generation: fence,
    fence,
    providerKeyFence: imported?.providerKeyFence ?? fence,
    token: request.token,
    status: 'running',
    doubtFence: null,
    dispatched: false,
    attempts: 1,
    crashes: 0,
    version: request.version,
    effect: request.effect,
    keyed: request.keyed,
    fingerprint: request.fingerprint,
    owner: request.owner,
    leaseBoot: time.boot,
    leaseUntil: time.mono + request.leaseMs,
    retention: request.retention,
    args: request.args,
    prepared: imported?.prepared ?? null,
    content: request.content,
    result: null,
    error: null,
    news: null,
    createdAt: time.wall,
    updatedAt: time.wall,
    settledAt: null,
    expiresAt: null,
    firstDispatchedAt: imported?.firstDispatchedAt ?? null,
    lastDispatchedAt: null,
    inFlightUntil: null,
    networkMs: request.networkMs,
    notAfter: request.notAfter,
    conversation: request.conversation,
    turn: request.turn,
    toolCallId: request.toolCallId,
    run: request.run,
    again: request.again,
    caller: request.caller,
    movedTo: null,
  };
  if (dispatchesAtClaim(request)) cross(row, request.inFlightForMs, time);
  if (imported != null) row.lastDispatchedAt = imported.lastDispatchedAt ?? row.lastDispatchedAt;
  return row;
}

/** A later claim of the same generation. */
function next(row: Row, request: ClaimRequest, time: Time): Row {
  // A target that honours our key compares the request too: what it may have seen must be sent again as it was.
  // And what was prepared stays with the words from which it was, and a question with what it is about.
  const isKeptWhole = row.keyed || row.prepared !== null || request.for === 'verify';
  // Code of another major version sends its own words. Nothing has landed under the key of a free record, so there it gets
  // a fresh one: under the old one a provider would refuse other words.
  const isOtherCode = request.for !== 'verify' && majorVersion(row.version) !== majorVersion(request.version);
  const keepsFirstWording = row.lastDispatchedAt !== null && isKeptWhole && !isOtherCode;
  const fence = row.fence + 1;
  return {
    ...row,
    fence,
    providerKeyFence:
      isOtherCode && row.doubtFence === null && !isInDoubt(row, time) ? fence : row.providerKeyFence,
    prepared: isOtherCode ? null : row.prepared,
    token: request.token,
    status: 'running',
    dispatched: false,
    attempts: row.attempts + 1,
    // Of the code whose words are kept.
    version: keepsFirstWording ? row.version : request.version,
    // A contract that was loosened meanwhile does not loosen what is open.
    effect: stricter(row.effect, request.effect),
    // A contract that sends a key now does not cover a request that went without one.
    keyed: request.keyed && (row.keyed || row.firstDispatchedAt === null),
    owner: request.owner,
    leaseBoot: time.boot,
    leaseUntil: time.mono + request.leaseMs,
    retention: request.retention,
    args: keepsFirstWording ? row.args : request.args,
    content: keepsFirstWording ? row.content : request.content,
    updatedAt: time.wall,
    settledAt: null,
    expiresAt: null,
    networkMs: request.networkMs,
    // Whoever only asks may do so later; it does not lift the limit.
    notAfter: request.for === 'verify' ? row.notAfter : request.notAfter,
    conversation: request.conversation,
    turn: request.turn,
    toolCallId: request.toolCallId,
    run: request.run,
    caller: request.caller,
  };
}

function dispatchesAtClaim(request: ClaimRequest): boolean {
  return request.crossing && request.for !== 'verify';
}

/** The attempt has crossed the line: from now on its effect may land. */
export function markDispatched(row: Row, inFlightForMs: number, time: Time): Row {
  const after = { ...row };
  cross(after, inFlightForMs, time);
  return after;
}

/** A row that nobody else has seen yet. */
type Draft = { -readonly [Field in keyof Row]: Row[Field] };

function cross(row: Draft, inFlightForMs: number, time: Time): void {
  row.dispatched = true;
  row.firstDispatchedAt ??= time.steady ? time.wall : noInstant;
  row.lastDispatchedAt = time.wall;
  row.inFlightUntil = inFlightEnd(inFlightForMs, row.inFlightUntil, time);
  row.updatedAt = time.wall;
}
