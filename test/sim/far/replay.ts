// Whether a history could have happened at a store that does one thing after the other: every swap that was done is the
// work of calls, in an order, by the rules, at the moment it says; every answer is what the rules say there and then.

import { isDeepStrictEqual } from 'node:util';
import { isRemovable, isTombstoneDue, tombstone } from '../../../src/rules/prune.ts';
import type { Time } from '../../../src/rules/state.ts';
import type { Swap, Swapped, Write } from '../../../src/store/remote/backend.ts';
import type { RenewRequest, Row, StoredRecord, StoreEvent } from '../../../src/store/store.ts';
import type { RemoteMemoryBackend } from '../../stores/remote-memory-backend.ts';
import { type Call, decide, type Rows } from './calls.ts';
import type { Asked } from './history.ts';
import type { Entry, Journal, Sent } from './network.ts';

export interface Replayed {
  readonly journal: Journal;
  readonly asked: readonly Asked[];
  readonly far: RemoteMemoryBackend;
  readonly trace: ((line: string) => void) | undefined;
}

/** No row is judged before it was written, by a clock that is only a little behind. */
const staleMs = 2_000;
/** What one swap may hold where nobody heard of it. */
const mostFolded = 4;

export function replay({ journal, asked, far, trace }: Replayed): readonly string[] {
  const rows = new Map<string, Row>();
  const highest = new Map<string, number>();
  const events: StoreEvent[] = [];
  const wrong: string[] = [];
  let floor = 0;

  for (const [place, entry] of journal.entries.entries()) {
    trace?.(shown(place, entry));
    if (entry.type === 'removal') removed(entry);
    else exchanged(place, entry);
    if (wrong.length > 0) return wrong;
  }
  for (const { call, answer } of asked)
    if (answer !== undefined && answer.by === undefined)
      wrong.push(`${call.name} was answered without a word of the store`);
  if (!isDeepStrictEqual(new Set(far.rows()), new Set(rows.values())))
    wrong.push('other rows than committed');
  return wrong;

  function exchanged(place: number, { sent, reply }: Entry & { type: 'exchange' }): void {
    const answered = asked
      .filter(({ answer }) => answer?.by === place)
      .sort((a, b) => (a.answer?.order ?? 0) - (b.answer?.order ?? 0));
    const explained = new Set<Asked>();
    for (const [index, swap] of sent.swaps.entries()) {
      const answer = reply.answers[index] as Swapped;
      const { write } = swap;
      if (answer.done && write !== undefined) {
        // A link is a step on the way to a claim, which is answered by a later swap.
        const isAnswer = sent.heard === place && !isLinkStep(write);
        const told = answered.filter((one) => !explained.has(one) && isAbout(one, swap, write));
        const calls = committed(place, sent, swap, write, reply.now, isAnswer ? told : undefined);
        if (isAnswer) for (const one of calls ?? told) explained.add(one);
      } else if (!answer.done && answer.found?.row !== rows.get(swap.key))
        wrong.push(`entry ${place}: ${swap.key} was not as it was told`);
    }
    for (const one of answered) if (!explained.has(one)) looked(place, sent, reply, one);
  }

  function committed(
    place: number,
    sent: Sent,
    swap: Swap,
    write: Write,
    now: number,
    told: readonly Asked[] | undefined,
  ): readonly Asked[] | undefined {
    const keys = [swap.key, ...write.beside.map(({ key }) => key)].sort().toReversed().sort(byForm);
    const before = keys.map((key) => rows.get(key));
    const target = keys.indexOf(swap.key);
    const time = timeAt(write.at, sent.belief.steady);
    const at = `entry ${place} (${swap.key})`;
    if (write.row !== undefined && !(write.at <= now && now < write.until))
      wrong.push(`${at}: done at ${now}, decided for ${write.at} to ${write.until}`);

    if (write.row === undefined && !wasSeenGone(sent, swap.key))
      wrong.push(`${at}: news of a record that nobody had seen to be gone`);

    const candidates =
      told ??
      asked.filter(
        (one) =>
          one.client === sent.client &&
          one.since <= sent.since &&
          sent.since <= one.until &&
          isAbout(one, swap, write),
      );
    // A claim that a link led here may also have been answered by a mere look, beside this swap.
    const isMixed = told?.some((one) => one.keys.length !== keys.length) === true;
    const some = told === undefined || isMixed ? sequences(candidates) : [told];
    // All that were answered together; but a link is the step of one call.
    const orders =
      isMixed || isLinkStep(write)
        ? some.toSorted((a, b) => (isMixed ? b.length - a.length : a.length - b.length))
        : some;
    let best: Folded | undefined;
    for (const calls of orders) {
      // What the news was about is gone: whoever looked found nothing, and only that it came is kept.
      const seen = write.row === undefined ? keys.map(() => undefined) : before;
      const lengthened = (lagMs: number) => fold(callsOf(calls), keys, seen, time, sent.belief.floor, lagMs);
      const folded = lengthened(lagOf(write, target, lengthened(0), seen, calls));
      best ??= folded;
      const isSame =
        folded.target === target &&
        isDeepStrictEqual(folded.rows[target], write.row) &&
        isDeepStrictEqual(folded.events, write.events) &&
        (!isMixed || calls.every(({ answer }, nth) => isDeepStrictEqual(answer?.value, folded.answers[nth])));
      if (isSame) {
        best = folded;
        explain(at, calls, keys, folded, seen, now, sent, write);
        keep(at, swap, write);
        return calls;
      }
    }
    wrong.push(
      `${at}: no call explains it. It is ${JSON.stringify({ row: write.row, events: write.events })}, ` +
        `and should be ${JSON.stringify({ row: best?.rows[target], events: best?.events, target: best?.target })}`,
    );
    return undefined;
  }

  function explain(
    at: string,
    calls: readonly Asked[],
    keys: readonly string[],
    folded: Folded,
    seen: Rows,
    now: number,
    sent: Sent,
    write: Write,
  ): void {
    for (const [nth, { call, answer }] of calls.entries())
      if (answer !== undefined && sent.heard !== undefined && asked.length > 0) {
        const isMine = answer.by === sent.heard && isDoneThere(sent, write);
        if (isMine && !isDeepStrictEqual(answer.value, folded.answers[nth]))
          wrong.push(
            `${at}: ${call.name} was told ${JSON.stringify(answer.value)}, not ${JSON.stringify(folded.answers[nth])}`,
          );
      }
    if (write.row === undefined) return;
    // Decided for a moment that is past; at the true one the rules must say the same.
    const truly = fold(callsOf(calls), keys, seen, timeAt(now, sent.belief.steady), sent.belief.floor, 0);
    for (const [nth, { call }] of calls.entries())
      if (gist(truly.answers[nth]) !== gist(folded.answers[nth]))
        wrong.push(
          `${at}: ${call.name} was ${gist(folded.answers[nth])} for ${write.at}, and is ${gist(truly.answers[nth])} at ${now}`,
        );
    const leased = folded.leasedBy === undefined ? undefined : calls[folded.leasedBy];
    if (leased === undefined || write.row.leaseUntil === null || !isSteady()) return;
    const { leaseMs } = leased.call.request as { leaseMs: number };
    if (write.row.leaseUntil < leased.askedAt + leaseMs)
      wrong.push(
        `${at}: the lease ends at ${write.row.leaseUntil}, and its holder counts ${leaseMs} from ${leased.askedAt}`,
      );
  }

  /** No clock was moved, so that all of them agree about leases. */
  function isSteady(): boolean {
    return asked.every((one) => one.isSteadySoFar);
  }

  /** The client had heard of it before it sent this. */
  function wasSeenGone({ client, since }: Sent, key: string): boolean {
    return journal.entries.slice(0, since).some((entry, place) => {
      if (entry.type === 'removal' || entry.sent.client !== client || entry.sent.heard !== place)
        return false;
      return entry.sent.swaps.some((swap, index) => {
        const said = entry.reply.answers[index];
        return swap.key === key && said?.done === false && said.found === undefined;
      });
    });
  }

  /** The answer that was heard is that of the copy which did it. */
  function isDoneThere(sent: Sent, write: Write): boolean {
    const heard = journal.entries[sent.heard as number];
    if (heard?.type !== 'exchange') return false;
    const index = sent.swaps.findIndex((swap) => swap.write === write);
    return heard.reply.answers[index]?.done === true;
  }

  function keep(at: string, { key }: Swap, { row, events: noted, before }: Write): void {
    events.push(...noted);
    if (row === undefined) return;
    const last = highest.get(key) ?? 0;
    if (row.fence < last) wrong.push(`${at}: fence ${row.fence} comes after ${last}`);
    const isBorn = before === undefined || before.row.generation !== row.generation;
    if (isBorn && row.generation <= last)
      wrong.push(`${at}: generation ${row.generation} comes after ${last}`);
    if (before === undefined && row.fence <= floor)
      wrong.push(`${at}: fence ${row.fence} is under the floor`);
    highest.set(key, Math.max(last, row.fence));
    rows.set(key, row);
  }

  /** Nothing was changed for it: told by what the store has said. */
  function looked(
    place: number,
    sent: Sent,
    reply: { readonly now: number; readonly answers: readonly Swapped[] },
    { client, call, keys, since, answer }: Asked,
  ): void {
    const at = `entry ${place}: ${client}'s ${call.name}`;
    if (since > place) return void wrong.push(`${at} was answered by what was said before it was asked`);
    const saidOf = (key: string) =>
      sent.swaps.flatMap((swap, index): (Row | undefined)[] => {
        const said = reply.answers[index] as Swapped;
        if (swap.key !== key) return [];
        if (!said.done) return [said.found?.row];
        // Another claim left its link there in the same exchange: this one was decided before or after it.
        return swap.write !== undefined && isLinkStep(swap.write)
          ? [swap.write.before?.row, swap.write.row]
          : [];
      });
    const seen = keys.map(saidOf);
    if (seen.some((found) => found.length === 0))
      return void wrong.push(`${at}: nothing was said of its keys`);
    const isRight = combinations(seen).some((own) => {
      // A link led on: what it leads to was said along with it.
      const newer = call.name === 'claim' ? (own[0]?.movedTo ?? []).filter((key) => !keys.includes(key)) : [];
      return combinations([...own.map((row) => [row]), ...newer.map(saidOf)]).some((found) =>
        isWhatTheRulesSay([...keys, ...newer], found),
      );
    });

    function isWhatTheRulesSay(all: readonly string[], found: Rows): boolean {
      const wall = found.reduce(
        (latest, row) =>
          row !== undefined && row.updatedAt <= reply.now + staleMs
            ? Math.max(latest, row.updatedAt)
            : latest,
        reply.now,
      );
      return [true, false].some((steady) => {
        const step = decide(call, all, found, timeAt(wall, steady), { floor: 0, lagMs: 0 });
        const isStill = step.row === null && step.events.length === 0;
        return isStill && isDeepStrictEqual(step.answer, answer?.value);
      });
    }

    if (!isRight)
      wrong.push(
        `${at} was told ${JSON.stringify(answer?.value)} of ${JSON.stringify(seen)} at ${reply.now}`,
      );
  }

  function removed({ taken, dueAt, steady }: Entry & { type: 'removal' }): void {
    for (const { before, row } of taken) {
      const { key, fence } = before.row;
      const time = timeAt(dueAt, steady);
      if (rows.get(key) !== before.row) wrong.push(`${key} was removed as it was not`);
      if (row === undefined) {
        if (!isRemovable(before.row, time)) wrong.push(`${key} was removed too soon`);
        rows.delete(key);
        floor = Math.max(floor, fence);
      } else {
        if (!isTombstoneDue(before.row, time) || !isDeepStrictEqual(row, tombstone(before.row)))
          wrong.push(`${key} was buried too soon`);
        rows.set(key, row);
      }
    }
  }
}

