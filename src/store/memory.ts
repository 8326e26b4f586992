// The reference store: rows in a Map, one step at a time. For tests, the simulator, and programs that accept
// that a restart forgets.

import { type Clock, systemClock } from '../core/clock.ts';
import { matches } from './matching.ts';
import { type Backend, ruleStore, type Transaction } from './rule-store.ts';
import { isDue } from './rules/prune.ts';
import type { Time } from './rules/state.ts';
import type { Row, Store, StoreEvent } from './store.ts';

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  /** The store's own time; for simulations in which clocks disagree. */
  readonly time?: () => Time;
}

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  return ruleStore(memoryBackend(options));
}

function memoryBackend({ clock = systemClock, time: readTime }: MemoryStoreOptions): Backend {
  const rows = new Map<string, Row>();
  let events: StoreEvent[] = [];
  let floor = 0;
  const time = readTime ?? (() => ({ wall: clock.now(), mono: clock.mono(), boot: 'memory', steady: true }));
  const at = (namespace: string, key: string) => `${namespace}\0${key}`;

  return {
    async open() {
      return {
        kind: 'memory',
        location: 'memory',
        address: undefined,
        forgets:
          'This ledger is in memory: no other process sees it, and it forgets everything when this one ends.',
        clockProblem: undefined,
      };
    },
    async transact(_urgency, work) {
      const now = time();
      const transaction: Transaction = {
        time: now,
        floor,
        get: (namespace, key) => rows.get(at(namespace, key)),
        put: (row) => void rows.set(at(row.namespace, row.key), row),
        remove: (row) => void rows.delete(at(row.namespace, row.key)),
        raiseFloor: (fence) => {
          floor = Math.max(floor, fence);
        },
        note: (event) => void events.push(event),
        dropEvents: ({ namespace, key }, types) => {
          events = events.filter(
            (event) =>
              event.namespace !== namespace || event.key !== key || types?.includes(event.type) === false,
          );
        },
        due: (limit) => [...rows.values()].filter((row) => isDue(row, now)).slice(0, limit),
      };
      return work(transaction);
    },
    peek: (namespace, key) => ({ row: rows.get(at(namespace, key)), time: time() }),
    list(query) {
      const now = time();
      const matching = [...rows.values()]
        .filter((row) => matches(row, query, now))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      const page = matching.slice(0, query.limit);
      return { rows: page, next: matching.length > page.length ? page.at(-1)?.key : undefined, time: now };
    },
    history: (namespace, key) => events.filter((event) => event.namespace === namespace && event.key === key),
    namespaces: () => [...new Set([...rows.values()].map(({ namespace }) => namespace))].sort(),
    async close() {},
  };
}
