// How many bytes of messages this process is receiving or has in hand, over all connections. A peer that sends halves of large messages
// must not fill the memory. What clients send and what servers answer is counted apart: an answer that could not be received
// for the halves of others would leave an effect in doubt.

import { limits } from '../../core/limits.ts';

export type Budget = 'clients' | 'servers';

const totals: Record<Budget, number> = { clients: 0, servers: 0 };

export interface Holding {
  /** False: it would be too much. Then nothing more is held. */
  take(bytes: number): boolean;
  /** Gives back all that was taken. */
  end(): void;
}

/** `from` is who sends it. */
export function holding(from: Budget = 'clients'): Holding {
  let own = 0;
  return {
    take(bytes) {
      if (totals[from] + bytes > limits.unfinishedBytes) return false;
      own += bytes;
      totals[from] += bytes;
      return true;
    },
    end() {
      totals[from] -= own;
      own = 0;
    },
  };
}
