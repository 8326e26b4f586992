// After several failures in a row, new work is refused at once instead of waiting for a store that is down: one request
// a second probes whether it is back. Requests about an effect that already runs are always sent.

import type { Clock } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';
import type { EventHub } from './events.ts';

export interface Circuit {
  /** Throws while the store is known to be down. */
  refuseIfDown(): void;
  /** The store answered. */
  succeeded(): void;
  /** The store failed once; the request may be retried. */
  failed(error: SemelError): void;
  /** A request failed for good. */
  gaveUp(error: SemelError): void;
}

const failuresInARow = 3;
const probeEveryMs = 1_000;

export function createCircuit(clock: Clock, events: EventHub): Circuit {
  let failures = 0;
  let probedAt = Number.NEGATIVE_INFINITY;
  let last: SemelError | undefined;
  let downSince: number | undefined;

  return {
    refuseIfDown() {
      if (last === undefined || failures < failuresInARow) return;
      const retryAfterMs = Math.ceil(probedAt + probeEveryMs - clock.mono());
      if (retryAfterMs > 0) throw storeDownError(last, retryAfterMs);
      probedAt = clock.mono();
    },
    succeeded() {
      failures = 0;
      if (downSince === undefined) return;
      events.emit('storeUp', { downForMs: clock.mono() - downSince });
      downSince = undefined;
    },
    failed(error) {
      if (downSince !== undefined) return;
      downSince = clock.mono();
      events.emit('storeDown', { error: error.message });
    },
    gaveUp(error) {
      failures += 1;
      last = error;
      probedAt = clock.mono();
    },
  };
}

function storeDownError(last: SemelError, retryAfterMs: number): SemelError {
  return new SemelError(
    'STORE_UNAVAILABLE',
    `The store has failed ${failuresInARow} times in a row and was not tried again; the last error: ${last.happened}`,
    {
      next: last.correctiveAction,
      retryAfterMs,
      cause: last,
      ...(last.evidence && { evidence: last.evidence }),
    },
  );
}
