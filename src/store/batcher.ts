// Group commit: calls that arrive while the store is busy go out together as the next batch. There is no timer: when idle,
// a call goes through at once. Calls of a batch never fail together: a batch that fails is bisected until the failing
// call is alone. Every answer is given after the commit.

import type { Urgency } from './local/local-store.ts';

/** The answer to an item that must be sent again: it goes out first with the next batch. */
export const unanswered: unique symbol = Symbol('unanswered');

export interface BatcherOptions<Item, Answer> {
  /**
   * Executes one batch and answers in the order of its items once it is durable. Calls `take` once, when the store is
   * ready, so that items that arrived in the meantime join.
   */
  readonly flush: (take: () => readonly Item[]) => Promise<readonly (Answer | typeof unanswered)[]>;
  /** The error for the caller, and whether every item would fail the same way. */
  readonly judge: (error: unknown) => { readonly error: unknown; readonly concernsAll: boolean };
  /** Schedules the start from idle: late enough for callers of the same tick, and those just answered, to join. */
  readonly soon?: (run: () => void) => void;
  /** @default 256 */
  readonly cap?: number;
  /** How many batches may be under way at once, for stores whose work is not done by this process. @default 1 */
  readonly parallel?: number;
}

interface Batcher<Item, Answer> {
  add(urgency: Urgency, item: Item): Promise<Answer>;
  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void>;
}

class Entry<Item, Answer> {
  readonly urgency: Urgency;
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;

  constructor(
    urgency: Urgency,
    item: Item,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.urgency = urgency;
    this.item = item;
    this.resolve = resolve;
    this.reject = reject;
  }
}

/** Fewer items are not split between parallel batches: what a statement costs by itself outweighs what they would save. */
const minShare = 64;

/** Captured now: a user's test may fake the timers later and never advance them. */
const nextTurn: (run: () => void) => void = setImmediate;

export function batcher<Item, Answer>({
  flush,
  judge,
  soon = nextTurn,
  cap = 256,
  parallel = 1,
}: BatcherOptions<Item, Answer>): Batcher<Item, Answer> {
  const queues: Record<Urgency, Entry<Item, Answer>[]> = { holding: [], claiming: [], settling: [] };
  const waiters: (() => void)[] = [];
  let active = 0;
  /** Items of batches that are under way. */
  let underWay = 0;
  /** A worker was started and has not taken its batch yet: new items join it. */
  let isStarting = false;

  return {
    add(urgency, item) {
      return new Promise((resolve, reject) => {
        queues[urgency].push(new Entry(urgency, item, resolve, reject));
        if (!isStarting && active < parallel) startWorker();
      });
    },
    async drained() {
      if (active > 0) await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };

  function startWorker(): void {
    active += 1;
    isStarting = true;
    soon(start);
  }

  function start(): void {
    void work().then(() => {
      // The callers just answered have queued their next step by now: it goes out without further delay.
      if (waiting() > 0 && !isStarting) {
        isStarting = true;
        return soon(start);
      }
      active -= 1;
      if (active > 0) return;
      for (const resolve of waiters.splice(0)) resolve();
    });
  }

  async function work(): Promise<void> {
    let batch: Entry<Item, Answer>[] | undefined;
    const takeBatch = () => {
      if (batch === undefined) {
        batch = nextBatch();
        underWay += batch.length;
        isStarting = false;
        if (waiting() > 0 && active < parallel) startWorker();
      }
      return batch.map(({ item }) => item);
    };
    try {
      const answers = await flush(takeBatch);
      sendAgain(deliver(batch ?? [], answers));
    } catch (error) {
      // The store failed before it took a batch: everything queued fails.
      if (batch === undefined) isStarting = false;
      await bisect(batch ?? takeAll(), error);
    } finally {
      underWay -= batch?.length ?? 0;
    }
  }

  async function bisect(batch: readonly Entry<Item, Answer>[], error: unknown): Promise<void> {
    const verdict = judge(error);
    if (batch.length === 1 || verdict.concernsAll) {
      for (const { reject } of batch) reject(verdict.error);
      return;
    }
    const middle = batch.length >> 1;
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) await flushAlone(half);
  }

  /** Until all are answered: in the queue they would join the item again that has failed them. */
  async function flushAlone(half: readonly Entry<Item, Answer>[]): Promise<void> {
    for (let rest = half; rest.length > 0; ) {
      const batch = rest;
      try {
        rest = deliver(batch, await flush(() => batch.map(({ item }) => item)));
      } catch (again) {
        return bisect(batch, again);
      }
    }
  }

  /** Returns those that must be sent again. */
  function deliver(
    batch: readonly Entry<Item, Answer>[],
    answers: readonly (Answer | typeof unanswered)[],
  ): readonly Entry<Item, Answer>[] {
    const again: Entry<Item, Answer>[] = [];
    for (const [index, entry] of batch.entries()) {
      const answer = answers[index] as Answer | typeof unanswered;
      if (answer === unanswered) again.push(entry);
      else entry.resolve(answer);
    }
    return again;
  }

  /** In front, in their order. */
  function sendAgain(entries: readonly Entry<Item, Answer>[]): void {
    for (const entry of entries.toReversed()) queues[entry.urgency].unshift(entry);
  }

  function waiting(): number {
    return queues.holding.length + queues.claiming.length + queues.settling.length;
  }

  /**
   * By urgency; but under a flood of claims a quarter of each batch is reserved for settling. Parallel batches share the
   * work evenly, so that one is prepared while another is at the store.
   */
  function nextBatch(): Entry<Item, Answer>[] {
    const { holding, claiming, settling } = queues;
    const share = Math.max(minShare, Math.ceil((underWay + waiting()) / parallel));
    const size = Math.min(cap, share);
    const batch = holding.splice(0, size);
    const reserved = Math.min(settling.length, size >> 2);
    batch.push(...claiming.splice(0, Math.max(0, size - batch.length - reserved)));
    batch.push(...settling.splice(0, size - batch.length));
    return batch;
  }

  function takeAll(): Entry<Item, Answer>[] {
    const { holding, claiming, settling } = queues;
    return [...holding.splice(0), ...claiming.splice(0), ...settling.splice(0)];
  }
}
