// Decides who may act on a key. A claim wins, or changes nothing and returns the record it lost to. Two losing claims
// do write: one poisons a record whose attempts keep crashing before dispatch, so that it stops killing workers; the
// other settles a lapsed record with the late success that another attempt reported.

import { mayContinue, sentBy } from '../core/contract/version.ts';
import { isRepeatable, stricter } from '../core/contract/words.ts';
import { isSameContent } from '../core/key/identity.ts';
import { applyLateSuccess } from './endings.ts';
import type { DraftRow, News, Row, StoreEvent } from './record.ts';
import type { Asking, ClaimAnswer, ClaimRequest, Loss } from './requests.ts';
import {
  answersStaged,
  event,
  inFlightEnd,
  isExpired,
  isFree,
  isInDoubt,
  isLapsed,
  isSameIntent,
  isWithinWindow,
  noEvents,
  noInstant,
  type Step,
  type Time,
  unchanged,
  view,
} from './state.ts';

/**
 * Chooses the form of the key that a claim acts on. Any earlier form of the contract may have a live record of the same
 * intent: one that is not free decides; otherwise the first free one continues; otherwise the current form is used.
 */
export function chooseForm(rows: readonly (Row | undefined)[], asking: Asking, time: Time): number {
  const isLive = (row: Row | undefined): row is Row => row !== undefined && !isOver(row, asking, time);
  const taken = rows.findIndex((row) => isLive(row) && !isFree(row, time));
  if (taken >= 0) return taken;
  return Math.max(0, rows.findIndex(isLive));
}

/** `floor` is the highest fence that pruning has removed. */
export function claim(
  row: Row | undefined,
  request: ClaimRequest,
  time: Time,
  floor: number,
): Step<ClaimAnswer> {
  if (isTarget(row, request) && isRepeated(row, request)) return repeatClaim(row, time);
  if (isTaken(row, request, time)) {
    if (!canTakeDoubt(row, request, time)) return lose(row, time);
    const taken = { ...reclaim(row, request, time), doubtFence: row.doubtFence ?? row.fence };
    return win(taken, time, row, request);
  }
  if (row === undefined) return win(newRecord(request, floor + 1, time), time);
  if (isExpired(row, time)) return win(newRecord(request, Math.max(floor, row.fence) + 1, time), time);
  if (row.news !== null && isLapsed(row, time)) return settleLanded(row, row.news, time);
  // An imported record replaces a free one, but never one that is still in doubt here.
  if (!isSameIntent(row, request) || (request.imported !== undefined && row.doubtFence === null))
    return win(newRecord(request, row.fence + 1, time), time);
  const lapsed = isLapsed(row, time);
  const crashes = countCrashes(row, lapsed);
  if (crashes >= request.maxCrashes) return poison(row, crashes, time);
  // Earlier dispatches did not land, or a repeat was accepted: the provider's window restarts, and the id that they noted says
  // nothing about what is sent from now on.
  const restarted = { ...row, firstDispatchedAt: null, result: null, crashes };
  return win(reclaim(restarted, request, time), time, lapsed ? row : undefined, request);
}

/** What a claim to execute would lose to. Undefined: the claim would change something. */
export function findLoss(row: Row | undefined, asking: Asking, time: Time): Loss | undefined {
  return isTaken(row, asking, time) ? { won: false, record: row && view(row, time) } : undefined;
}

/** Says nothing about this intent any more. */
function isOver(row: Row, asking: Asking, time: Time): boolean {
  return isExpired(row, time) && !answersStaged(row, asking);
}

/** Nobody may execute it now. A waiter may act only on the generation it waited for. */
function isTaken(row: Row | undefined, asking: Asking, time: Time): boolean {
  const isWaiter = asking.generation !== null;
  if (!isTarget(row, asking) || isOver(row, asking, time)) return isWaiter;
  if (row.news !== null && isLapsed(row, time)) return false;
  if (!isFree(row, time)) return true;
  // Another intent must not erase a doubt, and a waiter must not start another generation.
  return !isSameIntent(row, asking) && (row.doubtFence !== null || isWaiter);
}

/** The same token for another intent, or by another caller, is not the claim that was won with it. */
function isRepeated(row: Row, request: ClaimRequest): boolean {
  return row.token === request.token && isSameIntent(row, request);
}

function isTarget(row: Row | undefined, { generation }: Asking): row is Row {
  return row !== undefined && (generation === null || row.generation === generation);
}

function canTakeDoubt(row: Row | undefined, request: ClaimRequest, time: Time): row is Row {
  if (!isTarget(row, request) || !isSameIntent(row, request) || !isInDoubt(row, time)) return false;
  if (request.for === 'verify') return true;
  if (request.for !== 'rerun' || (request.rerunOf ?? row.fence) !== row.fence) return false;
  return isWithinWindow(row, request.rerunWithinMs, time);
}

/** Repeating a claim after a lost reply wins again; a token whose attempt has ended claims nothing more. */
function repeatClaim(row: Row, time: Time): Step<ClaimAnswer> {
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
            // False: that attempt had reported its end, so it did not lose its lease.
            lapsed: over.status === 'running',
            for: request?.for,
            ...(request === undefined ? {} : takeoverTerms(held, request)),
          }),
        ];
  return { row: held, answer: { won: true, record: view(held, time), takeover: over !== undefined }, events };
}

