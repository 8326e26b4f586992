// What can be said of a record at one moment: the derived words (lapsed, in doubt, free, expired) and the view
// that leaves the store. Every rule is written in these words.

import type { Row, StoredRecord, StoreEvent } from './record.ts';
import type { Asking } from './requests.ts';

/** The store's clock, read once per step and after its lock was taken. */
export interface Time {
  /** Wall clock, for windows and evidence. */
  readonly wall: number;
  /** Monotonic clock of this boot, for leases: steps of the wall clock do not move it. */
  readonly mono: number;
  /** A claim of another boot has lapsed: its processes are gone. */
  readonly boot: string;
  /** False while wall clock and uptime disagree: then nothing expires and no window is judged. */
  readonly steady: boolean;
}

/** What a rule decides: the row to write (null: nothing changes), the answer, and what history should know. */
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
 * Anybody may run it. A released record with doubt exists only where somebody said "run it again" and accepted
 * a possible second effect: it is free for that intent, and keeps the doubt.
 */
export function isFree(row: Row, time: Time): boolean {
  return row.status === 'released' || (isLapsed(row, time) && !row.dispatched && row.doubtFence === null);
}

export function isSettled(row: Row): boolean {
  return row.status === 'succeeded' || row.status === 'failed';
}

/** Expired by a person's act, whatever the clock says. */
export const expiredByHand = 0;

/** The record no longer answers for its key. What is running or in doubt never expires. */
export function isExpired(row: Row, time: Time): boolean {
  if (!isSettled(row) || isKept(row)) return false;
  return isOver(row.expiresAt, time) || hasNoWindow(row);
}

/** It never answered for its key, so no clock has to be believed: the call always runs. */
function hasNoWindow({ settledAt, expiresAt }: Row): boolean {
  return expiresAt !== null && settledAt !== null && expiresAt <= settledAt;
}

export function isOver(expiresAt: number | null, time: Time): boolean {
  if (expiresAt === null) return false;
  return expiresAt === expiredByHand || (time.steady && expiresAt <= time.wall);
}

/**
 * `per: 'ever'`: the key stays for good, whatever happens to the result. A refusal is remembered for a while only;
 * what was given up may have landed, and stays.
 */
export function isKept(row: Pick<Row, 'retention' | 'status' | 'doubtFence'>): boolean {
  return row.retention?.keep === true && !(row.status === 'failed' && row.doubtFence === null);
}

export function leaseLeftMs(row: Row, time: Time): number {
  if (row.status !== 'running' || row.leaseUntil === null || row.leaseBoot !== time.boot) return 0;
  return Math.max(0, row.leaseUntil - time.mono);
}

/** Nobody can tell when a request that left under an unsteady clock is no longer on its way. */
const foreverInFlight = Number.MAX_SAFE_INTEGER;

/** From when on nothing that left until now, or was waited for before, can still be on its way. */
export function inFlightEnd(waitMs: number, before: number | null, time: Time): number {
  return time.steady ? Math.min(foreverInFlight, Math.max(before ?? 0, time.wall + waitMs)) : foreverInFlight;
}

/** How long until no request of any attempt so far can still be on its way. */
export function inFlightMs(row: Row, time: Time): number {
  if (row.inFlightUntil === null) return 0;
  if (!time.steady || row.inFlightUntil === foreverInFlight) return Number.POSITIVE_INFINITY;
  return Math.max(0, row.inFlightUntil - time.wall);
}

/** Before every provider's window: its first dispatch was at an instant that nobody can tell. */
export const noInstant = 0;

/**
 * A provider's memory of our key is judged from the first dispatch that was not accounted for; it has none of a
 * request that carried no key.
 */
export function isWithinWindow(row: Row, rerunWithinMs: number | null, time: Time): boolean {
  if (rerunWithinMs === null || row.firstDispatchedAt === null) return true;
  return row.keyed && time.steady && time.wall < row.firstDispatchedAt + rerunWithinMs;
}

export function computeExpiry(row: Row, outcome: 'success' | 'failure', time: Time): number | null {
  if (row.retention === null) return null;
  if (outcome === 'failure') return time.wall + row.retention.failureWindowMs;
  const expiresAt = Math.max(time.wall, row.retention.periodEndsAt ?? 0) + row.retention.windowMs;
  // By a wrong clock it might end too soon, and the effect be repeated: it then stays until somebody forgets it.
  return time.steady || expiresAt <= time.wall ? expiresAt : null;
}

/** The record may answer this caller: it is their own, or the contract shares it. */
export function canAnswer(
  { caller }: Pick<Row, 'caller'>,
  asking: Pick<Asking, 'caller' | 'share'>,
): boolean {
  return caller === asking.caller || asking.share;
}

/** A contract's name never holds a slash, so the key tells it. */
export function contractOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

/** The token, the lease and late news are nobody's business but the rules'. Blanked: leaving fields out is slow. */
export function view(row: Row, time: Time): StoredRecord {
  const record: Row & StoredRecord = {
    ...row,
    token: '',
    leaseBoot: null,
    leaseUntil: null,
    news: null,
    contract: contractOf(row.key),
    // What was seen by a wrong clock was seen nobody knows when: a verdict must not count from there.
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

/** Nothing changes. */
export function unchanged<Answer>(answer: Answer, events: readonly StoreEvent[] = noEvents): Step<Answer> {
  return { row: null, answer, events };
}
