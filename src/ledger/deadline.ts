// How long an answer of a store is waited for. Our own stores give up by themselves, earlier and with a better reason;
// a store of one's own may never answer.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';

export interface Deadline {
  /** Gives the answer or the failure to one of the two; after the deadline to neither. */
  within<Answer>(
    question: () => Promise<Answer>,
    succeed: (answer: Answer) => void,
    fail: (thrown: unknown) => void,
  ): void;
}

interface Waiting {
  until: number;
  giveUp(): void;
}

const limitMs = 15_000;
/** A timer this late means that the process was stopped or blocked. Answers that came meanwhile are delivered after it. */
const lateMs = 1_000;

const outside = AsyncLocalStorage.snapshot();

/** One timer for all that is asked: to set and clear one for each call would cost more than the bookkeeping. */
export function createDeadline(clock: Clock): Deadline {
  const waiting = new Set<Waiting>();
  let isArmed = false;
  let dueAt = 0;

  function arm(ms: number): void {
    isArmed = true;
    dueAt = clock.mono() + ms;
    // One timer for all callers: the one that happens to arm it must not lend its context to the listeners of others.
    outside(() => clock.setTimeout(giveUpLate, ms, 'background'));
  }

  function giveUpLate(): void {
    isArmed = false;
    const now = clock.mono();
    if (now - dueAt > lateMs) for (const one of waiting) one.until = Math.max(one.until, now + lateMs);
    for (const one of waiting) {
      // In the order in which they began, and each waits equally long.
      if (one.until > now) {
        arm(one.until - now);
        return;
      }
      waiting.delete(one);
      one.giveUp();
    }
  }

  return {
    within(question, succeed, fail) {
      const one: Waiting = { until: clock.mono() + limitMs, giveUp: () => fail(noAnswer()) };
      waiting.add(one);
      if (!isArmed) arm(limitMs);
      let answer: ReturnType<typeof question>;
      try {
        answer = question();
      } catch (thrown) {
        waiting.delete(one);
        return fail(thrown);
      }
      answer.then(
        (value) => {
          if (waiting.delete(one)) succeed(value);
        },
        (thrown) => {
          if (waiting.delete(one)) fail(thrown);
        },
      );
    },
  };
}

function noAnswer(): SemelError {
  return new SemelError('STORE_UNAVAILABLE', `The store has not answered within ${limitMs / 1_000} seconds.`);
}
