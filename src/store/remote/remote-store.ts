// A store that has to be asked over a wire: Postgres, Redis. The rules decide here, on the row as it was last seen;
// the store swaps the row if it is still that one and the time has not run past the decision. Whoever was too slow
// is told what is there now, and decides again. What concerns one key is decided together and sent as one swap.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { claim } from '../../rules/claim.ts';
import { clear, dispatch, renew } from '../../rules/cross.ts';
import { type FormStep, formsOf, isLink, linked, nextStep } from '../../rules/forms.ts';
import { isDue, isRemovable, isTombstoneDue, mereUse, tombstone } from '../../rules/prune.ts';
import { resolve } from '../../rules/resolve.ts';
import { settle } from '../../rules/settle.ts';
import { type Step, type Time, view } from '../../rules/state.ts';
import { batcher, unanswered } from '../batcher.ts';
import type { Urgency } from '../local/local-store.ts';
import type { ClaimAnswer, ClaimRequest, Page, Row, Store, StoredRecord, StoreFacts } from '../store.ts';
import type { RemoteBackend, Removal, Swap, Swapped } from './backend.ts';
import { remoteClock } from './clock.ts';
import { lastSeen } from './last-seen.ts';
import {
  type Decision,
  groups,
  isUnchanged,
  look,
  type Piece,
  type Plan,
  planner,
  type Tell,
} from './plan.ts';

type Rows = readonly (Row | undefined)[];

export interface RemoteStoreOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  /** When a batch starts from idle; for simulations. */
  readonly soon?: (run: () => void) => void;
}

/** While one batch is at the store the next is made ready. */
const lanes = 2;
/** How long a row is waited for that somebody else's transaction holds. */
const lockedMs = 5_000;
const firstPauseMs = 10;
const longestPauseMs = 300;
const locked: unique symbol = Symbol('locked');
const pageSize = 500;

