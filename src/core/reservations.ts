// Bounds the bytes of messages that this process holds, over all connections: peers that send halves of large messages must
// not fill the memory. Clients and servers have separate budgets: an answer refused because of other clients' halves would
// leave an effect in doubt.

import { limits } from './limits.ts';

export type Budget = 'clients' | 'servers';

const totals: Record<Budget, number> = { clients: 0, servers: 0 };

/** Messages still being received, which can be given up for others. */
const unfinished: Record<Budget, Set<Unfinished>> = { clients: new Set(), servers: new Set() };

interface Unfinished {
  readonly bytes: () => number;
  readonly giveUp: () => void;
}

export interface Reservation {
  /** False if it exceeds the budget; then nothing is added. */
  take(bytes: number): boolean;
  /** Returns everything taken. */
  end(): void;
  /**
   * Until the returned function is called, the message is incomplete and may be given up for a shorter one: then its bytes are
   * returned and `giveUp` is called.
   */
  receive(giveUp: () => void): () => void;
}

/** `from` is the sender. */
export function createReservation(from: Budget = 'clients'): Reservation {
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

/** Gives up the longest incomplete message first, so that a few long halves do not block everyone else. */
function makeRoom(from: Budget, bytes: number, size: number): boolean {
  while (totals[from] + bytes > limits.unfinishedBytes) {
    let longest: Unfinished | undefined;
    for (const part of unfinished[from]) if (part.bytes() > (longest?.bytes() ?? size)) longest = part;
    if (longest === undefined) return false;
    longest.giveUp();
  }
  return true;
}
