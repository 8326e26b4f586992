// What a storm must at least have gone through to count, for the kills that it was asked for: about a third of what the
// slowest machine seen so far has reached.

import type { Effort } from '../../../src/testing/checker/index.ts';

export function minimumOf(kills: number): Partial<Effort> {
  return {
    deaths: kills,
    successes: kills,
    replays: kills,
    takeovers: Math.ceil(kills / 4),
    fenced: Math.ceil(kills / 20),
    doubts: Math.ceil(kills / 10),
    verdicts: Math.ceil(kills / 10),
  };
}
