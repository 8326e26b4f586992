// Retention without anybody's doing: expired records are removed in small batches, seldom and in the background.
// No rule depends on it, so whatever goes wrong is left for the next time.

import type { Clock, Random } from '../core/clock.ts';
import type { Ledger } from '../ledger/index.ts';

export interface Housekeeping {
  start(): void;
  /** A program that never runs long enough for the timer does its share at the end, one time in many. */
  finish(): Promise<void>;
}

const everyMs = 10 * 60_000;
const batch = 200;
const batchesAtOnce = 20;
const shareAtTheEnd = 0.05;

export function createHousekeeping(ledger: Ledger, clock: Clock, random: Random): Housekeeping {
  let timer: unknown;

  async function prune(batches: number): Promise<void> {
    for (let n = 0; n < batches; n += 1) if ((await ledger.prune(batch)) < batch) return;
  }

  function start(): void {
    timer ??= clock.setTimeout(
      () => {
        timer = undefined;
        void prune(batchesAtOnce).then(start, start);
      },
      everyMs,
      'background',
    );
  }

  return {
    start,
    async finish() {
      const wasUsed = timer !== undefined;
      clock.clearTimeout(timer);
      if (wasUsed && random.fraction() < shareAtTheEnd) await prune(1).catch(() => undefined);
    },
  };
}
