// The reference store: rows in a Map, one step at a time. For tests, the simulator, and programs that may forget
// everything on a restart.

import { type Clock, systemClock } from '../core/clock.ts';
import { keyMap } from '../core/key-map.ts';
import { isDue } from '../rules/prune.ts';
import type { Time } from '../rules/state.ts';
import { isOpen } from './columns.ts';
import { dropOldEvents } from './kept-events.ts';
import { localRaw, type RawBackend } from './local/local-raw.ts';
import { type Backend, localStore, type Transaction } from './local/local-store.ts';
import { matches } from './matching.ts';
import { refusalOf, type Standing } from './move/ledger-state.ts';
import type { Row, Store, StoreEvent } from './store.ts';

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  /** The store's own time; for simulations in which clocks disagree. */
  readonly time?: () => Time;
}

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { backend, raw } = memoryBackend(options);
  return { ...localStore(backend), raw: localRaw(raw) };
}

let memoryLedgers = 0;

function memoryBackend({ clock = systemClock, time: readTime }: MemoryStoreOptions): {
  backend: Backend;
  raw: RawBackend;
} {
  const rows = keyMap<Row>();
  let events: StoreEvent[] = [];
  let floor = 0;
  const time = readTime ?? (() => ({ wall: clock.now(), mono: clock.mono(), boot: 'memory', steady: true }));
  memoryLedgers += 1;
  let standing: Standing = {
    incarnation: `memory ${memoryLedgers}`,
    movedTo: null,
    cameFrom: null,
    filling: false,
  };

  const shared: { -readonly [Part in keyof Transaction]: Transaction[Part] } = {
    time: time(),
    floor,
    get: (namespace, key) => rows.get(namespace, key),
    insert(row) {
      if (rows.get(row.namespace, row.key) !== undefined) return false;
      rows.set(row.namespace, row.key, row);
      return true;
    },
    put(row) {
      rows.set(row.namespace, row.key, row);
      return true;
    },
    remove: (row) => void rows.delete(row.namespace, row.key),
    raiseFloor: (fence) => {
      floor = Math.max(floor, fence);
    },
    note: (event) => void events.push(event),
    dropOldEvents(namespace, key) {
      const own = events.filter((event) => event.namespace === namespace && event.key === key);
      const kept = new Set(dropOldEvents(own));
      if (kept.size === own.length) return;
      events = events.filter(
        (event) => event.namespace !== namespace || event.key !== key || kept.has(event),
      );
    },
    dropEvents: ({ namespace, key }, types) => {
      events = events.filter(
        (event) =>
          event.namespace !== namespace || event.key !== key || types?.includes(event.type) === false,
      );
    },
    due: (limit) => [...rows.values()].filter((row) => isDue(row, shared.time)).slice(0, limit),
  };

  const backend: Backend = {
    async open() {
      refuse();
      return {
        kind: 'memory',
        location: 'memory',
        address: undefined,
        forgets:
          'This ledger is in memory: other processes do not see it, and it is lost when this process ends.',
        clockProblem: undefined,
      };
    },
    transact: (_urgency, rule) => async (request) => {
      refuse();
      return rule(transaction(), request);
    },
    peek: (namespace, key) => ({ row: rows.get(namespace, key), time: time() }),
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
  const raw: RawBackend = {
    ...backend,
    where: () => 'in memory',
    open: async () => undefined,
    transact: async (work) =>
      work(transaction(), {
        read: () => ({ ...standing, floor }),
        set: ({ incarnation, movedTo, cameFrom, filling }) => {
          standing = { incarnation, movedTo, cameFrom, filling };
        },
      }),
    about: () => ({
      address: 'memory:',
      schema: 1,
      known: 1,
      records: rows.size(),
      open: [...rows.values()].filter(({ status }) => isOpen(status)).length,
      bytes: undefined,
      now: time().wall,
    }),
  };
  return { backend, raw };

  function refuse(): void {
    const refused = refusalOf(standing, 'in memory');
    if (refused !== undefined) throw refused;
  }

  /** Only one step runs at a time, so all steps share one object. */
  function transaction(): Transaction {
    shared.time = time();
    shared.floor = floor;
    return shared;
  }
}
