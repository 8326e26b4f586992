// Who asked for what was already done: replays and conflicts, appended to history in batches off the path, at
// most a second late, equal ones as one with a count. No rule depends on it, so a batch that the store refuses is
// dropped.

import type { Clock } from '../core/clock.ts';
import type { Store, StoreEvent } from '../store/store.ts';

export interface Audit {
  note(event: Omit<StoreEvent, 'at'>): void;
  flush(): Promise<void>;
}

const delayMs = 500;
const maxWaiting = 2_000;

interface Note {
  readonly event: Omit<StoreEvent, 'at'>;
  times: number;
}

export function createAudit(store: Store, clock: Clock): Audit {
  let waiting = new Map<string, Note>();
  let timer: unknown;

  async function flush(): Promise<void> {
    clock.clearTimeout(timer);
    timer = undefined;
    const batch = [...waiting.values()].map(({ event, times }) =>
      times === 1 ? event : { ...event, detail: { ...event.detail, times } },
    );
    waiting = new Map();
    if (batch.length > 0) await store.append(batch).catch(() => undefined);
  }

  return {
    note(event) {
      const { namespace, key, type, detail } = event;
      const name = `${namespace}\0${key}\0${type}\0${Object.values(detail).join('\0')}`;
      const note = waiting.get(name);
      if (note !== undefined) note.times += 1;
      else if (waiting.size < maxWaiting) waiting.set(name, { event, times: 1 });
      timer ??= clock.setTimeout(() => void flush(), delayMs, 'background');
    },
    flush,
  };
}
