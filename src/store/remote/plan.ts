// What a store far away is asked: a rule decides on the row as this process last saw it, and the write that it makes of it
// is done only if the row is still that one.

import type { Random } from '../../core/clock.ts';
import type { Step, Time } from '../../rules/state.ts';
import type { Urgency } from '../local/local-store.ts';
import type { Row } from '../store.ts';
import type { Found, Swap, Write } from './backend.ts';
import type { RemoteClock } from './clock.ts';
import type { LastSeen } from './last-seen.ts';

export type Rows = readonly (Row | undefined)[];

export interface Decision<Answer> extends Step<Answer> {
  /** Which of the keys it is about: 0 its own, from 1 on the others. @default 0 */
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
  /** Takes an answer that was only a step, and adapts the question; false: that was the answer. */
  goOn: ((answer: unknown) => boolean) | undefined;
  /** What the store has just said of its keys: good for one decision. */
  isSeen = false;
  seen: Found | undefined;
  seenOthers: readonly (Found | undefined)[] = none;
  /** Undefined: only to look. */
  write: Write | undefined;
  /** Which of the keys is written. */
  form = 0;
  state: 'open' | 'answered' | 'failed' | 'locked' = 'open';
  answer: unknown;
  lockedSince: number | undefined;
  /** Nobody has it locked, and what should be written is not there all the same. */
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
  /** Decides by what was last seen: to write, or only to look. */
  plan(question: Question): void;
  /** Decides by what the store has just said, as of then; that nothing changes is an answer now. */
  decide(question: Question, saidAt: number): void;
  /** So long after they were made the last decisions reached the store. */
  took(ms: number): void;
}

/** How old a decision may be when it reaches a store that answers as usual, and one that is slow. */
const staleMs = 2_000;
const stalestMs = 30_000;

export function planner({
  memory,
  far,
  random,
}: {
  readonly memory: LastSeen;
  readonly far: RemoteClock;
  readonly random: Random;
}): Planner {
  let patienceMs = staleMs;

  return {
    plan: (question) => decide(question, undefined),
    decide,
    // A store that is slow for everybody would otherwise find every decision too old, for ever.
    took(ms) {
      patienceMs = Math.min(stalestMs, Math.max(staleMs, 2 * ms));
    },
  };

  function decide(question: Question, saidAt: number | undefined): void {
    const { namespace, key, others: keys, isSeen } = question;
    question.write = undefined;
    const own = isSeen ? question.seen : memory.get(namespace, key);
    const others = isSeen ? question.seenOthers : seenOf(namespace, keys);
    const time = timeFor(far, own, others, saidAt ?? far.now().wall);

    let step: Decision<unknown>;
    try {
      step = question.rule(own?.row, others.length === 0 ? none : others.map((one) => one?.row), time);
    } catch (error) {
      if (saidAt === undefined) return;
      question.state = 'failed';
      question.answer = error;
      return;
    }
    const { form = 0, row, events, answer } = step;
    if (row === null && events.length === 0) {
      if (saidAt === undefined) return;
      question.state = 'answered';
      question.answer = answer;
      return;
    }
    const before = form === 0 ? own : others[form - 1];
    // News about a record that is gone is checked against nothing: that it is gone must be known, not guessed.
    if (row === null && before === undefined && !isSeen) return;
    question.answer = answer;
    question.form = form;
    question.write = {
      before,
      row: row ?? before?.row,
      revision: newRevision(random),
      events,
      at: time.wall,
      until: turnAfter(time.wall, own, others, question.rerunWithinMs, time.wall + patienceMs),
      beside: keys.length === 0 ? none : besideOf(question, own, others),
    };
  }

  function seenOf(namespace: string, keys: readonly string[]): readonly (Found | undefined)[] {
    return keys.length === 0 ? none : keys.map((key) => memory.get(namespace, key));
  }
}

/** Never before what is already written: the store's clock was there, unless it was set back. */
export function timeFor(
  far: RemoteClock,
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
  return far.at(wall);
}

/** Compared only with other revisions of one key, by one who has just seen it. */
export function newRevision(random: Random): number {
  return Math.floor(random.fraction() * 2 ** 42);
}

/** The other keys are looked at along with the one that is written: if it is not done, one of them may be why. */
export function swapsOf({ namespace, key, others, write, form }: Question): readonly Swap[] {
  return [key, ...others].map((each, index) => ({
    namespace,
    key: each,
    write: index === form ? write : undefined,
  }));
}

function besideOf(
  { key, others, form }: Question,
  own: Found | undefined,
  found: readonly (Found | undefined)[],
): Write['beside'] {
  const all = [{ key, revision: own?.revision }];
  for (const [index, other] of others.entries()) all.push({ key: other, revision: found[index]?.revision });
  return all.filter((_, index) => index !== form);
}

/** The next instant at which a rule might decide otherwise, and none after the last. */
function turnAfter(
  wall: number,
  own: Found | undefined,
  others: readonly (Found | undefined)[],
  rerunWithinMs: number | null,
  last: number,
): number {
  let turn = last;
  const turnsAt = (instant: number | null): void => {
    if (instant !== null && instant > wall && instant < turn) turn = instant;
  };
  const turnsOf = ({ row }: Found): void => {
    const { leaseUntil, expiresAt, inFlightUntil, firstDispatchedAt } = row;
    turnsAt(leaseUntil);
    turnsAt(expiresAt);
    turnsAt(inFlightUntil);
    if (firstDispatchedAt !== null && rerunWithinMs !== null) turnsAt(firstDispatchedAt + rerunWithinMs);
  };
  if (own !== undefined) turnsOf(own);
  for (const one of others) if (one !== undefined) turnsOf(one);
  return turn;
}

/** It was decided in time and by what is there, and yet not done: there is no hurry to ask again. */
export function isUnchanged(
  write: Write,
  { key, others, form, seen, seenOthers }: Question,
  now: number,
  floor: number,
): boolean {
  const found = form === 0 ? seen : seenOthers[form - 1];
  if (write.row === undefined || found?.revision !== write.before?.revision) return false;
  const isUnspoilt = write.beside.every((other) => {
    const there = other.key === key ? seen : seenOthers[others.indexOf(other.key)];
    return there?.revision === other.revision;
  });
  // Where the store's clock was set back a little, the row is of a moment that is still to come.
  const isInTime = now < write.until && (write.at <= now || now < (found?.row.updatedAt ?? 0));
  return isUnspoilt && isInTime && (write.before !== undefined || write.row.fence > floor);
}
