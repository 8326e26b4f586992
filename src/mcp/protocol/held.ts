// How many bytes of messages this process is receiving or has in hand, over all connections. A peer that sends halves of large messages
// must not fill the memory. What clients send and what servers answer is counted apart: an answer that could not be received
// for the halves of others would leave an effect in doubt.

import { limits } from '../../core/limits.ts';

export type Budget = 'clients' | 'servers';

const totals: Record<Budget, number> = { clients: 0, servers: 0 };

/** What is still being received, and can be given up for others. */
const unfinished: Record<Budget, Set<Unfinished>> = { clients: new Set(), servers: new Set() };

interface Unfinished {
  readonly bytes: () => number;
  readonly giveUp: () => void;
}

export interface Holding {
  /** False: it would be too much. Then nothing more is held. */
  take(bytes: number): boolean;
  /** Gives back all that was taken. */
  end(): void;
  /**
   * Until the returned function is called, it is a part of a message, which a shorter one may need the room of: `giveUp` is
   * called, and what was taken is given back.
   */
  receive(giveUp: () => void): () => void;
}

/** `from` is who sends it. */
export function holding(from: Budget = 'clients'): Holding {
  let own = 0;
  const end = () => {
    totals[from] -= own;
    own = 0;
  };
  return {
    take(bytes) {
      if (!makeRoom(from, bytes, own + bytes)) return false;
      own += bytes;
      totals[from] += bytes;
      return true;
    },
    end,
    receive(giveUp) {
      const part: Unfinished = {
        bytes: () => own,
        giveUp: () => {
          unfinished[from].delete(part);
          end();
          giveUp();
        },
      };
      unfinished[from].add(part);
      return () => void unfinished[from].delete(part);
    },
  };
}

/** The longest part goes first, so that a few long halves do not keep everybody else out. */
function makeRoom(from: Budget, bytes: number, size: number): boolean {
  while (totals[from] + bytes > limits.unfinishedBytes) {
    let longest: Unfinished | undefined;
    for (const part of unfinished[from]) if (part.bytes() > (longest?.bytes() ?? size)) longest = part;
    if (longest === undefined) return false;
    longest.giveUp();
  }
  return true;
}
