// Plans the swaps of a remote store: a rule decides on the row as last seen, and its write is done only if the row has not
// changed since.

import type { Random } from '../../core/clock.ts';
import type { Step, Time } from '../../rules/state.ts';
import type { Urgency } from '../local/local-store.ts';
import type { Row } from '../store.ts';
import type { Found, Swap, Write } from './backend.ts';
import type { RemoteClock } from './clock.ts';
import type { LastSeen } from './last-seen.ts';

export type Rows = readonly (Row | undefined)[];

export interface Decision<Answer> extends Step<Answer> {
  /** Index of the key that it writes: 0 its own, from 1 the others. @default 0 */
  readonly form?: number;
}

export type Rule<Answer> = (row: Row | undefined, others: Rows, time: Time) => Decision<Answer>;

/** One question about one key (and perhaps other forms of it), until it is answered. */
export class Question {
  readonly urgency: Urgency;
  readonly namespace: string;
  readonly key: string;
  readonly rule: Rule<unknown>;
  readonly rerunWithinMs: number | null;
  /** Other forms of the key. */
  others: readonly string[] = none;
  /** Prepares the next step if the answer was only an intermediate one; false: the answer is final. */
  continue: ((answer: unknown) => boolean) | undefined;
  /** The store has just answered with these rows: good for one decision. */
  isSeen = false;
  seen: Found | undefined;
  seenOthers: readonly (Found | undefined)[] = none;
  /** Undefined: only read. */
  write: Write | undefined;
  /** Index of the key that is written. */
  form = 0;
  state: 'open' | 'answered' | 'failed' | 'locked' = 'open';
  answer: unknown;
  lockedSince: number | undefined;
  /** Nobody has locked the row, and yet the write had no effect. */
  isSwallowed = false;
  pauses = 0;

  constructor(
    urgency: Urgency,
    { namespace, key }: { readonly namespace: string; readonly key: string },
    rule: Rule<unknown>,
    rerunWithinMs: number | null = null,
  ) {
    this.urgency = urgency;
    this.namespace = namespace;
    this.key = key;
    this.rule = rule;
    this.rerunWithinMs = rerunWithinMs;
  }
}

export const none: readonly never[] = [];

export interface Planner {
  /** Decides on the rows as last seen: to write, or only to read. */
  plan(question: Question): void;
  /** Decides on the rows that the store returned at `readAt`; if nothing changes, that is the answer. */
  decide(question: Question, readAt: number): void;
  /** Reports how long the last decisions took to reach the store. */
  took(ms: number): void;
}

/** How old a decision may be when it reaches the store, and at most if the store is slow. */
const staleMs = 2_000;
const maxStaleMs = 30_000;

export function planner({
  memory,
  storeClock,
  random,
}: {
  readonly memory: LastSeen;
  readonly storeClock: RemoteClock;
  readonly random: Random;
}): Planner {
  let patienceMs = staleMs;

  return {
    plan: (question) => decide(question, undefined),
    decide,
    // Otherwise every decision would reach a slow store too late, forever.
    took(ms) {
      patienceMs = Math.min(maxStaleMs, Math.max(staleMs, 2 * ms));
    },
  };

  function decide(question: Question, readAt: number | undefined): void {
    const { namespace, key, others: keys, isSeen } = question;
    question.write = undefined;
    const own = isSeen ? question.seen : memory.get(namespace, key);
    const others = isSeen ? question.seenOthers : seenOf(namespace, keys);
    const time = timeFor(storeClock, own, others, readAt ?? storeClock.now().wall);

    let step: Decision<unknown>;
    try {
      step = question.rule(own?.row, others.length === 0 ? none : others.map((one) => one?.row), time);
    } catch (error) {
      if (readAt === undefined) return;
      question.state = 'failed';
      question.answer = error;
      return;
    }
    const { form = 0, row, events, answer } = step;
    if (row === null && events.length === 0) {
      if (readAt === undefined) return;
      question.state = 'answered';
      question.answer = answer;
      return;
    }
    const before = form === 0 ? own : others[form - 1];
    // Nothing in the write would notice a wrong guess here, so the record must have been read and found missing.
    if (row === null && before === undefined && !isSeen) return;
    question.answer = answer;
    question.form = form;
    question.write = {
      before,
      row: row ?? before?.row,
      revision: newRevision(random),
      events,
      at: time.wall,
      until: validUntil(time.wall, own, others, question.rerunWithinMs, time.wall + patienceMs),
      beside: keys.length === 0 ? none : listUnchanged(question, own, others),
    };
  }

  function seenOf(namespace: string, keys: readonly string[]): readonly (Found | undefined)[] {
    return keys.length === 0 ? none : keys.map((key) => memory.get(namespace, key));
  }
}

