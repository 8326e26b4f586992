// Waits for a locked database: asynchronously, with jitter, up to a limit. SQLite's own busy timeout blocks the event loop
// and can starve a process.

import type { Clock, Random } from '../../../core/clock.ts';
import { classifyFailure } from '../failure.ts';

interface LockWaitOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly busyMs: number;
}

export interface LockWait {
  /** Calls `then` once `lock` succeeds, or `fail` after the time limit. */
  locked(lock: () => void, then: () => void, fail: (error: unknown) => void): void;
  /** Retries `run` while the database is locked, up to the time limit. */
  whenUnlocked<T>(run: () => T): Promise<T>;
  /** Gives other processes a chance to take the lock first. */
  yieldLock(then: () => void): void;
}

/** A transaction takes about a millisecond. The longer a process has waited, the more often it tries. */
const longestMs = 3;
const shortestMs = 1;

export function createLockWait({ clock, random, busyMs }: LockWaitOptions): LockWait {
  return {
    locked,
    whenUnlocked: <T>(run: () => T) =>
      new Promise<T>((resolve, reject) => {
        let answer: T;
        const lock = () => {
          answer = run();
        };
        locked(lock, () => resolve(answer), reject);
      }),
    yieldLock: (then) => void clock.setTimeout(then, random.fraction() * longestMs),
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
  const kind = classifyFailure(error);
  // The user's transaction on this handle may be about to end.
  return kind === 'busy' || kind === 'in transaction';
}

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Reads find the database locked only while another process recovers the log after a crash. That is too short to make
 * every read asynchronous.
 */
export function readWhenUnlocked<From, T>(read: (from: From) => T, from: From): T {
  for (let tries = 0; ; tries += 1) {
    try {
      return read(from);
    } catch (error) {
      if (classifyFailure(error) !== 'busy' || tries >= 200) throw error;
      Atomics.wait(cell, 0, 0, 1);
    }
  }
}
