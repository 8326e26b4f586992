// Retention without anybody's doing: expired records are removed in small batches, seldom and in the background.
// No rule depends on it, so whatever goes wrong is left for the next time.

import type { Clock, Random } from '../core/clock.ts';
import type { Ledger } from '../ledger/index.ts';

interface Housekeeping {
  start(): void;
  /** A program that never runs long enough for the timer does its share at the end, one time in many. */
  finish(): Promise<void>;
}

const everyMs = 10 * 60_000;
const batch = 200;
const betweenMs = 20;
const shareAtTheEnd = 0.05;

export function createHousekeeping(ledger: Ledger, clock: Clock, random: Random): Housekeeping {
  let timer: unknown;
  let isOver = false;

  function after(ms: number, work: () => Promise<unknown>): void {
    if (isOver) return;
    timer = clock.setTimeout(() => void work(), ms, 'background');
  }

  /** Batch after batch while they come back full, so that it keeps up with any rate; calls come in between. */
  async function round(): Promise<void> {
    const pruned = await ledger.prune(batch).catch(() => 0);
    after(pruned < batch ? everyMs : betweenMs, round);
  }

  return {
    start() {
      if (timer === undefined) after(everyMs, round);
    },
    async finish() {
      isOver = true;
      clock.clearTimeout(timer);
      if (timer !== undefined && random.fraction() < shareAtTheEnd)
        await ledger.prune(batch).catch(() => undefined);
    },
  };
}
