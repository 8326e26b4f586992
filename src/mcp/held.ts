// How many bytes of messages this process is receiving or has in hand, over all connections. A peer that sends halves of large messages
// must not fill the memory.

import { limits } from '../core/limits.ts';

let total = 0;

export interface Holding {
  /** False: it would be too much. Then nothing more is held. */
  take(bytes: number): boolean;
  /** Gives back all that was taken. */
  end(): void;
}

export function holding(): Holding {
  let own = 0;
  return {
    take(bytes) {
      if (total + bytes > limits.unfinishedBytes) return false;
      own += bytes;
      total += bytes;
      return true;
    },
    end() {
      total -= own;
      own = 0;
    },
  };
}