function callsOf(asked: readonly Asked[]): readonly Call[] {
  return asked.map(({ call }) => call);
}

interface Folded {
  readonly rows: Rows;
  readonly events: readonly StoreEvent[];
  readonly answers: readonly unknown[];
  readonly target: number | undefined;
  /** The call that gave the row its present lease. */
  readonly leasedBy: number | undefined;
}

function fold(
  calls: readonly Call[],
  keys: readonly string[],
  before: Rows,
  time: Time,
  floor: number,
  lagMs: number,
): Folded {
  const rows = [...before];
  const events: StoreEvent[] = [];
  const answers: unknown[] = [];
  let target: number | undefined;
  let leasedBy: number | undefined;
  for (const [nth, call] of calls.entries()) {
    const { form, row, answer, events: noted } = decide(call, keys, rows, time, { floor, lagMs });
    if (row !== null && (call.name === 'claim' || call.name === 'renew')) leasedBy = nth;
    if (row !== null) rows[form] = row;
    if (row !== null || noted.length > 0) target = form;
    events.push(...noted);
    answers.push(answer);
  }
  return { rows, events, answers, target, leasedBy };
}

/** By how much the store has lengthened leases: what nobody here can know, but which every call of a swap shares. */
function lagOf(
  write: Write,
  target: number,
  unlengthened: Folded,
  before: Rows,
  calls: readonly Asked[],
): number {
  const plain = unlengthened.rows[target]?.leaseUntil ?? null;
  const until = write.row?.leaseUntil ?? null;
  if (plain !== null && until !== null && plain !== before[target]?.leaseUntil)
    return Math.max(0, until - plain);
  for (const [nth, { answer }] of calls.entries()) {
    const told = recordOf(answer?.value)?.leaseLeftMs ?? 0;
    const due = recordOf(unlengthened.answers[nth])?.leaseLeftMs ?? 0;
    if (told > due) return told - due;
  }
  // Of a lease that has ended with its attempt, only the time for which "not landed" has to wait still tells.
  const renewal = calls.find(({ call }) => call.name === 'renew')?.call.request as RenewRequest | undefined;
  if (renewal === undefined || write.row?.quietAt == null || until !== null) return 0;
  return Math.max(0, write.row.quietAt - write.at - renewal.leaseMs - write.row.tailMs);
}

