// A store that has to be asked over a wire: Postgres, Redis. The rules decide here, on the row as it was last seen;
// the store swaps the row if it is still that one and the time has not run past the decision. Whoever was too slow
// is told what is there now, and decides again. What concerns one key is decided together and sent as one swap.

import type { Clock, Random } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';
import { coalescer, unanswered } from './coalescer.ts';
import type { FarBackend, Found, Removal, Swap, Swapped, Write } from './far-backend.ts';
import { farClock } from './far-clock.ts';
import { farMemory } from './far-memory.ts';
import type { Urgency } from './rule-store.ts';
import { claim, formOf } from './rules/claim.ts';
import { clear, dispatch, renew } from './rules/cross.ts';
import { isRemovable, isTombstoneDue, mereUse, tombstone } from './rules/prune.ts';
import { resolve } from './rules/resolve.ts';
import { settle } from './rules/settle.ts';
import { type Step, type Time, view } from './rules/state.ts';
import type { ClaimRequest, Page, Row, Store, StoredRecord, StoreEvent, StoreFacts } from './store.ts';

export interface FarStoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** When a batch starts from idle; for simulations. */
  readonly soon?: (run: () => void) => void;
}

/** One question about one key (and the earlier forms of it), until it is answered. */
interface Piece {
  readonly namespace: string;
  readonly keys: readonly string[];
  readonly rerunWithinMs: number | null;
  decide(rows: readonly (Row | undefined)[], time: Time): Decision;
  /** What the store said of its keys when it was asked last: good for one decision. */
  seen: readonly (Found | undefined)[] | undefined;
}

interface Decision extends Step<unknown> {
  /** Which of the keys it is about. */
  readonly form: number;
}

type Tell = () => unknown;

/** The pieces that are answered by one swap, and how. */
interface Plan {
  readonly pieces: readonly Piece[];
  readonly swaps: readonly Swap[];
  readonly tells: readonly Tell[];
  /** Nothing changes, and that was decided by what the store has just said. */
  readonly isOver: boolean;
}

/** How old a decision may be when it reaches a store that answers as usual, and one that is slow. */
const staleMs = 2_000;
const stalestMs = 30_000;
/** While one batch is at the store the next is made ready. */
const lanes = 2;
/** How long a row is waited for that somebody else's transaction holds. */
const lockedMs = 5_000;
const firstPauseMs = 10;
const longestPauseMs = 300;
const locked: unique symbol = Symbol('locked');
const pageSize = 500;