/** Why the doubt could be taken over. Kept in the history, because only the contract knows it and records do not. */
function takeoverTerms({ effect }: Row, request: ClaimRequest): StoreEvent['detail'] {
  const { rerunWithinMs, retention } = request;
  if (rerunWithinMs !== null) return { rerunWithinMs, windowMs: retention.windowMs };
  return request.for === 'rerun' && !isRepeatable(effect) ? { accepted: true } : {};
}

/** Taking over would repeat an effect that is known to have landed. */
function settleLanded(row: Row, news: News, time: Time): Step<ClaimAnswer> {
  const settled = applyLateSuccess(row, news, time);
  return {
    row: settled,
    answer: { won: false, record: view(settled, time) },
    events: [event(settled, time, 'lateNews', { fence: news.fence, instead: 'lapsed' })],
  };
}

/** In a row, and before dispatch. One that was found dead is counted already. */
function countCrashes({ crashes, error }: Row, lapsed: boolean): number {
  if (lapsed) return crashes + 1;
  return error?.code === 'DIED' ? crashes : 0;
}

function poison(row: Row, crashes: number, time: Time): Step<ClaimAnswer> {
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
function newRecord(request: ClaimRequest, lowest: number, time: Time): Row {
  const { imported } = request;
  const fence = Math.max(lowest, (imported?.fence ?? 0) + 1);
  const row: DraftRow = {
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
    notes: 0,
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
  if (dispatchesAtClaim(request)) setDispatched(row, request.inFlightForMs, time);
  if (imported != null) row.lastDispatchedAt = imported.lastDispatchedAt ?? row.lastDispatchedAt;
  return row;
}

/** A later claim of the same generation. */
function reclaim(row: Row, request: ClaimRequest, time: Time): Row {
  // A target that honours our key also compares the request, so what it may have seen is sent again unchanged. Prepared
  // output stays with the args it was made from, and a verification with the args it is about.
  // One try without our key does not undo that another one may have sent it.
  const maySendKey = row.keyed || request.keyed || request.maySendKey === true;
  const isWordingFixed = maySendKey || row.prepared !== null || request.for === 'verify';
  // Another major version of the code, or one with another provider, sends its own args. Nothing landed under the key of a
  // free record, so it gets a new provider key there: under the old one the provider would refuse different args.
  const isOtherCode = request.for !== 'verify' && !mayContinue(row.version, request.version);
  const isOtherWork = isOtherWrite(row, request);
  const isOther = isOtherCode || isOtherWork;
  const keepsFirstWording = row.lastDispatchedAt !== null && isWordingFixed && !isOther;
  const fence = row.fence + 1;
  const mayHaveLanded = row.doubtFence !== null || isInDoubt(row, time);
  return {
    ...row,
    fence,
    providerKeyFence: isOtherWork || (isOtherCode && !mayHaveLanded) ? fence : row.providerKeyFence,
    prepared: isOther ? null : row.prepared,
    token: request.token,
    status: 'running',
    dispatched: false,
    attempts: row.attempts + 1,
    // The version of the code whose args are kept, and the provider that may have seen them.
    version: keepsFirstWording ? sentBy(row.version, request.version) : request.version,
    // A contract that has been loosened since does not loosen an open record.
    effect: mayHaveLanded ? stricter(row.effect, request.effect) : request.effect,
    // A contract that sends a key now does not cover an earlier request without one.
    keyed: request.keyed && (row.keyed || row.firstDispatchedAt === null),
    owner: request.owner,
    leaseBoot: time.boot,
    leaseUntil: time.mono + request.leaseMs,
    retention: request.retention,
    args: keepsFirstWording ? row.args : request.args,
    content: keepsFirstWording ? row.content : request.content,
    notes: 0,
    updatedAt: time.wall,
    settledAt: null,
    expiresAt: null,
    networkMs: request.networkMs,
    // Verifying is allowed after the limit, but does not lift it.
    notAfter: request.for === 'verify' ? row.notAfter : request.notAfter,
    conversation: request.conversation,
    turn: request.turn,
    toolCallId: request.toolCallId,
    run: request.run,
    caller: request.caller,
  };
}

/** A repeatable write is made as its caller requested it: with other content it is other work, whatever happened to the first. */
function isOtherWrite(row: Row, request: ClaimRequest): boolean {
  if (request.for === 'verify' || !isRepeatable(request.effect)) return false;
  return !isSameContent(row.content, request.content);
}

function dispatchesAtClaim(request: ClaimRequest): boolean {
  return request.crossing && request.for !== 'verify';
}

/** From now on the attempt's effect may land. */
export function markDispatched(row: Row, inFlightForMs: number, time: Time): Row {
  const after = { ...row };
  setDispatched(after, inFlightForMs, time);
  return after;
}

function setDispatched(row: DraftRow, inFlightForMs: number, time: Time): void {
  row.dispatched = true;
  row.firstDispatchedAt ??= time.steady ? time.wall : noInstant;
  row.lastDispatchedAt = time.wall;
  row.inFlightUntil = inFlightEnd(inFlightForMs, row.inFlightUntil, time);
  row.updatedAt = time.wall;
}
