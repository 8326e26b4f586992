// Removes expired records in the background, rarely and in small batches. No rule depends on it, so it ignores errors and
// tries again next time.

import type { Clock, Random } from '../core/clock.ts';
import { type Ledger, sleep } from '../ledger/index.ts';

interface Housekeeping {
  start(): void;
  /** A program too short for the timer prunes at its end instead, one time in twenty. */
  finish(): Promise<void>;
}

const everyMs = 10 * 60_000;
const batch = 200;
const betweenMs = 20;
const shareAtTheEnd = 0.05;
const longestEndMs = 5_000;

export function createHousekeeping(ledger: Ledger, clock: Clock, random: Random): Housekeeping {
  let timer: unknown;
  let isOver = false;

  function after(ms: number, work: () => Promise<unknown>): void {
    if (isOver) return;
    timer = clock.setTimeout(() => void work(), ms, 'background');
  }

  /** Prunes batch after batch while they are full, to keep up with any rate, and lets calls in between. */
  async function round(): Promise<void> {
    const pruned = await ledger.prune(batch, true).catch(() => 0);
    after(pruned < batch ? everyMs : betweenMs, round);
  }

  return {
    start() {
      if (timer === undefined) after(everyMs, round);
    },
    async finish() {
      isOver = true;
      clock.clearTimeout(timer);
      if (timer === undefined || random.fraction() >= shareAtTheEnd) return;
      const pruned = new AbortController();
      const end = () => pruned.abort();
      ledger.prune(batch, true).then(end, end);
      // `prune` has no deadline, and a store that hangs must not keep the program from ending.
      await sleep(clock, longestEndMs, [pruned.signal]);
    },
  };
}