export function remoteStore(
  backend: RemoteBackend,
  { clock = systemClock, random = systemRandom, soon }: RemoteStoreOptions = {},
): Store {
  const far = remoteClock(clock);
  const memory = lastSeen();
  const plans = planner({ memory, far, random });
  const batches = { flush, judge: backend.judge, ...(soon === undefined ? {} : { soon }) };
  const queue = batcher<Piece, Tell>({ ...batches, lanes });
  /** Calls that wait for a locked row have a queue of their own, and so has every other call about it. */
  const lockedQueue = batcher<Piece, Tell>(batches);
  const parked = new Map<Promise<void>, string>();
  let floor = 0;
  let opening: Promise<StoreFacts> | undefined;
  let isReady = false;
  let closing: Promise<void> | undefined;

  return {
    open: async () => ({ ...(await ready()), clockProblem: far.problem() }),
    claim: claimForms,
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

  function claimForms(request: ClaimRequest): Promise<ClaimAnswer> {
    let forms = formsOf(request);
    const asked = (key: string): ClaimRequest => ({
      ...request,
      key,
      leaseMs: request.leaseMs + far.lagMs(),
    });
    const decide = (rows: Rows, time: Time): Decision<ClaimAnswer | FormStep> => {
      const [own] = rows;
      if (rows.length === 1 && !isLink(own)) return claim(own, asked(request.key), time, floor);
      const step = nextStep(forms, rows, request, time);
      if (step.kind === 'look') return { row: null, answer: step, events: [] };
      const { form } = step;
      const key = forms.keys[form] as string;
      if (step.kind === 'link') {
        const row = linked(rows[form], key, step.to, request, time, floor);
        return { form, row, answer: step, events: [] };
      }
      const lowest = step.row === undefined ? Math.max(floor, rows[form]?.fence ?? 0) : floor;
      return { form, ...claim(step.row, asked(key), time, lowest) };
    };
    // One swap writes one key: what else the claim depends on is asked for, or written, before it.
    const goOn = (said: ClaimAnswer | FormStep) => {
      if ('won' in said) return undefined;
      if (said.kind === 'look') forms = formsOf(request, said.newer);
      return forms.keys;
    };
    return ask('claiming', request, forms.keys, request.rerunWithinMs, decide, goOn) as Promise<ClaimAnswer>;
  }

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
      isReady = true;
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
      await Promise.all(parked.keys());
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
    return ask(urgency, about, [about.key], rerunWithinMs, ([row], time) => rule(row, time));
  }

  async function ask<Answer>(
    urgency: Urgency,
    { namespace }: { readonly namespace: string },
    keys: readonly string[],
    rerunWithinMs: number | null,
    decide: (rows: Rows, time: Time) => Decision<Answer>,
    /** The keys to ask for next, where this answer was only a step. */
    goOn?: (answer: Answer) => readonly string[] | undefined,
  ): Promise<Answer> {
    if (!isReady || closing !== undefined) await ready();
    let piece: Piece = { namespace, keys, rerunWithinMs, decide, seen: undefined, tell: undefined };
    const askedAt = clock.mono();
    let isWaiting = parked.size > 0 && [...parked.values()].includes(nameOf(piece));
    for (let pauses = 0; ; ) {
      const tell = await (isWaiting ? lockedQueue : queue).add(urgency, piece);
      const answer = tell();
      if (answer !== locked) {
        const next = goOn?.(answer as Answer);
        if (next === undefined) return answer as Answer;
        piece = { ...piece, keys: next, seen: undefined };
        continue;
      }
      if (clock.mono() - askedAt > lockedMs) throw isLocked();
      const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** pauses) * (0.5 + random.fraction());
      pauses += 1;
      isWaiting = true;
      const pause = new Promise<void>((resolve) => clock.setTimeout(resolve, pauseMs));
      parked.set(pause, nameOf(piece));
      await pause;
      parked.delete(pause);
    }
  }

  async function flush(take: () => readonly Piece[]): Promise<readonly (Tell | typeof unanswered)[]> {
    // What was asked before it was closed is still answered.
    if (!isReady) await (opening ?? ready());
    const pieces = take();
    if (pieces.length === 0) return [];
    for (const piece of pieces) piece.tell = undefined;
    try {
      await exchange(groups(pieces).map((group) => plans.planOf(group)));
    } catch (error) {
      // A batch with a locked row is divided until that row's piece is alone. What can be told by looking is told.
      const [piece] = pieces;
      if (piece === undefined || pieces.length > 1 || !backend.judge(error).isLocked) throw error;
      await exchange([look(pieces)]);
      piece.tell ??= isStillLocked;
    }
    return pieces.map(({ tell }) => tell ?? unanswered);
  }

  async function exchange(pending: readonly Plan[]): Promise<void> {
    const swaps: Swap[] = [];
    let latest = 0;
    for (const plan of pending) {
      for (const piece of plan.pieces) piece.seen = undefined;
      for (const swap of plan.swaps) {
        swaps.push(swap);
        if (swap.write !== undefined && swap.write.at > latest) latest = swap.write.at;
      }
    }
    const askedAt = clock.mono();
    const reply = await backend.exchange(swaps).catch((error: unknown) => {
      // Done or not, nobody knows: what is there is asked again.
      if (!backend.judge(error).isLocked)
        for (const { namespace, key } of swaps) memory.forget(namespace, key);
      throw error;
    });
    if (reply.now < latest) far.forget();
    far.learn(reply.now, askedAt);
    if (latest > 0) plans.took(reply.now - latest);
    floor = Math.max(floor, reply.floor);

    let next = 0;
    for (const plan of pending) {
      const first = next;
      let isDone = false;
      for (const { namespace, key, write } of plan.swaps) {
        const answer = reply.answers[next] as Swapped;
        next += 1;
        if (!answer.done) memory.set(namespace, key, answer.found);
        else {
          isDone = true;
          if (write?.row) memory.set(namespace, key, { row: write.row, revision: write.revision });
        }
      }
      if (isDone) tellAll(plan);
      else lookAgain(plan, reply.answers.slice(first, next), reply.now);
    }
  }

  /** What the store said of this plan's keys is what its pieces decide by next: at once, where nothing changes. */
  function lookAgain({ pieces, swaps }: Plan, answers: readonly Swapped[], now: number): void {
    const seen = answers.map((answer) => (answer.done ? undefined : answer.found));
    for (const piece of pieces) piece.seen = seen;
    const plan = plans.planOf(pieces, now);
    if (plan.isOver) tellAll(plan);
    else if (isUnchanged(swaps, seen, now, floor)) for (const piece of pieces) piece.tell = isStillLocked;
  }

  async function prune(limit: number): Promise<number> {
    const { found, time } = await timed(() => backend.due(limit));
    const removals = found.flatMap((before): Removal[] => {
      const { row } = before;
      if (isTombstoneDue(row, time))
        return [{ before, row: tombstone(row), revision: plans.newRevision(), events: mereUse }];
      return isRemovable(row, time)
        ? [{ before, row: undefined, revision: plans.newRevision(), events: undefined }]
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
        for (const row of rows) if (isDue(row, time)) count += 1;
        if (next === undefined) break;
        after = next;
      }
    }
    return count;
  }
}

function tellAll({ pieces, tells }: Plan): void {
  for (let index = 0; index < pieces.length; index += 1) (pieces[index] as Piece).tell = tells[index] as Tell;
}

const isStillLocked: Tell = () => locked;

function nameOf({ namespace, keys }: Piece): string {
  return `${namespace}\0${keys[0]}`;
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
