// What time it is at a store that has to be asked. Never later than it is there: what has lapsed or expired by this
// clock has done so by the store's too. Every answer of the store brings its time along.

import type { Clock } from '../../core/clock.ts';
import type { Time } from '../../rules/state.ts';
import { toleranceMs } from '../clock-check.ts';

export interface RemoteClock {
  now(): Time;
  /** An instant by that clock. */
  at(wall: number): Time;
  /** By how much the store's clock may be ahead of this one, in milliseconds. */
  lagMs(): number;
  /** The store said so in answer to what was asked then. */
  learn(storeNow: number, askedAt: number): void;
  /** The store's clock was before what was thought: what is known of it starts anew. */
  forget(): void;
  /** A sentence while the store's clock cannot be trusted. */
  problem(): string | undefined;
}

/** How fast two good clocks may drift apart. */
const driftPerMs = 1e-4;

/** The store tells whole milliseconds. */
const wholeMs = 1;

/** No restart of a database ends an attempt, so all leases are of one boot. */
const boot = 'store';

export function remoteClock(clock: Clock): RemoteClock {
  /** The store's time is at least that of our monotonic clock and this. */
  let ahead = Number.NEGATIVE_INFINITY;
  let learntAt = 0;
  let lag = 0;
  let first: { readonly store: number; readonly mono: number } | undefined;
  let problem: string | undefined;

  const at = (wall: number): Time => ({ wall, mono: wall, boot, steady: problem === undefined });

  return {
    now: () => at(Math.floor(clock.mono() + ahead)),
    at,
    lagMs: () => lag,
    learn(storeNow, askedAt) {
      const heardAt = clock.mono();
      const atLeast = storeNow - heardAt;
      // Even if it was read when it was asked for, it was before what was thought: the store's clock was set back.
      const atMost = storeNow + wholeMs - askedAt;
      if (atMost < ahead - (heardAt - learntAt) * driftPerMs) ahead = Number.NEGATIVE_INFINITY;
      if (atLeast >= ahead - (heardAt - learntAt) * driftPerMs) {
        ahead = atLeast;
        learntAt = heardAt;
        lag = Math.ceil(heardAt - askedAt);
      }
      judge(storeNow, heardAt);
    },
    forget() {
      ahead = Number.NEGATIVE_INFINITY;
    },
    problem: () => problem,
  };

  /** A step of the store's clock is told from our own machine's sleep or step by asking both of our clocks. */
  function judge(storeNow: number, mono: number): void {
    first ??= { store: storeNow, mono };
    const driftMs = storeNow - first.store - (mono - first.mono);
    const offMs = storeNow - clock.now();
    if (Math.abs(driftMs) <= toleranceMs) problem = undefined;
    else if (Math.abs(offMs) <= toleranceMs) {
      first = { store: storeNow, mono };
      problem = undefined;
    } else {
      const direction = driftMs > 0 ? 'forward' : 'back';
      problem =
        `The store's clock was set ${direction} by ${Math.round(Math.abs(driftMs) / 60_000)} minutes, and this ` +
        "machine's disagrees with it. Until they agree again nothing expires. Correct the clock that is wrong.";
    }
  }
}
