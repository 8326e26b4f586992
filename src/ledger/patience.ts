// How the ledger asks a store that may not answer: again, with the same token, for a bounded time. A store's
// every method is safe to repeat, so a lost reply costs nothing but the question.

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { createCircuit } from './circuit.ts';
import { createDeadline } from './deadline.ts';
import type { EventHub } from './events.ts';

export interface Patience {
  /** About one record: answered within seconds, or STORE_UNAVAILABLE. */
  ask<Answer>(question: () => Promise<Answer>): Promise<Answer>;
  /** About many records, or before the store is ready: takes as long as it takes. */
  askLong<Answer>(question: () => Promise<Answer>): Promise<Answer>;
  /** For new work: refused at once while the store is known to be down. */
  askUnlessDown<Answer>(question: () => Promise<Answer>): Promise<Answer>;
}

const tries = 4;
const firstPauseMs = 20;
/** A store that took so long to say no has had patience of its own. */
const longMs = 5_000;

export function createPatience(clock: Clock, random: Random, events: EventHub): Patience {
  const circuit = createCircuit(clock);
  const withinDeadline = createDeadline(clock);
  let downSince: number | undefined;

  const ask = <Answer>(question: () => Promise<Answer>) => askLong(() => withinDeadline(question()));

  async function askLong<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    const askedAt = clock.mono();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await question();
        circuit.succeeded();
        if (downSince !== undefined) {
          events.emit('storeUp', { downForMs: clock.mono() - downSince });
          downSince = undefined;
        }
        return answer;
      } catch (thrown) {
        const error = asStoreError(thrown);
        // What is wrong with one record says nothing of the store.
        if (!error.retriable || error.code !== 'STORE_UNAVAILABLE') throw error;
        if (downSince === undefined) {
          downSince = clock.mono();
          events.emit('storeDown', { error: error.message });
        }
        if (attempt >= tries || clock.mono() - askedAt > longMs) {
          circuit.failed(error);
          throw error;
        }
        await pause(clock, firstPauseMs * 2 ** attempt * (0.5 + random.fraction()));
      }
    }
  }

  return {
    ask,
    askLong,
    async askUnlessDown(question) {
      circuit.enter();
      return ask(question);
    },
  };
}

/** A store of one's own may throw anything: nothing was recorded, so nothing may run. */
function asStoreError(thrown: unknown): SemelError {
  if (isSemelError(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SemelError('STORE_UNAVAILABLE', `The store failed: ${message}.`, { cause: thrown });
}

/** Waits, or less where one of the signals aborts. */
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
