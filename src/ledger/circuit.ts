// When a store has failed several times in a row, new work is refused at once instead of waiting for it: one question
// a second finds out whether it is back. What concerns an effect that is under way is always asked.

import type { Clock } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';

export interface Circuit {
  /** Throws where the store need not be asked. */
  enter(): void;
  failed(error: SemelError): void;
  succeeded(): void;
}

const failuresInARow = 3;
const probeEveryMs = 1_000;

export function createCircuit(clock: Clock): Circuit {
  let failures = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let last: SemelError | undefined;

  return {
    enter() {
      if (last === undefined || failures < failuresInARow) return;
      const retryAfterMs = Math.ceil(askedAt + probeEveryMs - clock.mono());
      if (retryAfterMs > 0) throw refusal(last, retryAfterMs);
      askedAt = clock.mono();
    },
    failed(error) {
      failures += 1;
      last = error;
      askedAt = clock.mono();
    },
    succeeded() {
      failures = 0;
    },
  };
}

function refusal(last: SemelError, retryAfterMs: number): SemelError {
  return new SemelError(
    'STORE_UNAVAILABLE',
    `The store has failed ${failuresInARow} times in a row and was not asked again; the last time: ${last.happened}`,
    {
      next: last.correctiveAction,
      retryAfterMs,
      cause: last,
      ...(last.evidence && { evidence: last.evidence }),
    },
  );
}
