// Whether the wall clock can be trusted to end a window. A store without a clock of its own compares it with the machine's
// uptime, which no change of the wall clock moves. Pure: the store reads the clocks and keeps the anchor.

/** Wall clock and uptime read together once, and the latest wall clock that was trusted. */
export interface Anchor {
  readonly boot: string;
  readonly wall: number;
  readonly uptime: number;
  readonly seen: number;
}

export interface Reading {
  readonly boot: string;
  /** Wall clock in milliseconds. */
  readonly wall: number;
  /** Milliseconds since boot, including sleep. */
  readonly uptime: number;
}

export interface Judgement {
  readonly steady: boolean;
  /** What to store from now on; the same object if nothing is worth writing. */
  readonly anchor: Anchor;
  readonly problem?: string;
}

/** How far wall clock and uptime may drift apart. */
export const toleranceMs: number = 2 * 60_000;
/** How stale `seen` may get before it is worth a write. */
const seenEveryMs = 60_000;
/** How often to re-anchor: small corrections of the wall clock must not add up. */
const anchorEveryMs = 24 * 3_600_000;

export function judge(anchor: Anchor | undefined, reading: Reading): Judgement {
  if (anchor === undefined) return { steady: true, anchor: anchorAt(reading) };

  if (anchor.boot !== reading.boot) {
    const behindMs = anchor.seen - reading.wall;
    if (behindMs <= toleranceMs) return { steady: true, anchor: anchorAt(reading) };
    return {
      steady: false,
      anchor,
      problem: `Since the machine was restarted, its clock is ${duration(behindMs)} behind what the ledger has already seen.`,
    };
  }

  const driftMs = reading.wall - anchor.wall - (reading.uptime - anchor.uptime);
  if (Math.abs(driftMs) > toleranceMs) {
    const direction = driftMs > 0 ? 'ahead of' : 'behind';
    return {
      steady: false,
      anchor,
      problem: `The clock is ${duration(Math.abs(driftMs))} ${direction} where the machine's uptime says it should be.`,
    };
  }
  if (reading.uptime - anchor.uptime >= anchorEveryMs) return { steady: true, anchor: anchorAt(reading) };
  const isWorthWriting = reading.wall - anchor.seen >= seenEveryMs;
  return { steady: true, anchor: isWorthWriting ? { ...anchor, seen: reading.wall } : anchor };
}

export function anchorAt({ boot, wall, uptime }: Reading): Anchor {
  return { boot, wall, uptime, seen: wall };
}

function duration(ms: number): string {
  const units: [string, number][] = [
    ['days', 86_400_000],
    ['hours', 3_600_000],
    ['minutes', 60_000],
  ];
  const [name, length] = units.find(([, unit]) => ms >= 2 * unit) ?? ['minutes', 60_000];
  return `${Math.round(ms / length)} ${name}`;
}
