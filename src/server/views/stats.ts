// Counts over time, without reading a whole ledger. Counting starts at the newest record and goes on in the background; an answer
// says how far it got, so that a page can show what there is and ask again.

import { day, hour } from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';
import { type CountedRecord, createTally, type Stats, type Tally } from '../../semel/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, oneOf, type Read, text } from '../exchange/schema.ts';
import type { Space } from '../space.ts';
import { readNewest } from './newest.ts';
import { createQueue } from './queue.ts';

export const statsQuery = object(
  {},
  {
    range: oneOf(['24h', '7d', '30d'], { about: 'How far to look back. Default: 7d.' }),
    tz: text({ max: 100, about: 'Time zone of days and hours. Default: UTC.', example: 'Europe/Paris' }),
  },
);

interface Counted {
  readonly stats: Stats;
  /** Records in flight at the end of each slot, by its start. */
  readonly inFlight: readonly number[];
  readonly coverage: {
    /** Rows that were looked at, newest first. */
    readonly looked: number;
    /** Records that began before this were not looked at; undefined: all of the time is counted. */
    readonly since: Date | undefined;
    /** Counting goes on: ask again. */
    readonly isCounting: boolean;
    readonly isNewest: boolean;
  };
}

const ranges = { '24h': 86_400_000, '7d': 7 * 86_400_000, '30d': 30 * 86_400_000 } as const;
/** A page of rows keeps other requests waiting for a few milliseconds. Each may have a megabyte. */
const pageRows = 50;
/** Counted without a pause: a small ledger is counted at once. */
const firstRows = 2_000;
const maxRows = 100_000;
/** How long an answer waits for the count. */
const patienceMs = 60;
/** Counting may take this share of the time. */
const share = 20;
const maxKept = 200;
/** Counts of all namespaces: each reads up to `maxRows`, and there are hundreds of time zones to count by. */
const counts = createQueue(2);
/** A count whose turn comes later than this after it was last asked for is not begun. */
const wantedMs = 30_000;

interface Count {
  readonly startedAt: number;
  /** Somebody asked for it just now. */
  readonly want: () => void;
  readonly look: () => Counted;
  /** Nobody will look at it. */
  readonly end: () => void;
  readonly done: Promise<void>;
  tookMs: number | undefined;
}

const known = new WeakMap<Space, Map<string, { last: Count | undefined; current: Count }>>();

export async function showStats(query: Read<typeof statsQuery>, { space }: Context): Promise<object> {
  const { range = '7d', tz = 'UTC' } = query;
  const period = range === '24h' ? zoned(() => hour(tz)) : zoned(() => day(tz));
  const kept = known.get(space) ?? new Map<string, { last: Count | undefined; current: Count }>();
  known.set(space, kept);
  const name = `${range} ${tz.toLowerCase()}`;
  let entry = kept.get(name);
  if (entry === undefined || isStale(entry.current)) {
    if (entry === undefined && kept.size >= maxKept) dropOldest(kept);
    const forget = () => {
      if (kept.get(name)?.current === count) kept.delete(name);
    };
    const count = startCount(space, range, period as Parameters<typeof startCount>[2], forget);
    entry = { last: entry?.current, current: count };
    kept.delete(name);
    kept.set(name, entry);
  }
  const { last, current } = entry;
  current.want();
  await Promise.race([current.done, new Promise((resolve) => setTimeout(resolve, patienceMs).unref())]);
  // A whole count that is a little old is worth more than the beginning of a new one.
  const shown = current.tookMs === undefined && last !== undefined ? last : current;
  const { stats, inFlight, coverage } = shown.look();
  return { ...stats, inFlight, coverage };
}

/** Names are cheap to ask for: what is no longer kept must not wait for its turn. */
function dropOldest(kept: Map<string, { readonly current: Count }>): void {
  const [name, { current }] = kept.entries().next().value as [string, { readonly current: Count }];
  kept.delete(name);
  current.end();
}

