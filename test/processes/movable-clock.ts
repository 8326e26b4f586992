// The machine's clock, ahead by as much as a test says: a lease or a window is over without anybody waiting for it.
// Timers run at their own pace.

import { type Clock, systemClock } from '../../src/index.ts';

export interface MovableClock extends Clock {
  advance(ms: number): void;
}

export function movableClock(aheadMs = 0): MovableClock {
  let ahead = aheadMs;
  return {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    mono: () => systemClock.mono() + ahead,
    advance(ms) {
      ahead += ms;
    },
  };
}