export function farStore(backend: FarBackend, { clock, random, soon }: FarStoreOptions): Store {
  const far = farClock(clock);
  const memory = farMemory();
  const batches = { flush, judge: backend.judge, ...(soon === undefined ? {} : { soon }) };
  const queue = coalescer<Piece, Tell>({ ...batches, lanes });
  /** Who waits for a locked row waits with its like. */
  const lockedQueue = coalescer<Piece, Tell>(batches);
  const parked = new Set<Promise<void>>();
  let floor = 0;
  let patienceMs = staleMs;
  let opening: Promise<StoreFacts> | undefined;
  let closing: Promise<void> | undefined;

  return {
    open: async () => ({ ...(await ready()), clockProblem: far.problem() }),
    claim: (request) => {
      const forms = [request.key, ...request.olderKeys];
      return ask('claiming', request, forms, request.rerunWithinMs, (rows, time) => {
        const form = forms.length === 1 ? 0 : formOf(rows, time);
        const asked = { ...request, key: forms[form] as string, leaseMs: request.leaseMs + far.lagMs() };
        return { form, ...claim(rows[form], asked as ClaimRequest, time, floor) };
      });
    },
    renew: (request) =>
      step('holding', request, (row, time) =>
        renew(row, { ...request, leaseMs: request.leaseMs + far.lagMs() }, time),
      ),
    dispatch: (request) =>
      step('holding', request, (row, time) => dispatch(row, request, time), request.rerunWithinMs),
    clear: (request) =>
      step('holding', request, (row, time) => clear(row, request, time), request.rerunWithinMs),
    settle: (request) => step('settling', request, (row, time) => settle(row, request, time)),
    resolve: (request) => step('settling', request, (row, time) => resolve(row, request, time)),

    read: (namespace, key) =>
      step('claiming', { namespace, key }, (row, time) => ({
        row: null,
        answer: row && view(row, time),
        events: [],
      })),
    async list(query): Promise<Page<StoredRecord>> {
      const { rows, next, time } = await asked(() => timed(() => backend.list(query)));
      return { items: rows.map((row) => view(row, time)), next };
    },
    append: (events) => asked(() => backend.append(events)),
    history: (namespace, key) => asked(() => backend.history(namespace, key)),
    namespaces: () => asked(() => backend.namespaces()),
    prune: (limit) => asked(() => prune(limit)),
    countExpired: () => asked(countExpired),
    close() {
      closing ??= shut();
      return closing;
    },
  };

  function ready(): Promise<StoreFacts> {
    if (closing !== undefined) return Promise.reject(isClosed());
    if (opening === undefined) {
      opening = start();
      opening.catch(() => {
        opening = undefined;
      });
    }
    return opening;
  }

  async function start(): Promise<StoreFacts> {
    try {
      const facts = await backend.open();
      await readClock();
      return facts;
    } catch (error) {
      throw backend.judge(error).error;
    }
  }

  async function readClock(): Promise<void> {
    const askedAt = clock.mono();
    far.learn(await backend.now(), askedAt);
  }

  async function shut(): Promise<void> {
    await opening?.catch(() => {});
    for (;;) {
      await Promise.all([queue.drained(), lockedQueue.drained()]);
      if (parked.size === 0) break;
      await Promise.all(parked);
    }
    await backend.close();
  }

  /** A question that is no swap. */
  async function asked<T>(question: () => Promise<T>): Promise<T> {
    await ready();
    try {
      return await question();
    } catch (error) {
      throw backend.judge(error).error;
    }
  }

  /** An answer, and the store's time at which it was given. */
  async function timed<T extends { readonly now: number }>(
    question: () => Promise<T>,
  ): Promise<T & { time: Time }> {
    const askedAt = clock.mono();
    const answer = await question();
    far.learn(answer.now, askedAt);
    return { ...answer, time: { ...far.now(), wall: answer.now, mono: answer.now } };
  }

  function step<Answer>(
    urgency: Urgency,
    about: { readonly namespace: string; readonly key: string },
    rule: (row: Row | undefined, time: Time) => Step<Answer>,
    rerunWithinMs: number | null = null,
  ): Promise<Answer> {
    return ask(urgency, about, [about.key], rerunWithinMs, ([row], time) => ({
      form: 0,
      ...rule(row, time),
    }));
  }

  async function ask<Answer>(
    urgency: Urgency,
    { namespace }: { readonly namespace: string },
    keys: readonly string[],
    rerunWithinMs: number | null,
    decide: (rows: readonly (Row | undefined)[], time: Time) => Step<Answer> & { readonly form: number },
  ): Promise<Answer> {
    await ready();
    const piece: Piece = { namespace, keys, rerunWithinMs, decide, seen: undefined };
    const askedAt = clock.mono();
    for (let tries = 0; ; tries += 1) {
      const tell = await (tries === 0 ? queue : lockedQueue).add(urgency, piece);
      const answer = tell();
      if (answer !== locked) return answer as Answer;
      if (clock.mono() - askedAt > lockedMs) throw isLocked();
      const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** tries) * (0.5 + random.fraction());
      const pause = new Promise<void>((resolve) => clock.setTimeout(resolve, pauseMs));
      parked.add(pause);
      await pause;
      parked.delete(pause);
    }
  }

  async function flush(take: () => readonly Piece[]): Promise<readonly (Tell | typeof unanswered)[]> {
    // What was asked before it was closed is still answered.
    await (opening ?? ready());
    const pieces = take();
    const plans = groups(pieces).map((group) => planOf(group));
    const pending = plans.filter(({ isOver }) => !isOver);
    const told = new Map<Piece, Tell>();
    for (const plan of plans) if (plan.isOver) tellAll(plan, told);
    if (pending.length > 0) await exchange(pending, told);
    return pieces.map((piece) => told.get(piece) ?? unanswered);
  }

  async function exchange(plans: readonly Plan[], told: Map<Piece, Tell>): Promise<void> {
    const swaps = plans.flatMap((plan) => plan.swaps);
    for (const { pieces } of plans) for (const piece of pieces) piece.seen = undefined;
    const askedAt = clock.mono();
    const latest = Math.max(0, ...swaps.map(({ write }) => write?.at ?? 0));
    const reply = await backend.exchange(swaps).catch((error: unknown) => {
      // Done or not, nobody knows: what is there is asked again.
      for (const { namespace, key } of swaps) memory.forget(namespace, key);
      throw error;
    });
    if (reply.now < latest) far.forget();
    far.learn(reply.now, askedAt);
    // A store that is slow for everybody would otherwise find every decision too old, for ever.
    if (latest > 0) patienceMs = Math.min(stalestMs, Math.max(staleMs, 2 * (reply.now - latest)));
    floor = Math.max(floor, reply.floor);

    let next = 0;
    for (const plan of plans) {
      const answers = reply.answers.slice(next, next + plan.swaps.length);
      next += plan.swaps.length;
      for (const [index, { namespace, key, write }] of plan.swaps.entries()) {
        const answer = answers[index] as Swapped;
        if (!answer.done) memory.set(namespace, key, answer.found);
        else if (write?.row) memory.set(namespace, key, { row: write.row, revision: write.revision });
      }
      if (answers.some(({ done }) => done)) tellAll(plan, told);
      else lookAgain(plan, answers, reply.now, told);
    }
  }

  /** What the store said of this plan's keys is what its pieces decide by next: at once, where nothing changes. */
  function lookAgain(
    { pieces, swaps }: Plan,
    answers: readonly Swapped[],
    now: number,
    told: Map<Piece, Tell>,
  ): void {
    const seen = answers.map((answer) => (answer.done ? undefined : answer.found));
    for (const piece of pieces) piece.seen = seen;
    const plan = planOf(pieces, now);
    if (plan.isOver) tellAll(plan, told);
    else if (isStill(swaps, seen, now, floor)) for (const piece of pieces) told.set(piece, () => locked);
  }

  /**
   * What is asked about the same keys is decided in turn, on one evolving row. `saidAt`: the store has just said what
   * is there, as of then; so that nothing changes is an answer only now, and as of then.
   */
  function planOf(pieces: readonly Piece[], saidAt?: number): Plan {
    const [{ namespace, keys }] = pieces as [Piece, ...Piece[]];
    const isFresh = pieces.every(({ seen }) => seen !== undefined);
    const remembered = (isFresh && pieces[0]?.seen) || keys.map((key) => memory.get(namespace, key));
    if (remembered.some((one) => one === 'look')) return look(pieces);
    const found = remembered as readonly (Found | undefined)[];

    const time = timeFor(found, saidAt);
    const rows = found.map((one) => one?.row);
    const events: StoreEvent[] = [];
    const tells: Tell[] = [];
    let target: number | undefined;
    for (const piece of pieces) {
      try {
        const { form, row, answer, events: noted } = piece.decide(rows, time);
        const writes = row !== null || noted.length > 0;
        // The rest waits for the next turn: a swap is about one key.
        if (writes && target !== undefined && target !== form) break;
        // And the store compares the fence of a new record with its floor: there must be no lower one before it.
        const isBorn = found[form] === undefined && rows[form] !== undefined;
        if (isBorn && row !== null && row.fence !== rows[form]?.fence) break;
        if (writes) target = form;
        if (row !== null) rows[form] = row;
        events.push(...noted);
        tells.push(() => answer);
      } catch (error) {
        tells.push(() => {
          throw error;
        });
      }
    }
    if (target === undefined)
      return saidAt === undefined ? look(pieces) : { pieces, swaps: [], tells, isOver: true };
    // News about a record that is gone is checked against nothing: that it is gone must be known, not guessed.
    if (rows[target] === undefined && !isFresh) return look(pieces);
    const write: Write = {
      before: found[target],
      row: rows[target],
      revision: newRevision(),
      events,
      at: time.wall,
      until: Math.min(time.wall + patienceMs, ...pieces.flatMap((piece) => turnsOf(found, piece, time))),
      beside: keys.flatMap((key, index) =>
        index === target ? [] : [{ key, revision: found[index]?.revision }],
      ),
    };
    return {
      pieces: pieces.slice(0, tells.length),
      // The other forms are looked at along with it: if it is not done, one of them may be why.
      swaps: keys.map((key, index) => ({ namespace, key, write: index === target ? write : undefined })),
      tells,
      isOver: false,
    };
  }

  /** Never before what is already written: the store's clock was there, unless it was set back. */
  function timeFor(found: readonly (Found | undefined)[], saidAt: number | undefined): Time {
    const time = far.now();
    const earliest = saidAt ?? time.wall;
    const wall = found.reduce((latest, one) => {
      const updatedAt = one?.row.updatedAt ?? 0;
      return updatedAt <= earliest + staleMs ? Math.max(latest, updatedAt) : latest;
    }, earliest);
    return { ...time, wall, mono: wall };
  }

  function look(pieces: readonly Piece[]): Plan {
    const [{ namespace, keys }] = pieces as [Piece, ...Piece[]];
    const swaps = keys.map((key) => ({ namespace, key, write: undefined }));
    return { pieces, swaps, tells: [], isOver: false };
  }

  function newRevision(): number {
    return Math.floor(random.fraction() * Number.MAX_SAFE_INTEGER);
  }

  async function prune(limit: number): Promise<number> {
    const { found, time } = await timed(() => backend.due(limit));
    const removals = found.flatMap((before): Removal[] => {
      const { row } = before;
      if (isTombstoneDue(row, time))
        return [{ before, row: tombstone(row), revision: newRevision(), events: mereUse }];
      return isRemovable(row, time)
        ? [{ before, row: undefined, revision: newRevision(), events: undefined }]
        : [];
    });
    if (removals.length === 0) return 0;
    for (const { before } of removals) memory.forget(before.row.namespace, before.row.key);
    return backend.remove(removals);
  }

  async function countExpired(): Promise<number> {
    let count = 0;
    for (const namespace of await backend.namespaces()) {
      for (let after: string | undefined; ; ) {
        const query = { namespace, limit: pageSize, ...(after === undefined ? {} : { after }) };
        const { rows, next, time } = await timed(() => backend.list(query));
        for (const row of rows) if (isRemovable(row, time) || isTombstoneDue(row, time)) count += 1;
        if (next === undefined) break;
        after = next;
      }
    }
    return count;
  }
}

