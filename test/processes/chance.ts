// Chance by a seed, so that a run can be had again as far as processes allow.

export interface Chance {
  /** In [0, 1). */
  fraction(): number;
  /** From 0 up to, not including, `below`. */
  whole(below: number): number;
  between(least: number, most: number): number;
  is(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
}

/** mulberry32: small, and good enough for choosing whom to kill. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (below: number) => Math.floor(fraction() * below);
  return {
    fraction,
    whole,
    between: (least, most) => least + fraction() * (most - least),
    is: (probability) => fraction() < probability,
    pick: (from) => from[whole(from.length)] as (typeof from)[number],
  };
}
