// A store over a network: Postgres, Redis. The rules decide here, on the row as last seen; the database writes only if the
// row has not changed and the decision is not too old. Otherwise it returns the current row, and the rule decides again.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { type KeyMap, keyMap } from '../../core/key-map.ts';
import { type From, pages } from '../../core/paging.ts';
import { claim, findLoss } from '../../rules/claim.ts';
import { type FormStep, isLink, listForms, makeLink, nextStep } from '../../rules/forms.ts';
import { clear, dispatch, renew } from '../../rules/holder.ts';
import { isDue, isRemovable, isTombstoneDue, makeTombstone, usageEvents } from '../../rules/prune.ts';
import { resolve } from '../../rules/resolve.ts';
import { settle } from '../../rules/settle.ts';
import { type Step, type Time, view } from '../../rules/state.ts';
import { batcher, unanswered } from '../batcher.ts';
import type { Urgency } from '../local/local-store.ts';
import type {
  Asking,
  ClaimAnswer,
  ClaimRequest,
  Loss,
  Page,
  Row,
  Store,
  StoredRecord,
  StoreFacts,
} from '../store.ts';
import type { Found, RemoteBackend, Removal, Swap, Swapped } from './backend.ts';
import { remoteClock } from './clock.ts';
import { lastSeen } from './last-seen.ts';
import {
  type Decision,
  isUnchanged,
  newRevision,
  none,
  planner,
  Question,
  type Rows,
  swapsOf,
  timeFor,
} from './plan.ts';

export interface RemoteStoreOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  /**
   * How far the store's clock may be ahead of the `now` of its answers, besides the round trip: leases get as much longer.
   * @default 0
   */
  readonly clockMarginMs?: number;
  /** When a batch starts from idle; for simulations. */
  readonly soon?: (run: () => void) => void;
}

/** A read of one key. */
interface Read {
  readonly namespace: string;
  readonly key: string;
  readonly write: undefined;
  /** Makes the answer from the row, and the store's time of the read. */
  readonly answer: (row: Row | undefined, time: Time) => unknown;
}

/** While one batch is at the store, the next is prepared. */
const parallel = 2;
/** How long to wait for a row that another transaction has locked. */
const lockedMs = 5_000;
const firstPauseMs = 10;
const longestPauseMs = 300;
const pageSize = 500;