function isStale({ startedAt, tookMs }: Count): boolean {
  return tookMs !== undefined && performance.now() - startedAt > Math.max(1_000, tookMs * share);
}

function zoned<T>(make: () => T): T {
  try {
    return make();
  } catch {
    throw new SemelError('INVALID_ARGS', '`tz` is not a time zone.', {
      path: 'tz',
      next: 'Send a name such as Europe/Paris.',
    });
  }
}

function startCount(
  space: Space,
  range: keyof typeof ranges,
  period: Parameters<typeof createTally>[2],
  onUnwanted: () => void,
): Count {
  const startedAt = performance.now();
  const until = Date.now();
  const since = until - ranges[range];
  const tally = createTally(since, until, period);
  const slots = tally.result().slots.map(({ startsAt }) => startsAt.getTime());
  const inFlight = slots.map(() => 0);
  let looked = 0;
  let oldest: number | undefined;
  let isNewest = true;
  let isWhole = false;
  const ending = new AbortController();
  let wantedAt = startedAt;
  let begunAt = startedAt;
  const begin = async () => {
    begunAt = performance.now();
    return begunAt - wantedAt < wantedMs ? run() : onUnwanted();
  };
  const count: Count = {
    startedAt,
    want: () => {
      wantedAt = performance.now();
    },
    tookMs: undefined,
    end: () => ending.abort(),
    look: () => ({
      stats: tally.result(),
      inFlight,
      coverage: {
        looked,
        since: isWhole || oldest === undefined ? undefined : new Date(oldest),
        isCounting: count.tookMs === undefined,
        isNewest,
      },
    }),
    done: counts(begin, { signal: ending.signal, space }).finally(() => {
      count.tookMs = performance.now() - begunAt;
    }),
  };
  // Callers that wait get the error. If none waits, it must not become an unhandled rejection.
  count.done.catch(() => undefined);
  return count;

  async function run(): Promise<void> {
    for (let before: string | undefined; !ending.signal.aborted; ) {
      const pageAt = performance.now();
      const page = await readNewest(space, { before, rows: pageRows });
      isNewest = page.isNewest;
      looked += page.looked;
      for (const { record, history } of page.items) {
        add(tally, record, history);
        countInFlight(record, slots, inFlight, until);
        oldest = Math.min(oldest ?? record.createdAt, record.createdAt);
      }
      // Records before the time may still have been replayed in it: they are counted as far as the limit allows.
      if (page.next === undefined) {
        isWhole = true;
        return;
      }
      if (looked >= maxRows || (!isNewest && looked >= maxRows / 50)) return;
      before = page.next;
      // As long as the page took: other requests get their turn, and their half of the time.
      const pauseMs = looked < firstRows ? 0 : performance.now() - pageAt;
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
    }
  }
}

function add(tally: Tally, record: StoredRecord, history: Parameters<Tally['add']>[1]): void {
  const at = (ms: number | null) => (ms === null ? undefined : new Date(ms));
  const { namespace, contract, status, inDoubt, error, doubtFence } = record;
  const counted: CountedRecord = {
    ...{ namespace, contract, status, inDoubt },
    doubt: doubtFence !== null,
    error: error ?? undefined,
    lastDispatchedAt: at(record.lastDispatchedAt),
    updatedAt: new Date(record.updatedAt),
    settledAt: at(record.settledAt),
  };
  tally.add(counted, history);
}

/** Most records begin and end within one slot, and are in flight at the end of none. */
function countInFlight(record: StoredRecord, slots: readonly number[], counts: number[], now: number): void {
  // Given back: nothing of it is in flight. The lock of a job ends so, too.
  if (record.status === 'released') return;
  const until = record.settledAt ?? (record.status === 'running' && !record.lapsed ? now : record.updatedAt);
  for (let n = slots.length - 1; n >= 0; n -= 1) {
    const end = slots[n + 1] ?? now;
    if (end <= record.createdAt) return;
    if (until >= end) counts[n] = (counts[n] ?? 0) + 1;
  }
}
