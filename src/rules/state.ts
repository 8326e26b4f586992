// What a record is at one moment (lapsed, in doubt, free, expired), and the view of it that leaves the store. All rules
// are written in these terms.

import { isRepeatable } from '../core/contract/words.ts';
import type { Row, StoredRecord, StoreEvent } from './record.ts';
import type { Asking } from './requests.ts';

/** The store's clock, read once per step, after the lock was taken. */
export interface Time {
  /** Wall clock, for windows and evidence. */
  readonly wall: number;
  /** Monotonic clock of this boot, for leases: changes of the wall clock do not move it. */
  readonly mono: number;
  /** A claim from another boot has lapsed: its processes are gone. */
  readonly boot: string;
  /** False while wall clock and uptime disagree: then nothing expires and no window counts. */
  readonly steady: boolean;
}

/** What a rule decides: the row to write (null: no change), the answer, and events for the history. */
export interface Step<Answer> {
  readonly row: Row | null;
  readonly answer: Answer;
  readonly events: readonly StoreEvent[];
}

export const noEvents: readonly StoreEvent[] = [];

export function isLapsed(row: Row, time: Time): boolean {
  return row.status === 'running' && leaseLeftMs(row, time) <= 0;
}

export function isInDoubt(row: Row, time: Time): boolean {
  return row.status === 'unknown' || (isLapsed(row, time) && (row.dispatched || row.doubtFence !== null));
}

/**
 * Anyone may run it. A released record is in doubt only if a person decided to run it again and accepted a possible
 * second effect: it is free for that intent, and keeps the doubt.
 */
export function isFree(row: Row, time: Time): boolean {
  return row.status === 'released' || (isLapsed(row, time) && !row.dispatched && row.doubtFence === null);
}

export function isSettled(row: Row): boolean {
  return row.status === 'succeeded' || row.status === 'failed';
}

/** A person expired it, whatever the clock says. */
export const expiredByHand = 0;

/** The record no longer answers for its key. A record that is running or in doubt never expires. */
export function isExpired(row: Row, time: Time): boolean {
  if (!isSettled(row) || isKept(row)) return false;
  return isOver(row.expiresAt, time) || hasNoWindow(row);
}

/**
 * A staged intent never outlives its record into a second run: what landed, or was given up, also answers after its window
 * for an intent that was staged before the window was over. Not once a person has forgotten it.
 */
export function answersStaged(row: Row, { stagedAt, ...asking }: StagedAsking): boolean {
  return stagedAt != null && isSameIntent(row, asking) && hasSettledStaged(row, stagedAt);
}

type StagedAsking = Pick<Asking, 'fingerprint' | 'caller' | 'share' | 'stagedAt'>;

/** The same for a row whose intent is known to be that of the record. */
export function hasSettledStaged(row: Ended & Pick<Row, 'expiresAt'>, stagedAt: number): boolean {
  return mayAnswerStaged(row) && (row.expiresAt === null || stagedAt < row.expiresAt);
}

type Ended = Pick<Row, 'status' | 'doubtFence' | 'effect'>;

/** It landed, or may have landed; a repeatable write is one of its own each time. */
export function mayAnswerStaged({ status, doubtFence, effect }: Ended): boolean {
  return (status === 'succeeded' || (status === 'failed' && doubtFence !== null)) && !isRepeatable(effect);
}

/** It never answered for its key, so the clock does not matter: the call always runs. */
function hasNoWindow({ settledAt, expiresAt }: Row): boolean {
  return expiresAt !== null && settledAt !== null && expiresAt <= settledAt;
}

export function isOver(expiresAt: number | null, time: Time): boolean {
  if (expiresAt === null) return false;
  return expiresAt === expiredByHand || (time.steady && expiresAt <= time.wall);
}

/**
 * `per: 'ever'`: the key stays for good, whatever happens to the result. A refusal expires; an abandoned record may have
 * landed, so it stays.
 */
export function isKept(row: Pick<Row, 'retention' | 'status' | 'doubtFence'>): boolean {
  return row.retention?.keep === true && !(row.status === 'failed' && row.doubtFence === null);
}

