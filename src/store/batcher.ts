// Group commit: what comes while the store is at work goes out together as the next batch. No timer: when idle, a
// call goes through at once. A batch is an optimisation, never a unit of fate: every answer is given after the
// commit, and a batch that fails is halved until the guilty piece stands alone.

import type { Urgency } from './local/local-store.ts';

/** The answer to a piece that has to be asked once more: it goes out first with the next batch. */
export const unanswered: unique symbol = Symbol('unanswered');

export interface BatcherOptions<Piece, Answer> {
  /**
   * Does one batch and answers once it is durable, in the order of the pieces. `take` is called once, when the
   * store is ready to work, so that what came while it was waiting joins.
   */
  readonly flush: (take: () => readonly Piece[]) => Promise<readonly (Answer | typeof unanswered)[]>;
  /** What the caller is told of a failure, and whether the failure says nothing of a single piece. */
  readonly judge: (error: unknown) => { readonly error: unknown; readonly concernsAll: boolean };
  /** When to start from idle: late enough for the callers of one tick, and for the ones just answered, to join. */
  readonly soon?: (run: () => void) => void;
  /** @default 256 */
  readonly cap?: number;
  /** How many batches may be under way at once, where waiting for one is not work for this process. @default 1 */
  readonly lanes?: number;
}

export interface Batcher<Piece, Answer> {
  add(urgency: Urgency, piece: Piece): Promise<Answer>;
  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void>;
}

interface Entry<Piece, Answer> {
  readonly urgency: Urgency;
  readonly piece: Piece;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Too few pieces to be divided among lanes. */
const leastShare = 16;

/** Taken now: a user's test may fake the timers later, and nobody would turn them. */
const nextTurn: (run: () => void) => void = setImmediate;

export function batcher<Piece, Answer>({
  flush,
  judge,
  soon = nextTurn,
  cap = 256,
  lanes = 1,
}: BatcherOptions<Piece, Answer>): Batcher<Piece, Answer> {
  const queues: Record<Urgency, Entry<Piece, Answer>[]> = { holding: [], claiming: [], settling: [] };
  let waiters: (() => void)[] = [];
  let active = 0;
  /** Pieces of batches that are under way. */
  let underWay = 0;
  /** A lane that was started and has not taken anything yet: whoever comes now joins it. */
  let isStarting = false;

  return {
    add(urgency, piece) {
      return new Promise((resolve, reject) => {
        queues[urgency].push({ urgency, piece, resolve, reject });
        if (!isStarting && active < lanes) openLane();
      });
    },
    async drained() {
      if (active > 0) await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };

  function openLane(): void {
    active += 1;
    isStarting = true;
    soon(start);
  }

  function start(): void {
    void work().then(() => {
      // The callers just answered have asked for their next step by now: it goes out without further delay.
      if (waiting() > 0 && !isStarting) {
        isStarting = true;
        return soon(start);
      }
      active -= 1;
      if (active > 0) return;
      const told = waiters;
      waiters = [];
      for (const tell of told) tell();
    });
  }

  async function work(): Promise<void> {
    let batch: Entry<Piece, Answer>[] | undefined;
    const takeBatch = () => {
      if (batch === undefined) {
        batch = next();
        underWay += batch.length;
        isStarting = false;
        if (waiting() > 0 && active < lanes) openLane();
      }
      return batch.map(({ piece }) => piece);
    };
    try {
      const answers = await flush(takeBatch);
      deliver(batch ?? [], answers);
    } catch (error) {
      // The store never got as far as taking anything: whoever waits for it is told.
      if (batch === undefined) isStarting = false;
      await divide(batch ?? everything(), error);
    } finally {
      underWay -= batch?.length ?? 0;
    }
  }

  async function divide(batch: readonly Entry<Piece, Answer>[], error: unknown): Promise<void> {
    const verdict = judge(error);
    if (batch.length === 1 || verdict.concernsAll) {
      for (const { reject } of batch) reject(verdict.error);
      return;
    }
    const middle = batch.length >> 1;
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) {
      try {
        deliver(half, await flush(() => half.map(({ piece }) => piece)));
      } catch (again) {
        await divide(half, again);
      }
    }
  }

  function deliver(
    batch: readonly Entry<Piece, Answer>[],
    answers: readonly (Answer | typeof unanswered)[],
  ): void {
    // From the end, so that those who are asked again keep their order.
    for (let index = batch.length - 1; index >= 0; index -= 1) {
      const entry = batch[index] as Entry<Piece, Answer>;
      const answer = answers[index] as Answer | typeof unanswered;
      if (answer === unanswered) queues[entry.urgency].unshift(entry);
    }
    for (const [index, entry] of batch.entries()) {
      const answer = answers[index] as Answer | typeof unanswered;
      if (answer !== unanswered) entry.resolve(answer);
    }
  }

  function waiting(): number {
    return queues.holding.length + queues.claiming.length + queues.settling.length;
  }

  /**
   * In the order of urgency; but a flood of claims leaves a quarter of each batch to those who want to settle. All lanes
   * have the same share of the work, so that one is at the store while another is made ready.
   */
  function next(): Entry<Piece, Answer>[] {
    const { holding, claiming, settling } = queues;
    const share = Math.max(leastShare, Math.ceil((underWay + waiting()) / lanes));
    const most = Math.min(cap, share);
    const batch = holding.splice(0, most);
    const reserved = Math.min(settling.length, most >> 2);
    batch.push(...claiming.splice(0, Math.max(0, most - batch.length - reserved)));
    batch.push(...settling.splice(0, most - batch.length));
    return batch;
  }

  function everything(): Entry<Piece, Answer>[] {
    const { holding, claiming, settling } = queues;
    return [...holding.splice(0), ...claiming.splice(0), ...settling.splice(0)];
  }
}