function tellAll({ pieces, tells }: Plan, told: Map<Piece, Tell>): void {
  for (const [index, piece] of pieces.entries()) told.set(piece, tells[index] as Tell);
}

/** Pieces about the same keys, in the order in which they came. */
function groups(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const byKeys = new Map<string, Piece[]>();
  for (const piece of pieces) {
    const name = `${piece.namespace}\0${piece.keys.join('\0')}`;
    const group = byKeys.get(name);
    if (group === undefined) byKeys.set(name, [piece]);
    else group.push(piece);
  }
  return [...byKeys.values()];
}

/** It was decided in time and by what is there, and yet not done. */
function isStill(
  swaps: readonly Swap[],
  seen: readonly (Found | undefined)[],
  now: number,
  floor: number,
): boolean {
  return swaps.some(({ write }, index) => {
    const found = seen[index];
    if (write?.row === undefined || found?.revision !== write.before?.revision) return false;
    const isUnspoilt = write.beside.every(({ key, revision }) => {
      const other = swaps.findIndex((swap) => swap.key === key);
      return seen[other]?.revision === revision;
    });
    // Where the store's clock was set back a little, the row is of a moment that is still to come.
    const isInTime = now < write.until && (write.at <= now || now < (found?.row.updatedAt ?? 0));
    return isUnspoilt && isInTime && (write.before !== undefined || write.row.fence > floor);
  });
}

/** The instants at which a rule might decide otherwise. */
function turnsOf(found: readonly (Found | undefined)[], { rerunWithinMs }: Piece, time: Time): number[] {
  return found.flatMap((one) => {
    if (one === undefined) return [];
    const { leaseUntil, expiresAt, quietAt, firstDispatchedAt } = one.row;
    const windowEnds =
      firstDispatchedAt === null || rerunWithinMs === null ? null : firstDispatchedAt + rerunWithinMs;
    return [leaseUntil, expiresAt, quietAt, windowEnds].filter(
      (instant): instant is number => instant !== null && instant > time.wall,
    );
  });
}

function isLocked(): SemelError {
  return new SemelError('IN_FLIGHT', "The record is locked by somebody else's transaction.", {
    next: 'Nothing was run. Call again; if it goes on, look for a transaction that stays open.',
  });
}

function isClosed(): SemelError {
  return new SemelError('STORE_UNAVAILABLE', 'The store is closed.', {
    next: 'Nothing was run. Make a new store.',
    retriable: false,
  });
}