export function leaseLeftMs(row: Row, time: Time): number {
  if (row.status !== 'running' || row.leaseUntil === null || row.leaseBoot !== time.boot) return 0;
  return Math.max(0, row.leaseUntil - time.mono);
}

/** Without a trusted clock, nobody can say when a request stops being in flight. */
const foreverInFlight = Number.MAX_SAFE_INTEGER;

/** When no request sent so far can be in flight any more. */
export function inFlightEnd(waitMs: number, before: number | null, time: Time): number {
  return time.steady ? Math.min(foreverInFlight, Math.max(before ?? 0, time.wall + waitMs)) : foreverInFlight;
}

/** How long until no request of any attempt so far can be in flight. */
export function inFlightMs(row: Row, time: Time): number {
  if (row.inFlightUntil === null) return 0;
  if (!time.steady || row.inFlightUntil === foreverInFlight) return Number.POSITIVE_INFINITY;
  return Math.max(0, row.inFlightUntil - time.wall);
}

/** Stands for an unknown instant; it is outside every provider's window. */
export const noInstant = 0;

/** The provider's window starts at the first open dispatch; a request without a key has no window. */
export function isWithinWindow(row: Row, rerunWithinMs: number | null, time: Time): boolean {
  if (rerunWithinMs === null || row.firstDispatchedAt === null) return true;
  return row.keyed && time.steady && time.wall < row.firstDispatchedAt + rerunWithinMs;
}

export function computeExpiry(row: Row, outcome: 'success' | 'failure', time: Time): number | null {
  if (row.retention === null) return null;
  if (outcome === 'failure') return time.wall + row.retention.failureWindowMs;
  const expiresAt = Math.max(time.wall, row.retention.periodEndsAt ?? 0) + row.retention.windowMs;
  // A wrong clock could end it too soon and repeat the effect, so it stays until a person forgets it.
  return time.steady || expiresAt <= time.wall ? expiresAt : null;
}

/** The record is the caller's own, or the contract shares it. */
export function canAnswer(
  { caller }: Pick<Row, 'caller'>,
  asking: Pick<Asking, 'caller' | 'share'>,
): boolean {
  return caller === asking.caller || asking.share;
}

/** Same intent, same caller. Another caller gets nothing of the record: neither its args nor its prepared output. */
export function isSameIntent(row: Row, asking: Pick<Asking, 'fingerprint' | 'caller' | 'share'>): boolean {
  return row.fingerprint === asking.fingerprint && canAnswer(row, asking);
}

/** A contract's name never contains a slash. */
export function contractOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

/** What the last attempt reported. One that runs, or that died, has reported nothing: the error is of an attempt before it. */
export function reportedError({ status, error }: Pick<Row, 'status' | 'error'>): Row['error'] {
  return status === 'running' ? null : error;
}

/** Hides the token, the lease and a late success. They are blanked, because leaving fields out is slow. */
export function view(row: Row, time: Time): StoredRecord {
  const record: Row & StoredRecord = {
    ...row,
    token: '',
    leaseBoot: null,
    leaseUntil: null,
    news: null,
    contract: contractOf(row.key),
    // A verdict must not rely on when it was read if the clock is wrong.
    readAt: time.steady ? time.wall : noInstant,
    lapsed: isLapsed(row, time),
    inDoubt: isInDoubt(row, time),
    expired: isExpired(row, time),
    leaseLeftMs: leaseLeftMs(row, time),
    inFlightMs: inFlightMs(row, time),
  };
  return record;
}

export function event(
  row: Row,
  time: Time,
  type: StoreEvent['type'],
  detail: StoreEvent['detail'],
): StoreEvent {
  const { namespace, key, generation, fence } = row;
  return { at: time.wall, namespace, key, generation, fence, type, detail };
}

export function unchanged<Answer>(answer: Answer, events: readonly StoreEvent[] = noEvents): Step<Answer> {
  return { row: null, answer, events };
}
