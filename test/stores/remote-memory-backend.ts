// The far end of a store, in memory: what a database does for `remoteStore`, with a clock and locks that a test moves, and
// a word about everything that it has done.

import { isDue } from '../../src/rules/prune.ts';
import type { Time } from '../../src/rules/state.ts';
import { dropOldEvents } from '../../src/store/kept-events.ts';
import { matches } from '../../src/store/matching.ts';
import type { Found, RemoteBackend, Removal, Swap, Swapped, Write } from '../../src/store/remote/backend.ts';
import type { Row, StoreEvent } from '../../src/store/store.ts';

export type Exchanged = Awaited<ReturnType<RemoteBackend['exchange']>>;

export interface RemoteMemoryBackend extends RemoteBackend {
  /** The steps themselves, for whoever keeps time: a network. */
  swap(swaps: readonly Swap[]): Exchanged;
  take(removals: readonly Removal[]): readonly Removal[];
  find(limit: number): Awaited<ReturnType<RemoteBackend['due']>>;
  rows(): readonly Row[];
  readonly floor: number;
  /** Somebody's transaction holds this record. */
  lock(namespace: string, key: string): void;
  unlock(namespace: string, key: string): void;
}

export function remoteMemoryBackend(now: () => number): RemoteMemoryBackend {
  const rows = new Map<string, Found>();
  const locked = new Set<string>();
  let events: StoreEvent[] = [];
  let floor = 0;
  const at = (namespace: string, key: string) => `${namespace}\0${key}`;
  const time = (): Time => ({ wall: now(), mono: now(), boot: 'store', steady: true });

  const backend: RemoteMemoryBackend = {
    get floor() {
      return floor;
    },
    swap(swaps) {
      const answers = swaps.map((swap): Swapped => {
        if (swap.write !== undefined && apply(swap, swap.write)) return { done: true };
        return { done: false, found: rows.get(at(swap.namespace, swap.key)) };
      });
      return { now: now(), floor, answers };
    },
    take(removals) {
      return removals.filter(({ before, row, revision, events: types }) => {
        const { namespace, key, fence } = before.row;
        const name = at(namespace, key);
        if (locked.has(name) || rows.get(name)?.revision !== before.revision) return false;
        if (row === undefined) {
          rows.delete(name);
          floor = Math.max(floor, fence);
        } else rows.set(name, { row, revision });
        events = events.filter(
          (event) =>
            event.namespace !== namespace || event.key !== key || types?.includes(event.type) === false,
        );
        return true;
      });
    },
    find(limit) {
      const moment = time();
      const found = [...rows.values()].filter(({ row }) => isDue(row, moment));
      return { found: found.slice(0, limit), now: moment.wall };
    },
    rows: () => [...rows.values()].map(({ row }) => row),
    lock: (namespace, key) => void locked.add(at(namespace, key)),
    unlock: (namespace, key) => void locked.delete(at(namespace, key)),

    async open() {
      return {
        kind: 'far memory',
        location: 'far memory',
        address: undefined,
        forgets: undefined,
        clockProblem: undefined,
      };
    },
    now: async () => now(),
    exchange: async (swaps) => backend.swap(swaps),
    async list(query) {
      const moment = time();
      const matching = backend
        .rows()
        .filter((row) => matches(row, query, moment))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      const page = matching.slice(0, query.limit);
      const next = matching.length > page.length ? page.at(-1)?.key : undefined;
      return { rows: page, next, now: moment.wall };
    },
    due: async (limit) => backend.find(limit),
    remove: async (removals) => backend.take(removals).length,
    async append(more) {
      for (const event of more)
        if (rows.has(at(event.namespace, event.key))) events.push({ ...event, at: now() });
      dropOld(more);
    },
    history: async (namespace, key) =>
      events.filter((event) => event.namespace === namespace && event.key === key),
    namespaces: async () => [...new Set(backend.rows().map(({ namespace }) => namespace))].sort(),
    async close() {},
    judge: (error) => ({ error, concernsAll: false }),
  };
  return backend;

  function apply({ namespace, key }: Swap, write: Write): boolean {
    const name = at(namespace, key);
    if (write.row !== undefined) {
      const isStill = rows.get(name)?.revision === write.before?.revision;
      const isInTime = write.at <= now() && now() < write.until;
      const isNew = write.before !== undefined || write.row.fence > floor;
      const isSpoilt = write.beside.some(
        (other) => rows.get(at(namespace, other.key))?.revision !== other.revision,
      );
      if (!isStill || !isInTime || !isNew || isSpoilt || locked.has(name)) return false;
      rows.set(name, { row: write.row, revision: write.revision });
    }
    events.push(...write.events);
    dropOld(write.events);
    return true;
  }

  function dropOld(added: readonly { readonly namespace: string; readonly key: string }[]): void {
    for (const { namespace, key } of added) {
      const own = events.filter((event) => event.namespace === namespace && event.key === key);
      const kept = new Set(dropOldEvents(own));
      for (const event of own) if (!kept.has(event)) events.splice(events.indexOf(event), 1);
    }
  }
}
