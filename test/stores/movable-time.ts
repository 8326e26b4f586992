// A clock that stands still until a test moves it, as a store's own time and as the clock of a process.

import type { Clock } from '../../src/core/clock.ts';
import type { Time } from '../../src/store/index.ts';

export interface MovableTime {
  /** For stores that keep time themselves. */
  readonly clock: Clock;
  /** For stores that are told what time it is. */
  time(): Time;
  advance(ms: number): void;
  unsteady(on: boolean, offMs: number): void;
  reboot(): void;
}

export function movableTime(): MovableTime {
  let wall = Date.UTC(2026, 5, 19, 9, 2);
  let mono = 1_000_000;
  let off = 0;
  let steady = true;
  let boots = 1;
  return {
    clock: {
      now: () => wall + off,
      mono: () => mono,
      // Only waiting for a lock is timed by the store itself, and that is real.
      setTimeout: (run, ms) => setTimeout(run, ms).unref(),
      clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
    },
    time: () => ({ wall: wall + off, mono, boot: `boot ${boots}`, steady }),
    advance(ms) {
      wall += ms;
      mono += ms;
    },
    unsteady(on, offMs) {
      steady = !on;
      off = on ? offMs : 0;
    },
    reboot() {
      boots += 1;
      mono = 5_000;
      wall += 30_000;
    },
  };
}
