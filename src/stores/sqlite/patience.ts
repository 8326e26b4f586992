// How a locked database is waited for: asynchronously, with jitter, and not for ever. SQLite's own waiting blocks the
// event loop and lets some processes starve.

import type { Clock, Random } from '../../core/clock.ts';
import { kindOf } from './failure.ts';

export interface PatienceOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly busyMs: number;
}

export interface Patience {
  /** Runs something again until it does not find the database locked, or the patience is over. */
  unlocked<T>(run: () => T): Promise<T>;
  /** Whoever has had the lock lets the others go first. */
  courtesy(): Promise<void>;
}

/** A transaction is over after about a millisecond. Who has waited long asks more often than who has just come. */
const longestMs = 3;
const shortestMs = 1;

export function patience({ clock, random, busyMs }: PatienceOptions): Patience {
  return {
    async unlocked(run) {
      let since: number | undefined;
      for (let tries = 0; ; tries += 1) {
        try {
          return run();
        } catch (error) {
          const kind = kindOf(error);
          // Another task of this program may be about to end its transaction.
          if (kind !== 'busy' && kind !== 'in transaction') throw error;
          since ??= clock.mono();
          if (clock.mono() - since >= busyMs) throw error;
        }
        await pause(Math.max(shortestMs, longestMs - tries / 8));
      }
    },
    courtesy: () => pause(longestMs),
  };

  function pause(longest: number): Promise<void> {
    return new Promise((resolve) => clock.setTimeout(resolve, random.fraction() * longest));
  }
}

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * A read finds the database locked only while another process repairs the log after a crash: that is over in a
 * moment, and not worth making every read asynchronous.
 */
export function readUnlocked<T>(read: () => T): T {
  for (let tries = 0; ; tries += 1) {
    try {
      return read();
    } catch (error) {
      if (kindOf(error) !== 'busy' || tries >= 200) throw error;
      Atomics.wait(cell, 0, 0, 1);
    }
  }
}
