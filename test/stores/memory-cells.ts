// A service of cells in memory, for tests of what the store makes of them: answers come late and in any order, and replies
// get lost.

import { type Clock, systemClock, systemRandom } from '../../src/core/clock.ts';
import { type CellName, type Cells, cellBackend } from '../../src/store/cells/index.ts';
import type { Store } from '../../src/store/index.ts';
import { remoteStore } from '../../src/store/remote/remote-store.ts';

export interface MemoryCells {
  readonly cells: Map<string, { readonly text: string; readonly tag: string }>;
  /** The service's clock is this much ahead of the machine's. */
  aheadMs: number;
  open(network?: Network): Store;
}

export interface Network {
  /** Around every request. */
  readonly wait?: () => Promise<void>;
  /** Called after a write was done; may throw, or answer as if it had not been done. */
  readonly onWritten?: (name: CellName) => 'not done' | undefined;
  /** A clock that is the service's too; the ledger's own cell is then read each time, as if it were one more row. */
  readonly clock?: Clock;
}

export const nameOf = ({ namespace, key }: CellName): string => `${namespace}\0${key}`;

export function memoryCells(): MemoryCells {
  const stored: MemoryCells['cells'] = new Map();
  let tags = 0;

  const self: MemoryCells = {
    cells: stored,
    aheadMs: 0,
    open({ wait = async () => {}, onWritten = () => undefined, clock } = {}) {
      const cells: Cells = {
        open: async () => ({ kind: 'cells', location: 'memory', address: undefined, forgets: undefined }),
        async read(names) {
          await wait();
          const found = names.map((name) => stored.get(nameOf(name)));
          await wait();
          return found;
        },
        async swap(name, text, tag) {
          await wait();
          const isDone = stored.get(nameOf(name))?.tag === tag;
          tags += 1;
          const next = String(tags);
          if (isDone) stored.set(nameOf(name), { text, tag: next });
          const reply = isDone ? onWritten(name) : undefined;
          await wait();
          return isDone && reply === undefined ? next : undefined;
        },
        async remove(name, tag) {
          await wait();
          const isDone = stored.get(nameOf(name))?.tag === tag;
          if (isDone) stored.delete(nameOf(name));
          return isDone;
        },
        async list(namespace, { after }) {
          await wait();
          const start = `${namespace}\0`;
          const found = [...stored].filter(([name]) => name.startsWith(start)).sort();
          const places = found.map(([name, cell]) => ({ ...cell, place: name.slice(start.length) }));
          return {
            cells: places.filter(({ place }) => after === undefined || place > after),
            next: undefined,
          };
        },
        async namespaces() {
          const all = [...stored.keys()].map((name) => name.slice(0, name.indexOf('\0')));
          return [...new Set(all.filter((namespace) => !namespace.startsWith('\u0001')))];
        },
        async close() {},
      };
      const backend = cellBackend({
        cells,
        clock: clock ?? systemClock,
        random: systemRandom,
        dates: {
          learn() {},
          at: (mono) =>
            clock === undefined ? mono + 1_790_000_000_000 + self.aheadMs : clock.now() - clock.mono() + mono,
        },
        ...(clock === undefined ? {} : { refreshMs: 0 }),
        where: 'memory',
        pruneEveryMs: 3_600_000,
        judge: (error) => ({ error, concernsAll: true }),
      });
      return remoteStore(backend, clock === undefined ? {} : { clock });
    },
  };
  return self;
}