function recordOf(answer: unknown): StoredRecord | undefined {
  return (answer as { record?: StoredRecord } | undefined)?.record;
}

function timeAt(wall: number, steady: boolean): Time {
  return { wall, mono: wall, boot: 'store', steady };
}

function isLinkStep({ row, before }: Write): boolean {
  return row?.movedTo != null && row.fence !== before?.row.fence;
}

/** Its keys, or, where one is a link, also those that the link leads to. */
function isAbout({ call, keys }: Asked, { key }: Swap, { beside }: Write): boolean {
  const all = [key, ...beside.map((other) => other.key)];
  if (!keys.every((each) => all.includes(each))) return false;
  return keys.length === all.length || (call.name === 'claim' && keys.length === 1);
}

/** The present form of a key stands before its earlier one, as it was asked. */
function byForm(a: string, b: string): number {
  return a.length - b.length;
}

/** All orders of some of these. */
function sequences<T>(items: readonly T[]): readonly (readonly T[])[] {
  const found: (readonly T[])[] = [];
  const extend = (taken: readonly T[]) => {
    if (taken.length > 0) found.push(taken);
    if (taken.length < mostFolded)
      for (const item of items) if (!taken.includes(item)) extend([...taken, item]);
  };
  extend([]);
  return found;
}

function combinations<T>(choices: readonly (readonly T[])[]): readonly (readonly T[])[] {
  return choices.reduce<readonly (readonly T[])[]>(
    (sofar, options) => sofar.flatMap((taken) => options.map((option) => [...taken, option])),
    [[]],
  );
}

/** What an answer says besides instants. */
function gist(answer: unknown): string {
  const { record, ...rest } = (answer ?? {}) as Record<string, unknown>;
  const { status, fence, generation, keyFence, doubtSince, dispatched, attempts, crashes, result, error } =
    (record ?? {}) as Partial<Row>;
  return JSON.stringify([
    'status' in rest ? {} : rest,
    status,
    fence,
    generation,
    keyFence,
    doubtSince,
    dispatched,
    attempts,
    crashes,
    result,
    error,
  ]);
}

function shown(place: number, entry: Entry): string {
  if (entry.type === 'removal') return `entry ${place}: removed ${JSON.stringify(entry.taken)}`;
  const { sent, reply } = entry;
  return `entry ${place}: ${sent.client} (heard ${sent.heard}, ${JSON.stringify(sent.belief)}) at ${reply.now}, floor ${reply.floor}\n${sent.swaps
    .map((swap, index) => `    ${JSON.stringify(swap)}\n    ⇒ ${JSON.stringify(reply.answers[index])}`)
    .join('\n')}`;
}