/** Never before the last write: the store's clock had reached it, unless it was set back. */
export function timeFor(
  storeClock: RemoteClock,
  own: Found | undefined,
  others: readonly (Found | undefined)[],
  earliest: number,
): Time {
  let wall = earliest;
  const notBefore = (one: Found | undefined): void => {
    const updatedAt = one?.row.updatedAt ?? 0;
    if (updatedAt > wall && updatedAt <= earliest + staleMs) wall = updatedAt;
  };
  notBefore(own);
  for (const one of others) notBefore(one);
  return storeClock.at(wall);
}

/** Compared only with other revisions of the same key, shortly after it was read. */
export function newRevision(random: Random): number {
  return Math.floor(random.fraction() * 2 ** 42);
}

/** Reads the other keys along with the write: if it is not done, one of them may be the reason. */
export function swapsOf({ namespace, key, others, write, form }: Question): readonly Swap[] {
  return [key, ...others].map((each, index) => ({
    namespace,
    key: each,
    write: index === form ? write : undefined,
  }));
}

function listUnchanged(
  { key, others, form }: Question,
  own: Found | undefined,
  found: readonly (Found | undefined)[],
): Write['beside'] {
  const all = [{ key, revision: own?.revision }];
  for (const [index, other] of others.entries()) all.push({ key: other, revision: found[index]?.revision });
  return all.filter((_, index) => index !== form);
}

/** The next instant at which a rule might decide differently, at most `last`. */
function validUntil(
  wall: number,
  own: Found | undefined,
  others: readonly (Found | undefined)[],
  rerunWithinMs: number | null,
  last: number,
): number {
  let until = last;
  const limitTo = (instant: number | null): void => {
    if (instant !== null && instant > wall && instant < until) until = instant;
  };
  const limitBy = ({ row }: Found): void => {
    const { leaseUntil, expiresAt, inFlightUntil, firstDispatchedAt } = row;
    limitTo(leaseUntil);
    limitTo(expiresAt);
    limitTo(inFlightUntil);
    if (firstDispatchedAt !== null && rerunWithinMs !== null) limitTo(firstDispatchedAt + rerunWithinMs);
  };
  if (own !== undefined) limitBy(own);
  for (const one of others) if (one !== undefined) limitBy(one);
  return until;
}

/** The decision was in time and the rows have not changed, and yet it was not done: pause before the next try. */
export function isUnchanged(
  write: Write,
  { key, others, form, seen, seenOthers }: Question,
  now: number,
  floor: number,
): boolean {
  const found = form === 0 ? seen : seenOthers[form - 1];
  if (write.row === undefined || found?.revision !== write.before?.revision) return false;
  const areOthersUnchanged = write.beside.every((other) => {
    const there = other.key === key ? seen : seenOthers[others.indexOf(other.key)];
    return there?.revision === other.revision;
  });
  // If the store's clock was set back a little, the row was written in its future.
  const isInTime = now < write.until && (write.at <= now || now < (found?.row.updatedAt ?? 0));
  return areOthersUnchanged && isInTime && (write.before !== undefined || write.row.fence > floor);
}
