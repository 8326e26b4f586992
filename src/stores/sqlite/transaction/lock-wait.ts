// How a locked database is waited for: asynchronously, with jitter, and not for ever. SQLite's own waiting blocks the
// event loop and lets some processes starve.

import type { Clock, Random } from '../../../core/clock.ts';
import { kindOf } from '../failure.ts';

export interface PatienceOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly busyMs: number;
}

export interface Patience {
  /** Takes the lock and goes on at once, or as soon as nobody else has it; fails where the patience is over. */
  locked(lock: () => void, then: () => void, fail: (error: unknown) => void): void;
  /** Runs something again until it does not find the database locked, or the patience is over. */
  unlocked<T>(run: () => T): Promise<T>;
  /** Whoever has had the lock lets the others go first. */
  courtesy(then: () => void): void;
}

/** A transaction is over after about a millisecond. Who has waited long asks more often than who has just come. */
const longestMs = 3;
const shortestMs = 1;

export function patience({ clock, random, busyMs }: PatienceOptions): Patience {
  return {
    locked,
    unlocked: <T>(run: () => T) =>
      new Promise<T>((resolve, reject) => {
        let answer: T;
        const lock = () => {
          answer = run();
        };
        locked(lock, () => resolve(answer), reject);
      }),
    courtesy: (then) => void clock.setTimeout(then, random.fraction() * longestMs),
  };

  function locked(
    lock: () => void,
    then: () => void,
    fail: (error: unknown) => void,
    tries = 0,
    since = clock.mono(),
  ): void {
    try {
      lock();
    } catch (error) {
      if (!isLocked(error) || clock.mono() - since >= busyMs) {
        fail(error);
        return;
      }
      const longest = Math.max(shortestMs, longestMs - tries / 8);
      clock.setTimeout(() => locked(lock, then, fail, tries + 1, since), random.fraction() * longest);
      return;
    }
    then();
  }
}

function isLocked(error: unknown): boolean {
  const kind = kindOf(error);
  // Another task of this program may be about to end its transaction.
  return kind === 'busy' || kind === 'in transaction';
}

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * A read finds the database locked only while another process repairs the log after a crash: that is over in a
 * moment, and not worth making every read asynchronous.
 */
export function readUnlocked<From, T>(read: (from: From) => T, from: From): T {
  for (let tries = 0; ; tries += 1) {
    try {
      return read(from);
    } catch (error) {
      if (kindOf(error) !== 'busy' || tries >= 200) throw error;
      Atomics.wait(cell, 0, 0, 1);
    }
  }
}
