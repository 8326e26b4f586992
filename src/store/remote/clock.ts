// Estimates the clock of a remote store from its answers. Never ahead of it: what has lapsed or expired by this clock has
// done so by the store's.

import type { Clock } from '../../core/clock.ts';
import type { Time } from '../../rules/state.ts';
import { toleranceMs } from '../clock-check.ts';

export interface RemoteClock {
  now(): Time;
  /** An instant of the store's clock. */
  at(wall: number): Time;
  /** How far the store's clock may be ahead of this one. */
  lagMs(): number;
  /** Takes the time from an answer to a question sent at `askedAt`. */
  learn(storeNow: number, askedAt: number): void;
  /** The store's clock was behind the estimate: start over. */
  forget(): void;
  /** A sentence if the store's clock cannot be trusted. */
  problem(): string | undefined;
}

/** How fast two good clocks may drift apart. */
const driftPerMs = 1e-4;

/** The store answers in whole milliseconds. */
const wholeMs = 1;

/** A restart of the database ends no attempt, so all leases belong to one boot. */
const boot = 'store';

/** `marginMs`: how far the store's clock may be ahead of the time in its answers, besides the round trip. */
export function remoteClock(clock: Clock, marginMs = 0): RemoteClock {
  /** The store's clock is at least this far ahead of our monotonic clock. */
  let ahead = Number.NEGATIVE_INFINITY;
  let learntAt = 0;
  let lag = marginMs;
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
      // Even if the store read its clock when the question was sent, it is behind the estimate: it was set back.
      const atMost = storeNow + wholeMs + marginMs - askedAt;
      if (atMost < ahead - (heardAt - learntAt) * driftPerMs) ahead = Number.NEGATIVE_INFINITY;
      if (atLeast >= ahead - (heardAt - learntAt) * driftPerMs) {
        ahead = atLeast;
        learntAt = heardAt;
        lag = Math.ceil(heardAt - askedAt) + marginMs;
      }
      judge(storeNow, heardAt);
    },
    forget() {
      ahead = Number.NEGATIVE_INFINITY;
    },
    problem: () => problem,
  };

  /** Comparing with both local clocks distinguishes a change of the store's clock from one of our own, or from sleep. */
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
