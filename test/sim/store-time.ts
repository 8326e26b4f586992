// The store host's clocks: an uptime that nothing moves, a wall clock that jumps, and the production anchor that
// decides whether the wall clock may be believed.

import type { Time } from '../../src/rules/state.ts';
import { type Anchor, judge } from '../../src/store/clock-check.ts';
import type { Scheduler } from './scheduler.ts';

/** Where the simulated wall clocks start. */
export const epoch = Date.UTC(2026, 5, 19);

export interface StoreTime {
  read(): Time;
  /** Steps of the wall clock, by which it is off from now on. */
  setOffset(ms: number): void;
  /** The machine was started again: its processes are gone, and so are their leases. */
  reboot(): void;
  readonly steady: boolean;
}

export function createStoreTime(scheduler: Scheduler): StoreTime {
  let offset = 0;
  let boots = 1;
  let bootedAt = 0;
  let anchor: Anchor | undefined;

  function read(): Time {
    const boot = `boot ${boots}`;
    const mono = scheduler.now - bootedAt;
    const reading = { boot, wall: epoch + scheduler.now + offset, uptime: mono };
    const judgement = judge(anchor, reading);
    anchor = judgement.anchor;
    return { wall: reading.wall, mono, boot, steady: judgement.steady };
  }

  return {
    read,
    setOffset(ms) {
      // The anchor has seen the clock before it jumped, as every step of a store in use makes sure.
      read();
      offset = ms;
    },
    reboot() {
      read();
      // A clock that is wrong ahead and stays so is believed by the next boot: it looks like a long sleep. That is a
      // limit of a store without a clock of its own; here the machine asks for the time when it starts.
      offset = 0;
      boots += 1;
      bootedAt = scheduler.now;
    },
    get steady() {
      return read().steady;
    },
  };
}
