// The storms that can be asked for: what each does for a given number, and what it must have gone through to count.

import type { Effort } from '../../support/checker/index.ts';
import type { FaultCounts } from './faults.ts';
import { minimumOf } from './minimum.ts';

export interface Kind {
  readonly title: string;
  /** In the words of the command line, and how many if it does not say. */
  readonly counts: string;
  readonly usually: number;
  readonly workers: number;
  readonly faultEveryMs: number;
  faults(count: number): FaultCounts;
  minimum(count: number): Partial<Effort>;
}

export const kinds = {
  kill: {
    title: 'The kill storm',
    counts: 'kills',
    usually: 1_000,
    workers: 8,
    faultEveryMs: 120,
    faults: (kills) => ({ kill: kills, stop: Math.floor(kills / 4) }),
    minimum: minimumOf,
  },
  'server-crash': {
    title: 'Crashes of the server',
    counts: 'crashes',
    usually: 200,
    workers: 4,
    // Time for the workers to find it again.
    faultEveryMs: 700,
    faults: (crashes) => ({ crash: crashes, pause: Math.floor(crashes / 5) }),
    minimum: (crashes) => ({ successes: 5 * crashes, replays: 5 * crashes }),
  },
  clock: {
    title: 'Clocks that are set forward and back',
    counts: 'moves',
    usually: 200,
    workers: 4,
    faultEveryMs: 400,
    faults: (moves) => ({
      clock: moves,
      workerClock: moves,
      kill: Math.floor(moves / 4),
      stop: Math.floor(moves / 8),
    }),
    minimum: (moves) => ({ successes: moves, replays: moves }),
  },
} as const satisfies Record<string, Kind>;

export type KindName = keyof typeof kinds;
