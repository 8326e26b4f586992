// The store's time (rule 7): leases use the boot's monotonic clock, windows the wall clock while it can be trusted.

import type { Clock } from '../../../core/clock.ts';
import type { Time } from '../../../rules/state.ts';
import { shortenBootId } from '../../../store/boot.ts';
import { type Anchor, anchorAt, judge, type Reading, toleranceMs } from '../../../store/clock-check.ts';
import type { Machine } from '../machine.ts';

export interface Timekeeper {
  /** Outside a transaction: judged by the last anchor seen. */
  now(): Time;
  /** Under the lock: judged by the stored anchor. */
  nowWith(stored: Anchor | undefined): Time;
  /** The anchor to store; undefined if the stored one is still right. */
  correction(): Anchor | undefined;
  /** A new anchor from the current wall clock and uptime. */
  anchorNow(): Anchor;
  /** A sentence while the wall clock cannot be trusted. */
  problem(): string | undefined;
}

/** The wall clock was set if its distance to the monotonic clock changed by more than this. */
const stepMs = 1000;
const judgeEveryMs = 30_000;

const advice =
  'Nothing expires until they agree again. Correct the clock, or accept it as it is with `acceptClock()`.';

export function createTimekeeper(clock: Clock, machine: Machine): Timekeeper {
  let bootId: string | undefined;
  let boot = '';
  let stored: Anchor | undefined;
  let verdict: ReturnType<typeof judge> | undefined;
  let judgedAt = 0;
  let distance = 0;

  return {
    now,
    nowWith(anchor) {
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
    // Reading the uptime means reading a file, so do it only when the verdict may have changed.
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
    if (id === undefined) boot = nameBoot(wall - uptime);
    else if (id !== bootId) boot = shortenBootId(id);
    bootId = id;
    return { boot, wall, uptime };
  }

  /** No two processes compute exactly the same instant, so a boot keeps the name that the first one stored. */
  function nameBoot(bootedAt: number): string {
    if (stored !== undefined && Math.abs(stored.wall - stored.uptime - bootedAt) <= toleranceMs)
      return stored.boot;
    // A process cannot outlive a boot: if the instant moves, the wall clock was set.
    return boot || shortenBootId(`booted at ${bootedAt}`);
  }
}

function isSame(a: Anchor | undefined, b: Anchor | undefined): boolean {
  return a?.boot === b?.boot && a?.wall === b?.wall && a?.uptime === b?.uptime && a?.seen === b?.seen;
}
