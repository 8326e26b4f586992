// Who asked for what was already done: replays and conflicts, appended to history in batches off the path, at
// most a second late. No rule depends on it, so a batch that the store refuses is dropped.

import type { Clock } from '../core/clock.ts';
import type { Store, StoreEvent } from '../store/store.ts';

export interface Audit {
  note(event: Omit<StoreEvent, 'at'>): void;
  flush(): Promise<void>;
}

const delayMs = 500;
const maxWaiting = 10_000;

export function createAudit(store: Store, clock: Clock): Audit {
  let waiting: Omit<StoreEvent, 'at'>[] = [];
  let timer: unknown;

  async function flush(): Promise<void> {
    clock.clearTimeout(timer);
    timer = undefined;
    const batch = waiting;
    waiting = [];
    if (batch.length > 0) await store.append(batch).catch(() => undefined);
  }

  return {
    note(event) {
      if (waiting.length >= maxWaiting) return;
      waiting.push(event);
      timer ??= clock.setTimeout(() => void flush(), delayMs, 'background');
    },
    flush,
  };
}
