// A remote store on cells. The service compares one cell with one tag and knows nothing else, so what other databases check
// in the same step is arranged here:
// - time: a write that turns out to have been late counts as one whose reply was lost, and the rule decides again;
// - fences: a removed record leaves its fence for a day, longer than any request can be on its way;
// - other forms of a key: the write is pending until they have been read after it. Of two claims that depend on each
//   other's cell, the later one sees the earlier.

import type { Clock, Random } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { type KeyMap, keyMap } from '../../core/key-map.ts';
import { type From, pages } from '../../core/paging.ts';
import { isDue } from '../../rules/prune.ts';
import { isDamaged, readOrDamage } from '../damage.ts';
import { dropOldEvents } from '../kept-events.ts';
import { matches } from '../matching.ts';
import type { Found, RemoteBackend, Removal, RowPage, Swap, Swapped, Write } from '../remote/backend.ts';
import type { DamagedRecord, ListQuery, Row, StoreEvent, StoreFacts } from '../store.ts';
import { decodeCell, encodeGrave, encodeRecord, type Pending } from './cell.ts';
import type { CellName, Cells, StoredCell } from './cells.ts';
import type { DateClock } from './date-clock.ts';
import { type KnownCell, knownCells, maxTries } from './known-cells.ts';
import { createMeta } from './meta.ts';

export interface CellBackendOptions {
  readonly cells: Cells;
  readonly clock: Clock;
  readonly random: Random;
  readonly dates: DateClock;
  /** For messages. */
  readonly where: string;
  /** How often the programs that use the ledger prune it by themselves: it reads every record. */
  readonly pruneEveryMs: number;
  readonly judge: RemoteBackend['judge'];
  /** How often the ledger's own cell is read again. @default 60_000 */
  readonly refreshMs?: number | undefined;
}

