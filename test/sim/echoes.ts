// Old requests that arrive once more, in whatever state the record is by then: copies that were on their way for
// long, and clients that settle one attempt twice, with another ending. No rule may be led astray by either.

import type { SettleRequest, StoredRecord } from '../../src/store/store.ts';
import type { Chance } from './chance.ts';
import type { Faults } from './faults.ts';
import type { Scheduler } from './scheduler.ts';
import type { StoreHost } from './store-host.ts';

export type EchoedName = 'claim' | 'renew' | 'dispatch' | 'clear' | 'settle' | 'resolve';

export interface Echoes {
  /** The store got this request: an older one for the same key may follow it. */
  heard(name: EchoedName, request: { readonly key: string }): void;
}

interface Past {
  readonly name: EchoedName;
  readonly request: { readonly key: string };
}

const outcomes = ['failed', 'released', 'unknown'] as const;

export function createEchoes(
  scheduler: Scheduler,
  chance: Chance,
  faults: Faults,
  { store, look }: StoreHost,
): Echoes {
  const past = new Map<string, Past[]>();
  const { echo } = faults.profile;

  function again({ name, request }: Past): void {
    void store[name](request as never);
  }

  /**
   * The same attempt, told otherwise. Only what no rule may believe: whoever lies about an open question is not
   * protected against.
   */
  async function otherwise(request: SettleRequest): Promise<void> {
    const record = await look(request.key);
    if (record === undefined || !isClosed(record)) return;
    faults.count('settled otherwise');
    const outcome = record.status === 'failed' && chance.happens(0.4) ? 'succeeded' : chance.pick(outcomes);
    await store.settle({ ...request, outcome, result: null, error: null });
  }

  return {
    heard(name, request) {
      if (echo === 0 || !faults.active) return;
      const known = past.get(request.key) ?? [];
      past.set(request.key, known);
      known.push({ name, request });
      if (!chance.happens(echo)) return;
      faults.count('old request');
      const chosen = chance.pick(known);
      const afterMs = chance.happens(0.6) ? chance.between(1, 1_500) : chance.between(1, 40_000);
      scheduler.after(afterMs, undefined, `an old ${chosen.name} arrives`, () => {
        if (chosen.name === 'settle' && chance.happens(0.35)) void otherwise(chosen.request as SettleRequest);
        else again(chosen);
      });
    },
  };
}

function isClosed({ status }: StoredRecord): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'released';
}