export function remoteStore(
  backend: RemoteBackend,
  { clock = systemClock, random = systemRandom, clockMarginMs = 0, soon }: RemoteStoreOptions = {},
): Store {
  const storeClock = remoteClock(clock, clockMarginMs);
  const memory = lastSeen();
  const plans = planner({ memory, storeClock, random });
  const batches = { flush, judge: backend.judge, ...(soon === undefined ? {} : { soon }) };
  const queue = batcher<Question, unknown>({ ...batches, parallel });
  /** Calls blocked on locked rows get their own queue, together with every other call about those rows. */
  const lockedQueue = batcher<Question, unknown>(batches);
  const parked = new Map<Promise<void>, string>();
  /** Reads do not wait for writes. */
  const reads = batcher<Read, unknown>({ ...batches, flush: flushReads, parallel });
  let floor = 0;
  let opening: Promise<StoreFacts> | undefined;
  let isReady = false;
  let closing: Promise<void> | undefined;

  return {
    open: async () => ({ ...(await ready()), clockProblem: storeClock.problem() }),
    claim: Object.assign(claimForms, { look }),
    renew: (request) =>
      step('holding', request, (row, time) =>
        renew(row, { ...request, leaseMs: request.leaseMs + storeClock.lagMs() }, time),
      ),
    dispatch: (request) =>
      step('holding', request, (row, time) => dispatch(row, request, time), request.rerunWithinMs),
    clear: (request) =>
      step('holding', request, (row, time) => clear(row, request, time), request.rerunWithinMs),
    settle: (request) => step('settling', request, (row, time) => settle(row, request, time)),
    resolve: (request) => step('settling', request, (row, time) => resolve(row, request, time)),

    read: (namespace, key) => readRow(namespace, key, (row, time) => row && view(row, time)),
    async list(query): Promise<Page<StoredRecord>> {
      const { rows, next, damaged = [], time } = await whenOpen(() => timed(() => backend.list(query)));
      const items = rows.map((row) => view(row, time));
      return damaged.length === 0 ? { items, next } : { items, next, damaged };
    },
    append: (events) => whenOpen(() => backend.append(events)),
    history: (namespace, key) => whenOpen(() => backend.history(namespace, key)),
    namespaces: () => whenOpen(() => backend.namespaces()),
    prune: (limit, isBackground) => whenOpen(() => prune(limit, isBackground)),
    countExpired: () => whenOpen(countExpired),
    close() {
      closing ??= shut();
      return closing;
    },
  };

  function claimForms(request: ClaimRequest): Promise<ClaimAnswer> {
    let forms = listForms(request);
    const leased = (key: string): ClaimRequest => ({
      ...request,
      key,
      leaseMs: request.leaseMs + storeClock.lagMs(),
    });
    const question = new Question('claiming', request, rule, request.rerunWithinMs);
    question.others = forms.keys.slice(1);
    question.continue = planNext;
    return ask(question) as Promise<ClaimAnswer>;

    function rule(own: Row | undefined, others: Rows, time: Time): Decision<ClaimAnswer | FormStep> {
      if (others.length === 0 && !isLink(own)) return claim(own, leased(request.key), time, floor);
      const rows = [own, ...others];
      const step = nextStep(forms, rows, request, time);
      if (step.kind === 'look') return { row: null, answer: step, events: [] };
      const { form } = step;
      const key = forms.keys[form] as string;
      if (step.kind === 'link') {
        const row = makeLink(rows[form], key, step.to, request, time, floor);
        return { form, row, answer: step, events: [] };
      }
      const lowest = step.row === undefined ? Math.max(floor, rows[form]?.fence ?? 0) : floor;
      return { form, ...claim(step.row, leased(key), time, lowest) };
    }

    // A swap writes one key: the other keys that the claim depends on are read or written before it.
    function planNext(answer: unknown): boolean {
      const step = answer as ClaimAnswer | FormStep;
      if ('won' in step) return false;
      if (step.kind === 'look') forms = listForms(request, step.newer);
      question.others = forms.keys.slice(1);
      return true;
    }
  }

  /** What a claim would lose to. If the key has other forms or is a link, only a claim can tell. */
  function look(asking: Asking): Promise<Loss | undefined> {
    if (asking.olderKeys.length > 0) return Promise.resolve(undefined);
    return readRow(asking.namespace, asking.key, (row, time) =>
      isLink(row) ? undefined : findLoss(row, asking, time),
    );
  }

  function readRow<Answer>(
    namespace: string,
    key: string,
    answer: (row: Row | undefined, time: Time) => Answer,
  ): Promise<Answer> {
    const read = { namespace, key, write: undefined, answer };
    const isOpen = isReady && closing === undefined;
    const answered = isOpen ? reads.add('claiming', read) : ready().then(() => reads.add('claiming', read));
    return answered as Promise<Answer>;
  }

  async function flushReads(take: () => readonly Read[]): Promise<readonly unknown[]> {
    const batch = take();
    const askedAt = clock.mono();
    const { now, floor: lowest, answers } = await backend.exchange(batch);
    storeClock.learn(now, askedAt);
    floor = Math.max(floor, lowest);
    return answers.map((answer, n) => {
      const found = answer.done ? undefined : answer.found;
      return batch[n]?.answer(found?.row, timeFor(storeClock, found, none, now));
    });
  }

  function ready(): Promise<StoreFacts> {
    if (closing !== undefined) return Promise.reject(closedError());
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
    storeClock.learn(await backend.now(), askedAt);
  }

  async function shut(): Promise<void> {
    await opening?.catch(() => {});
    for (;;) {
      await Promise.all([queue.drained(), lockedQueue.drained(), reads.drained()]);
      if (parked.size === 0) break;
      await Promise.all(parked.keys());
    }
    await backend.close();
  }

  async function whenOpen<T>(request: () => Promise<T>): Promise<T> {
    await ready();
    try {
      return await request();
    } catch (error) {
      throw backend.judge(error).error;
    }
  }

  /** Adds the store's time of the answer. */
  async function timed<T extends { readonly now: number }>(
    request: () => Promise<T>,
  ): Promise<T & { time: Time }> {
    const askedAt = clock.mono();
    const answer = await request();
    storeClock.learn(answer.now, askedAt);
    return { ...answer, time: { ...storeClock.now(), wall: answer.now, mono: answer.now } };
  }

  function step<Answer>(
    urgency: Urgency,
    about: { readonly namespace: string; readonly key: string },
    rule: (row: Row | undefined, time: Time) => Step<Answer>,
    rerunWithinMs: number | null = null,
  ): Promise<Answer> {
    const question = new Question(urgency, about, (row, _others, time) => rule(row, time), rerunWithinMs);
    return ask(question) as Promise<Answer>;
  }

  function ask(question: Question): Promise<unknown> {
    return isReady && closing === undefined ? add(question) : ready().then(() => add(question));
  }

  function add(question: Question): Promise<unknown> {
    const isWaiting = parked.size > 0 && [...parked.values()].includes(nameOf(question));
    return (isWaiting ? lockedQueue : queue).add(question.urgency, question);
  }

  async function flush(take: () => readonly Question[]): Promise<readonly unknown[]> {
    const questions = take();
    if (questions.length === 0) return [];
    try {
      for (const question of questions) {
        question.state = 'open';
        plans.plan(question);
      }
      await exchange(questions);
    } catch (error) {
      // The batcher bisects a batch with a locked row until its question is alone. A read may be enough to answer it.
      const [question] = questions;
      if (question === undefined || questions.length > 1 || !backend.judge(error).isLocked) throw error;
      question.write = undefined;
      await exchange(questions);
      if (question.state === 'open') question.state = 'locked';
      question.isSwallowed = false;
    }
    return questions.map(answerTo);
  }

  function answerTo(question: Question): unknown {
    switch (question.state) {
      case 'open':
        return unanswered;
      case 'answered':
        return question.continue?.(question.answer) ? unanswered : question.answer;
      case 'failed':
        return Promise.reject(question.answer);
      case 'locked':
        return retryLocked(question);
    }
  }

  async function retryLocked(question: Question): Promise<unknown> {
    question.lockedSince ??= clock.mono();
    if (clock.mono() - question.lockedSince > lockedMs)
      throw question.isSwallowed ? swallowedError() : lockedError();
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** question.pauses) * (0.5 + random.fraction());
    question.pauses += 1;
    const pause = new Promise<void>((resolve) => clock.setTimeout(resolve, pauseMs));
    parked.set(pause, nameOf(question));
    await pause;
    parked.delete(pause);
    return lockedQueue.add(question.urgency, question);
  }

  /** An exchange writes a key once: further writes of it wait for the next. */
  async function exchange(questions: readonly Question[]): Promise<void> {
    const asked: Question[] = [];
    const swaps: Swap[] = [];
    const written: KeyMap<true> = keyMap();
    let latest = 0;
    for (const question of questions) {
      const { namespace, key, others, write, form } = question;
      question.isSeen = false;
      if (write !== undefined) {
        const target = form === 0 ? key : (others[form - 1] as string);
        if (written.get(namespace, target)) continue;
        written.set(namespace, target, true);
        if (write.at > latest) latest = write.at;
      }
      asked.push(question);
      if (others.length === 0) swaps.push({ namespace, key, write });
      else swaps.push(...swapsOf(question));
    }
    const askedAt = clock.mono();
    const reply = await backend.exchange(swaps).catch((error: unknown) => {
      // Nobody knows whether it was done: read the rows again.
      if (!backend.judge(error).isLocked)
        for (const { namespace, key } of swaps) memory.forget(namespace, key);
      throw error;
    });
    if (reply.now < latest) storeClock.forget();
    storeClock.learn(reply.now, askedAt);
    if (latest > 0) plans.took(reply.now - latest);
    floor = Math.max(floor, reply.floor);

    let next = 0;
    for (const question of asked) {
      const count = 1 + question.others.length;
      takeAnswer(question, swaps, reply.answers, next, reply.now);
      next += count;
    }
  }

  /** A question that is not done is decided again on the rows that came back; if nothing changes, that is its answer. */
  function takeAnswer(
    question: Question,
    swaps: readonly Swap[],
    answers: readonly Swapped[],
    first: number,
    now: number,
  ): void {
    const { namespace, write, others } = question;
    const seen: (Found | undefined)[] = [];
    let isDone = false;
    for (let index = first; index <= first + others.length; index += 1) {
      const answer = answers[index] as Swapped;
      const { key } = swaps[index] as Swap;
      if (!answer.done) {
        memory.set(namespace, key, answer.found);
        seen.push(answer.found);
      } else {
        isDone = true;
        if (write?.row) memory.set(namespace, key, { row: write.row, revision: write.revision });
      }
    }
    if (isDone) {
      question.state = 'answered';
      return;
    }
    question.isSeen = true;
    [question.seen, ...question.seenOthers] = seen;
    const isStuck = write !== undefined && isUnchanged(write, question, now, floor);
    plans.decide(question, now);
    if (question.state !== 'open' || !isStuck) return;
    question.state = 'locked';
    question.isSwallowed = true;
  }

  async function prune(limit: number, isBackground?: boolean): Promise<number> {
    const { found, time } = await timed(() => backend.due(limit, isBackground));
    const removals = found.flatMap((before): Removal[] => {
      const { row } = before;
      if (isTombstoneDue(row, time))
        return [{ before, row: makeTombstone(row), revision: newRevision(random), events: usageEvents }];
      return isRemovable(row, time)
        ? [{ before, row: undefined, revision: newRevision(random), events: undefined }]
        : [];
    });
    if (removals.length === 0) return 0;
    for (const { before } of removals) memory.forget(before.row.namespace, before.row.key);
    return backend.remove(removals);
  }

  async function countExpired(): Promise<number> {
    let count = 0;
    for (const namespace of await backend.namespaces()) {
      const read = (from: From) => timed(() => backend.list({ namespace, limit: pageSize, ...from }));
      for await (const { rows, time } of pages(read))
        for (const row of rows) if (isDue(row, time)) count += 1;
    }
    return count;
  }
}

function nameOf({ namespace, key }: Question): string {
  return `${namespace}\0${key}`;
}

function lockedError(): SemelError {
  return new SemelError('IN_FLIGHT', 'Another transaction has locked the record.', {
    next: 'Nothing was run. Call again; if it persists, look for a transaction that stays open.',
  });
}

function swallowedError(): SemelError {
  return new SemelError(
    'IN_FLIGHT',
    'The record was not written although it is not locked: an open transaction may have staged it in the outbox, a trigger or rule of its table may suppress writes, or the clock of the server was set back.',
    {
      next: 'Nothing was run. Look for a transaction that stays open; check the triggers and rules of the table `records`, and the clock of the server.',
    },
  );
}

function closedError(): SemelError {
  return new SemelError('STORE_UNAVAILABLE', 'The store is closed.', {
    next: 'Nothing was run. Make a new store.',
    retriable: false,
  });
}
