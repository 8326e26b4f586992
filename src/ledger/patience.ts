// How the ledger asks a store that may not answer: again, with the same token, for a bounded time. A store's
// every method is safe to repeat, so a lost reply costs nothing but the question.

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { createCircuit } from './circuit.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import type { EventHub } from './events.ts';

export interface Patience {
  /** About one record: answered within seconds, or STORE_UNAVAILABLE. */
  ask<Answer>(question: () => Promise<Answer>): Promise<Answer>;
  /** About many records, or before the store is ready: takes as long as it takes. */
  askLong<Answer>(question: () => Promise<Answer>): Promise<Answer>;
  /** For new work: refused at once while the store is known to be down. */
  askUnlessDown<Answer>(question: () => Promise<Answer>, asker?: Asker<Answer>): Promise<Answer>;
}

/** A store can take long to answer; its asker may have left by then, and what the store did must not be lost. */
export interface Asker<Answer> {
  /** Set when it asks: ends the wait with this error. */
  leave: ((error: SemelError) => void) | undefined;
  /** Hears of an answer that comes after it left. */
  answeredLate(answer: Answer): void;
  /** Hears of every failure: the store may have done what was asked. */
  failed(error: SemelError): void;
}

const maxTries = 4;
const firstPauseMs = 20;
/** A store that took so long to say no has had patience of its own. */
const longMs = 5_000;

export function createPatience(clock: Clock, random: Random, events: EventHub): Patience {
  const circuit = createCircuit(clock);
  const deadline = createDeadline(clock);
  let downSince: number | undefined;

  function up(): void {
    circuit.succeeded();
    if (downSince === undefined) return;
    events.emit('storeUp', { downForMs: clock.mono() - downSince });
    downSince = undefined;
  }

  function down(error: SemelError): void {
    if (downSince !== undefined) return;
    downSince = clock.mono();
    events.emit('storeDown', { error: error.message });
  }

  /** One promise for a question, its deadline, its repetitions and an asker who leaves: every call asks twice. */
  function askIn<Answer>(
    send: Deadline['within'],
    question: () => Promise<Answer>,
    asker?: Asker<Answer>,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      let tries = 1;
      let hasLeft = false;
      if (asker !== undefined)
        asker.leave = (error) => {
          hasLeft = true;
          reject(error);
        };
      const succeed = (answer: Answer) => {
        up();
        if (hasLeft) asker?.answeredLate(answer);
        else resolve(answer);
      };
      const giveUp = (error: SemelError) => {
        asker?.failed(error);
        reject(error);
      };
      const fail = (thrown: unknown) => {
        const error = asStoreError(thrown);
        // What is wrong with one record says nothing of the store.
        if (!error.retriable || error.code !== 'STORE_UNAVAILABLE') return giveUp(error);
        down(error);
        if (tries >= maxTries || clock.mono() - firstAskedAt > longMs) {
          circuit.failed(error);
          return giveUp(error);
        }
        tries += 1;
        const pauseMs = firstPauseMs * 2 ** (tries - 1) * (0.5 + random.fraction());
        void pause(clock, pauseMs).then(() => send(question, succeed, fail));
      };
      const firstAskedAt = clock.mono();
      send(question, succeed, fail);
    });
  }

  return {
    ask: (question) => askIn(deadline.within, question),
    askLong: (question) => askIn(unbounded, question),
    askUnlessDown(question, asker) {
      try {
        circuit.enter();
      } catch (error) {
        return Promise.reject(error);
      }
      return askIn(deadline.within, question, asker);
    },
  };
}

const unbounded: Deadline['within'] = (question, succeed, fail) => {
  try {
    question().then(succeed, fail);
  } catch (thrown) {
    fail(thrown);
  }
};

/** A store of one's own may throw anything: nothing was recorded, so nothing may run. */
function asStoreError(thrown: unknown): SemelError {
  if (isSemelError(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SemelError('STORE_UNAVAILABLE', `The store failed: ${message}.`, { cause: thrown });
}

/** Sleeps until the timeout or the first abort. */
export function pause(
  clock: Clock,
  ms: number,
  signals: readonly (AbortSignal | undefined)[] = [],
  background?: 'background',
): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted)) return resolve();
    const end = () => {
      clock.clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimeout(end, ms, background);
    for (const signal of signals) signal?.addEventListener('abort', end);
  });
}
