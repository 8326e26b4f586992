// Chance by seed: the only source of randomness of a simulation, so that a seed is a history.

export interface Chance {
  /** In [0, 1). */
  fraction(): number;
  /** A whole number in [0, below). */
  below(below: number): number;
  /** A whole number in [from, to]. */
  between(from: number, to: number): number;
  /** True with this probability. */
  happens(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

export function chance(seed: number): Chance {
  // Neighbouring seeds must not give neighbouring histories: the seed is mixed before it is used.
  let state = mixed(seed);

  /** mulberry32: 32 bits of state are plenty for the few hundred numbers of one history. */
  function fraction(): number {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), 1 | state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return ((word ^ (word >>> 14)) >>> 0) / 4294967296;
  }

  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    fraction,
    below,
    between: (from, to) => from + below(to - from + 1),
    happens: (probability) => probability > 0 && fraction() < probability,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
  };
}

function mixed(seed: number): number {
  let word = (seed ^ 0x9e3779b9) | 0;
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return (word ^ (word >>> 16)) | 0;
}
