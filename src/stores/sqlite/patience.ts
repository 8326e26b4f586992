// How a locked database is waited for: asynchronously, with jitter, and not for ever. SQLite's own waiting blocks the
// event loop and lets some processes starve.

import type { Clock, Random } from '../../core/clock.ts';
import { kindOf } from './failure.ts';

export interface PatienceOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly busyMs: number;
}

/** Runs something again until it does not find the database locked, or the patience is over. */
export type Unlocked = <T>(run: () => T) => Promise<T>;

/** A transaction of another process is over after about a millisecond; a wait grows to a few of them. */
const longestMs = 8;

export function patience({ clock, random, busyMs }: PatienceOptions): Unlocked {
  return async (run) => {
    let since: number | undefined;
    for (let tries = 0; ; tries += 1) {
      try {
        return run();
      } catch (error) {
        if (kindOf(error) !== 'busy') throw error;
        since ??= clock.mono();
        if (clock.mono() - since >= busyMs) throw error;
      }
      const ms = random.fraction() * Math.min(2 ** tries, longestMs);
      await new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
    }
  };
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
