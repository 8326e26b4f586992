// The store's time (rule 7): leases by the boot's monotonic clock, windows by the wall clock while it can be trusted.

import type { Clock } from '../../../core/clock.ts';
import type { Time } from '../../../rules/state.ts';
import { shortenBootId } from '../../../store/boot.ts';
import { type Anchor, anchorAt, judge, type Reading, toleranceMs } from '../../../store/clock-check.ts';
import type { Machine } from '../machine.ts';

export interface Timekeeper {
  /** Outside a transaction: by the anchor that was seen last. */
  now(): Time;
  /** Inside a transaction, after the lock was taken: by the anchor that is stored. */
  nowBy(stored: Anchor | undefined): Time;
  /** What the stored anchor should become; undefined where it stands. */
  correction(): Anchor | undefined;
  /** Where wall clock and uptime stand now, whatever was believed before. */
  anchorNow(): Anchor;
  /** A sentence while the wall clock cannot be trusted. */
  problem(): string | undefined;
}

/** A step of the wall clock shows as a change of its distance to the monotonic clock. */
const stepMs = 1000;
const judgeEveryMs = 30_000;

const advice =
  'Until they agree again nothing expires. Correct the clock, or accept it as it is with `acceptClock()`.';

export function timekeeper(clock: Clock, machine: Machine): Timekeeper {
  let bootId: string | undefined;
  let boot = '';
  let stored: Anchor | undefined;
  let verdict: ReturnType<typeof judge> | undefined;
  let judgedAt = 0;
  let distance = 0;

  return {
    now,
    nowBy(anchor) {
      if (!isSame(anchor, stored)) {
        stored = anchor;
        verdict = undefined;
      }
      return now();
    },
    correction: () => (verdict === undefined || verdict.anchor === stored ? undefined : verdict.anchor),
    anchorNow: () => anchorAt(read(Math.floor(clock.now()))),
    problem() {
      now();
      return verdict?.problem && `${verdict.problem} ${advice}`;
    },
  };

  function now(): Time {
    const wall = Math.floor(clock.now());
    const mono = clock.mono();
    // The uptime is a file to read, so it is asked for only where the answer can have changed.
    const isStale = Math.abs(wall - mono - distance) > stepMs || mono - judgedAt > judgeEveryMs;
    if (verdict === undefined || isStale) {
      verdict = judge(stored, read(wall));
      judgedAt = mono;
      distance = wall - mono;
    }
    return { wall, mono, boot, steady: verdict.steady };
  }

  function read(wall: number): Reading {
    const uptime = Math.floor(machine.uptimeMs());
    const id = machine.bootId();
    if (id === undefined) boot = nameByInstant(wall - uptime);
    else if (id !== bootId) boot = shortenBootId(id);
    bootId = id;
    return { boot, wall, uptime };
  }

  /** Two processes never compute quite the same instant, so a boot keeps the name that its first one wrote down. */
  function nameByInstant(bootedAt: number): string {
    if (stored !== undefined && Math.abs(stored.wall - stored.uptime - bootedAt) <= toleranceMs)
      return stored.boot;
    // A process does not outlive a boot: when the instant moves, the wall clock was set.
    return boot || shortenBootId(`booted at ${bootedAt}`);
  }
}

function isSame(a: Anchor | undefined, b: Anchor | undefined): boolean {
  return a?.boot === b?.boot && a?.wall === b?.wall && a?.uptime === b?.uptime && a?.seen === b?.seen;
}
