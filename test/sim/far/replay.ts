// Whether a history could have happened at a store that does one thing after the other: every swap that was done is the
// work of one call, by the rules, at the moment it says; every answer is what the rules say there and then.

import { isDeepStrictEqual } from 'node:util';
import { isRemovable, isTombstoneDue, makeTombstone } from '../../../src/rules/prune.ts';
import type { Time } from '../../../src/rules/state.ts';
import type { Swap, Swapped, Write } from '../../../src/store/remote/backend.ts';
import type { RenewRequest, Row, StoredRecord, StoreEvent } from '../../../src/store/store.ts';
import type { RemoteMemoryBackend } from '../../stores/remote-memory-backend.ts';
import { decide, type Rows } from './calls.ts';
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
        const one = committed(place, sent, swap, write, reply.now, isAnswer ? told : undefined);
        if (isAnswer && one !== undefined) explained.add(one);
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
  ): Asked | undefined {
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
    let best: Decided | undefined;
    for (const one of candidates) {
      // What the news was about is gone: whoever looked found nothing, and only that it came is kept.
      const seen = write.row === undefined ? keys.map(() => undefined) : before;
      const lengthened = (lagMs: number) =>
        decide(one.call, keys, seen, time, { floor: sent.belief.floor, lagMs });
      const decided = lengthened(lagOf(write, lengthened(0), before[target], one));
      best ??= decided;
      const isSame =
        decided.form === target &&
        isDeepStrictEqual(decided.row ?? seen[target], write.row) &&
        isDeepStrictEqual(decided.events, write.events) &&
        (told === undefined || isDeepStrictEqual(one.answer?.value, decided.answer));
      if (isSame) {
        explain(at, one, keys, decided, seen, now, sent, write);
        keep(at, swap, write);
        return one;
      }
    }
    wrong.push(
      `${at}: no call explains it. It is ${JSON.stringify({ row: write.row, events: write.events })}, ` +
        `and should be ${JSON.stringify(best)}`,
    );
    return undefined;
  }

  function explain(
    at: string,
    { call, askedAt }: Asked,
    keys: readonly string[],
    decided: Decided,
    seen: Rows,
    now: number,
    { belief }: Sent,
    write: Write,
  ): void {
    if (write.row === undefined) return;
    // Decided for a moment that is past; at the true one the rules must say the same.
    const truly = decide(call, keys, seen, timeAt(now, belief.steady), { floor: belief.floor, lagMs: 0 });
    if (gist(truly.answer) !== gist(decided.answer))
      wrong.push(
        `${at}: ${call.name} was ${gist(decided.answer)} for ${write.at}, and is ${gist(truly.answer)} at ${now}`,
      );
    const isLeased = decided.row !== null && (call.name === 'claim' || call.name === 'renew');
    if (!isLeased || write.row.leaseUntil === null || !isSteady()) return;
    const { leaseMs } = call.request as { leaseMs: number };
    if (write.row.leaseUntil < askedAt + leaseMs)
      wrong.push(
        `${at}: the lease ends at ${write.row.leaseUntil}, and its holder counts ${leaseMs} from ${askedAt}`,
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
        if (!isTombstoneDue(before.row, time) || !isDeepStrictEqual(row, makeTombstone(before.row)))
          wrong.push(`${key} was buried too soon`);
        rows.set(key, row);
      }
    }
  }
}

type Decided = ReturnType<typeof decide>;

/** By how much the store has lengthened leases: what nobody here can know. */
function lagOf(
  write: Write,
  unlengthened: Decided,
  before: Row | undefined,
  { call, answer }: Asked,
): number {
  const plain = unlengthened.row?.leaseUntil ?? null;
  const until = write.row?.leaseUntil ?? null;
  if (plain !== null && until !== null && plain !== before?.leaseUntil) return Math.max(0, until - plain);
  const told = recordOf(answer?.value)?.leaseLeftMs ?? 0;
  const due = recordOf(unlengthened.answer)?.leaseLeftMs ?? 0;
  if (told > due) return told - due;
  // Of a lease that has ended with its attempt, only the time for which "not landed" has to wait still tells.
  if (call.name !== 'renew' || write.row?.inFlightUntil == null || until !== null) return 0;
  const { leaseMs } = call.request as RenewRequest;
  return Math.max(0, write.row.inFlightUntil - write.at - leaseMs - write.row.networkMs);
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

function combinations<T>(choices: readonly (readonly T[])[]): readonly (readonly T[])[] {
  return choices.reduce<readonly (readonly T[])[]>(
    (sofar, options) => sofar.flatMap((taken) => options.map((option) => [...taken, option])),
    [[]],
  );
}

/** What an answer says besides instants. */
function gist(answer: unknown): string {
  const { record, ...rest } = (answer ?? {}) as Record<string, unknown>;
  const {
    status,
    fence,
    generation,
    providerKeyFence,
    doubtFence,
    dispatched,
    attempts,
    crashes,
    result,
    error,
  } = (record ?? {}) as Partial<Row>;
  return JSON.stringify([
    'status' in rest ? {} : rest,
    status,
    fence,
    generation,
    providerKeyFence,
    doubtFence,
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
