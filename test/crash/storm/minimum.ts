// What a storm must at least have gone through to count, for the kills that it was asked for.

import type { Effort } from '../../support/checker/index.ts';

export function minimumOf(kills: number): Partial<Effort> {
  return {
    deaths: kills,
    successes: Math.max(1_000, kills),
    replays: kills,
    takeovers: Math.max(30, Math.ceil(kills / 4)),
    fenced: Math.max(10, Math.ceil(kills / 20)),
    doubts: Math.max(5, Math.ceil(kills / 10)),
    verdicts: Math.ceil(kills / 10),
  };
}
