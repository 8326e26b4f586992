// Whether the calls of a tool are mostly new or mostly repeats. A new call is claimed at once: a read first would be wasted.
// A repeat is read first, without the lock of a claim that would lose.

import type { Contract } from '../core/contract/contract.ts';

export interface Habit {
  /** Its calls are mostly repeats, or unknown: the only call of a process may be a repeat. */
  peeksFirst(contract: Contract): boolean;
  /** The same where the read has to be awaited: then a guess is not enough. */
  readsFirst(contract: Contract): boolean;
  learn(contract: Contract, wasDone: boolean): void;
}

/** This many calls of the other kind change the habit. */
const memory = 8;
const firstGuess = 1;

export function createHabit(): Habit {
  const scores = new WeakMap<Contract, number>();

  return {
    peeksFirst: (contract) => (scores.get(contract) ?? firstGuess) > 0,
    readsFirst: (contract) => (scores.get(contract) ?? firstGuess) > firstGuess,
    learn(contract, wasDone) {
      const score = (scores.get(contract) ?? firstGuess) + (wasDone ? 1 : -1);
      scores.set(contract, Math.max(-memory, Math.min(memory, score)));
    },
  };
}
