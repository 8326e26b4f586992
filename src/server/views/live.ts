// Server-sent events: that something was written, by any process, and what became of one record. The store is asked about once a
// second, however many listen, and only while somebody does.

import { formatRef } from '../../call/index.ts';
import { shortDigest } from '../../core/key/key.ts';
import type { Page, StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, type Read, text } from '../exchange/schema.ts';
import type { Space } from '../space.ts';

export const eventsQuery = object(
  {},
  { key: text({ max: 2_000, about: 'Also sends this record whenever it changes: for waiters.' }) },
);

export interface Stream {
  /** Writes events until the signal aborts or the client is gone. */
  readonly stream: (write: (text: string) => void, signal: AbortSignal) => Promise<void>;
}

const everyMs = 1_000;
/** Asking takes at most one part in this of the time. */
const share = 10;
/** Proxies and clients give up a connection on which nothing happens. */
const keepAliveMs = 15_000;

interface Listener {
  readonly key: string | undefined;
  /** Something was written. */
  change(pulse: string): void;
  /** What its record is now, as an event. */
  record(event: string): void;
}

interface Watch {
  readonly listeners: Set<Listener>;
  /** A listener that comes back at once is told by the loop that still waits: a second one would never end. */
  isLooking: boolean;
  last: string | undefined;
}

const watches = new WeakMap<Space, Watch>();

export async function listen({ key }: Read<typeof eventsQuery>, { space }: Context): Promise<object> {
  const stream: Stream['stream'] = async (write, signal) => {
    let seen = '';
    const listener: Listener = {
      key,
      change: (pulse) => write(`event: change\ndata: ${JSON.stringify({ pulse })}\n\n`),
      record(event) {
        if (event !== seen) write(event);
        seen = event;
      },
    };
    write(': semel\n\n');
    if (key !== undefined) listener.record(await recordEvent(space, key));
    const leave = watch(space, listener);
    const alive = setInterval(() => write(': alive\n\n'), keepAliveMs);
    try {
      if (!signal.aborted)
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    } finally {
      clearInterval(alive);
      leave();
    }
  };
  return { stream };
}

function watch(space: Space, listener: Listener): () => void {
  const known = watches.get(space) ?? { listeners: new Set<Listener>(), isLooking: false, last: undefined };
  watches.set(space, known);
  known.listeners.add(listener);
  if (!known.isLooking) void look(space, known);
  return () => known.listeners.delete(listener);
}

async function look(space: Space, known: Watch): Promise<void> {
  known.isLooking = true;
  while (known.listeners.size > 0) {
    const askedAt = performance.now();
    const pulse = await pulseOf(space).catch(() => known.last);
    if (pulse !== undefined && known.last !== undefined && pulse !== known.last)
      for (const each of known.listeners) each.change(pulse);
    known.last = pulse ?? known.last;
    // Also where nothing was written: a lease that ends is not a write.
    await tellRecords(space, known.listeners);
    // What is open, or a record, may be large: looking at it must leave the store to others.
    const pauseMs = Math.max(everyMs, share * (performance.now() - askedAt));
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, keepAliveMs)));
  }
  known.isLooking = false;
  known.last = undefined;
}

/** A record may have a megabyte. */
const recordsAtOnce = 10;

/** Each record is read once, however many wait for it. */
async function tellRecords(space: Space, listeners: ReadonlySet<Listener>): Promise<void> {
  const byKey = new Map<string, Listener[]>();
  for (const each of listeners) {
    if (each.key === undefined) continue;
    const those = byKey.get(each.key);
    if (those === undefined) byKey.set(each.key, [each]);
    else those.push(each);
  }
  const waiting = [...byKey];
  for (let from = 0; from < waiting.length; from += recordsAtOnce)
    await Promise.all(
      waiting.slice(from, from + recordsAtOnce).map(async ([key, those]) => {
        const event = await recordEvent(space, key).catch(() => undefined);
        if (event !== undefined) for (const each of those) each.record(event);
      }),
    );
}

async function recordEvent({ engine: { store, namespace } }: Space, key: string): Promise<string> {
  const record = await store.read(namespace, key);
  const { status = 'gone', inDoubt = false, lapsed = false } = record ?? {};
  const state = { key, status, inDoubt, lapsed, ...(record && { ref: formatRef(record) }) };
  return `event: record\ndata: ${JSON.stringify(state)}\n\n`;
}

const maxOpen = 200;
/** A record may have a megabyte. */
const openAtOnce = 50;

/** Without a count of writes, what is open stands for the rest. */
async function pulseOf({ engine }: Space): Promise<string> {
  const { store, namespace } = engine;
  if (store.recent !== undefined) return store.recent.pulse();
  const open: (readonly [string, number, string])[] = [];
  for (const status of ['unknown', 'running'] as const) {
    let after: string | undefined;
    let looked = 0;
    do {
      const from = after === undefined ? {} : { after };
      const page: Page<StoredRecord> = await store.list({ namespace, status, limit: openAtOnce, ...from });
      for (const { key, fence, status: is } of page.items) open.push([key, fence, is]);
      looked += page.items.length;
      after = page.next;
    } while (after !== undefined && looked < maxOpen);
  }
  // Keys are long, and every listener is sent it.
  return shortDigest('pulse', JSON.stringify(open));
}
