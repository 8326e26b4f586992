// Whether a tool is mostly asked for something new or for something done. What is new is claimed at once: to look first would
// cost a read for nothing. What is done is read, without the lock of a claim that would lose.

import type { Contract } from '../core/contract/contract.ts';

export interface Habit {
  /** Mostly asked again. The first call of all looks too: a process that makes one call may be a repeated one. */
  peeksFirst(contract: Contract): boolean;
  /** The same where a look has to be waited for: then a guess is not enough. */
  readsFirst(contract: Contract): boolean;
  learn(contract: Contract, wasDone: boolean): void;
}

/** So many of the other kind change the habit. */
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