const pageSize = 250;
/** Far longer than a signed request is accepted: 15 minutes. */
const graveMs = 24 * 3_600_000;
export function cellBackend(options: CellBackendOptions): RemoteBackend {
  const { cells, clock, dates } = options;
  const meta = createMeta({ ...options, now: nowMs });
  const memory = knownCells({ cells, nowMs, where: options.where });
  /** The highest fence of a removed record that was met. */
  let floor = 0;
  /** Where pruning continues: the last batch was full. */
  let rest: { readonly namespace: string; readonly after: string } | undefined;

  return {
    async open(): Promise<StoreFacts> {
      const facts = await cells.open();
      await meta.open();
      return { ...facts, clockProblem: undefined };
    },
    async now() {
      const askedAt = clock.mono();
      await meta.refresh('now');
      return timeAt(askedAt);
    },
    exchange,
    list,
    due,
    remove,
    append,
    async history(namespace, key) {
      const known = await memory.read({ namespace, key });
      return known?.cell.events ?? [];
    },
    namespaces: async () => [...(await cells.namespaces())].sort(),
    close: cells.close,
    judge: options.judge,
  };

  /** The service's time at that moment of our clock: never later than what was read afterwards. */
  function timeAt(mono: number): number {
    const time = dates.at(mono);
    if (time === undefined) throw new Error('the service did not tell the time: its answers have no Date');
    return Math.floor(time);
  }

  function nowMs(): number {
    return timeAt(clock.mono());
  }

  async function exchange(swaps: readonly Swap[]): Promise<Awaited<ReturnType<RemoteBackend['exchange']>>> {
    await meta.refresh();
    const askedAt = clock.mono();
    const beside = new Set(
      swaps.flatMap(({ namespace, write }) => (write?.beside ?? []).map(({ key }) => `${namespace}\0${key}`)),
    );
    const answers: Swapped[] = [];
    const early: number[] = [];
    // Read after the write beside them: they may be the reason why it was not done.
    const late: number[] = [];
    const work: Promise<void>[] = [];
    for (const [n, { namespace, key, write }] of swaps.entries()) {
      if (write === undefined) (beside.has(`${namespace}\0${key}`) ? late : early).push(n);
      else
        work.push(
          swapOne({ namespace, key }, write).then((answer) => {
            answers[n] = answer;
          }),
        );
    }
    const lookAt = async (which: readonly number[]): Promise<void> => {
      const found = await memory.readAll(which.map((n) => swaps[n] as Swap));
      for (const [index, n] of which.entries()) answers[n] = notDone(found[index]);
    };
    // All of them: what is still under way must not land after the answer.
    for (const result of await Promise.allSettled([lookAt(early), ...work]))
      if (result.status === 'rejected') throw result.reason;
    await lookAt(late);
    return { now: timeAt(askedAt), floor: Math.max(floor, meta.floor()), answers };
  }

  async function swapOne(name: CellName, write: Write): Promise<Swapped> {
    const { before, row, revision } = write;
    // Catches most wrong guesses about them before anything is written.
    if (!(await memory.areUnchanged(name.namespace, toPending(write.beside))))
      return notDone(await memory.read(name));
    // A guess, to save the read.
    let known = memory.guess(name);
    let isRead = false;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      const there = known?.cell.found;
      if (isRead && there?.revision === revision) return confirm(name, write, known as KnownCell);
      const usedFence = before === undefined ? Math.max(meta.floor(), known?.cell.fence ?? 0) : 0;
      const isRefused = row !== undefined && row.fence <= usedFence;
      if (there?.revision !== before?.revision || isRefused) {
        if (isRead) return notDone(known);
        known = await memory.read(name);
        isRead = true;
        continue;
      }
      const text = encodeWrite(name, write, known);
      const written = await memory.write(name, text, known?.tag);
      if (written !== undefined) return row === undefined ? { done: true } : confirm(name, write, written);
      // Another process was faster, or only the history changed, or our own write landed and its reply was lost.
      known = await memory.read(name);
      isRead = true;
    }
    throw new SemelError('STORE_UNAVAILABLE', `The record ${name.key} is being changed without pause.`, {
      next: 'Nothing was run. Call again.',
    });
  }

  function encodeWrite(
    name: CellName,
    { row, revision, events, beside }: Write,
    known: KnownCell | undefined,
  ): string {
    const all = dropOldEvents([...(known?.cell.events ?? []), ...events]);
    // Events of a record that is gone: they go with what is left of it.
    if (row === undefined) return encodeGrave(name, known?.cell.fence ?? 0, nowMs(), all);
    if (beside.length === 0) return encodeRecord({ row, revision }, all);
    return encodeRecord({ row, revision }, all, {
      beside: toPending(beside),
      undo: known?.cell.found === undefined ? null : known.text,
    });
  }

  /** The write is in its cell. It counts if the other forms of its key allow it, and if it was not late. */
  async function confirm(name: CellName, { revision, until }: Write, written: KnownCell): Promise<Swapped> {
    const known = await memory.settle(name, written);
    if (known?.cell.found?.revision !== revision || nowMs() >= until) return notDone(known);
    return { done: true };
  }

  function notDone(known: KnownCell | undefined): Swapped {
    if (known !== undefined && known.cell.found === undefined) floor = Math.max(floor, known.cell.fence);
    return { done: false, found: known?.cell.found };
  }

  async function list(query: ListQuery): Promise<RowPage> {
    const { namespace, contract } = query;
    const askedAt = clock.mono();
    const rows: Row[] = [];
    const damaged: DamagedRecord[] = [];
    /** Damaged records after the last row; they belong to the next page, if there is one. */
    const behind: DamagedRecord[] = [];
    const starts = [query.prefix ?? '', contract === undefined ? '' : `${contract}/`];
    const prefix = starts.reduce((longest, one) => (one.length > longest.length ? one : longest));
    const limit = Math.min(pageSize, query.limit + 1);
    const { after: _, ...filter } = query;
    let last: string | undefined;
    const read = ({ after }: From) => cells.list(namespace, { prefix, after, limit });
    for await (const page of pages(read, query.after)) {
      const wall = timeAt(askedAt);
      const time = { wall, mono: wall, boot: 'store', steady: true };
      for (const one of page.cells) {
        const found = await settled(namespace, one);
        if (found === undefined) continue;
        if (isDamaged(found)) {
          if (found.key.startsWith(prefix) || found.key === '(unreadable)') behind.push(found);
          continue;
        }
        if (!matches(found.row, filter, time)) continue;
        if (rows.length === query.limit) return { rows, next: last, damaged, now: wall };
        rows.push(found.row);
        last = one.place;
        damaged.push(...behind.splice(0));
      }
    }
    return { rows, next: undefined, damaged: [...damaged, ...behind], now: timeAt(askedAt) };
  }

  /** The record of a listed cell. */
  async function settled(namespace: string, one: StoredCell): Promise<Found | DamagedRecord | undefined> {
    const cell = readOrDamage(() => decodeCell(namespace, one.text));
    if (isDamaged(cell) || cell.pending === undefined) return isDamaged(cell) ? cell : cell.found;
    return (await memory.read({ namespace, key: cell.key }))?.cell.found;
  }

  /** Reads every record until the limit is reached; the next call continues there. */
  async function due(limit: number, isBackground = false): ReturnType<RemoteBackend['due']> {
    if (isBackground && rest === undefined && !(await meta.takePruning(options.pruneEveryMs)))
      return { found: [], now: nowMs() };
    const askedAt = clock.mono();
    const found: Found[] = [];
    const from = rest;
    rest = undefined;
    for (const namespace of [...(await cells.namespaces())].sort()) {
      if (from !== undefined && namespace < from.namespace) continue;
      const read = ({ after }: From) => cells.list(namespace, { prefix: '', after, limit: pageSize });
      for await (const page of pages(read, namespace === from?.namespace ? from.after : undefined)) {
        const wall = timeAt(askedAt);
        const time = { wall, mono: wall, boot: 'store', steady: true };
        for (const one of page.cells) {
          const cell = readOrDamage(() => decodeCell(namespace, one.text));
          if (isDamaged(cell)) continue;
          if (cell.found === undefined) {
            if (cell.goneAt + graveMs <= wall) await cells.remove({ namespace, key: cell.key }, one.tag);
          } else if (cell.pending === undefined && isDue(cell.found.row, time)) found.push(cell.found);
          if (found.length < limit) continue;
          rest = { namespace, after: one.place };
          return { found, now: wall };
        }
      }
    }
    // None after the place where the last call ended: there may be new ones before it.
    return from !== undefined && found.length === 0 ? due(limit) : { found, now: timeAt(askedAt) };
  }

  async function remove(removals: readonly Removal[]): Promise<number> {
    await meta.raiseFloor(
      Math.max(...removals.map(({ before, row }) => (row === undefined ? before.row.fence : 0))),
    );
    const done = await Promise.all(removals.map(removeOne));
    return done.filter((isDone) => isDone).length;
  }

  async function removeOne({ before, row, revision, events: types }: Removal): Promise<boolean> {
    const { namespace, key, fence } = before.row;
    return memory.change({ namespace, key }, ({ found, events }) => {
      if (found?.revision !== before.revision) return undefined;
      if (row === undefined) return encodeGrave(before.row, fence, nowMs());
      return encodeRecord(
        { row, revision },
        types === undefined ? [] : events.filter(({ type }) => !types.includes(type)),
      );
    });
  }

  async function append(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void> {
    await meta.refresh(events.length === 0 ? 'now' : undefined);
    const names: KeyMap<Omit<StoreEvent, 'at'>[]> = keyMap();
    for (const event of events) {
      const others = names.get(event.namespace, event.key);
      if (others === undefined) names.set(event.namespace, event.key, [event]);
      else others.push(event);
    }
    await Promise.all(
      [...names.values()].map(async (added) => {
        const { namespace, key } = added[0] as StoreEvent;
        await memory.change({ namespace, key }, (cell) => {
          if (cell.found === undefined) return undefined;
          const at = nowMs();
          const all = [...cell.events, ...added.map((event): StoreEvent => ({ ...event, at }))];
          return encodeRecord(cell.found, dropOldEvents(all));
        });
      }),
    );
  }
}

function toPending(beside: Write['beside']): Pending['beside'] {
  return beside.map(({ key, revision }) => [key, revision ?? null]);
}
