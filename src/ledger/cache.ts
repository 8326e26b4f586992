// Keeps settled records in memory, so that a replay needs no store. Settled records are immutable until they expire; a
// record that another process forgets or reopens is noticed after `maxAgeMs`.

import type { Clock } from '../core/clock.ts';
import { resultReader } from '../core/codec/codec.ts';
import { findDrift } from '../core/key/identity.ts';
import type { Wording } from '../core/key/wording.ts';
import { keyMap } from '../core/key-map.ts';
import type { StoredRecord } from '../store/store.ts';
import type { CountedNote } from './audit.ts';

export interface CacheLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** Looked up by `exact` if the call has one: computing its key would need a digest. */
export interface CacheLookup {
  readonly namespace: string;
  readonly key: string;
  readonly exact?: string | undefined;
  /** The scope of `exact`: two contracts may have equal ones. */
  readonly maker?: object;
}

export interface RecordCache {
  /** Takes both clocks, to notice that the machine slept: the age of every record is unknown then. */
  get(lookup: CacheLookup, mono: number, wall: number): CachedRecord | undefined;
  /** Its age counts from when it was requested: the reply may have come late. */
  put(record: StoredRecord, requestedAt: number): void;
  /** What the store has now: a record that another process has changed answers no longer. */
  correct(namespace: string, key: string, now: StoredRecord | undefined, mono: number): void;
  /** Also refuses records that were requested before now: their replies may be stale. */
  drop(namespace: string, key: string, mono: number): void;
}

/** What a call needs to have its wording compared. */
export interface WordedCall {
  readonly args: unknown;
  readonly maker: { readonly wording?: Wording };
  content(): string | null;
}

/** A record in memory, with the state that its replays share. */
export class CachedRecord {
  readonly record: StoredRecord;
  readonly until: number;
  bytes: number;
  /** Where it can be found without its key. */
  exactEntry: { readonly map: Map<string, CachedRecord>; readonly exact: string } | undefined = undefined;
  /** The audit note of the last replay, and its caller. */
  private note: CountedNote | undefined = undefined;
  private lastCaller: object | undefined = undefined;
  private lastCallerDrift: readonly string[] = noDrift;
  private readValue: (() => unknown) | undefined = undefined;
  private words: readonly unknown[] | undefined = undefined;
  private wording: Wording | undefined = undefined;
  private drift: readonly string[] = noDrift;

  constructor(record: StoredRecord, until: number, bytes: number) {
    this.record = record;
    this.until = until;
    this.bytes = bytes;
  }

  /** A copy of the stored value for each reader. */
  value(text: string): unknown {
    this.readValue ??= resultReader(text);
    return this.readValue();
  }

  /** Counts a repeat by the last caller in the same words, as most are; false: it needs a note of its own. */
  countRepeat(caller: object, drift: readonly string[]): boolean {
    if (this.note === undefined || !this.note.isPending || drift !== this.lastCallerDrift) return false;
    if (caller !== this.lastCaller && !isSameCaller(caller, this.lastCaller as object)) return false;
    this.note.times += 1;
    return true;
  }

  startCounting(note: CountedNote, caller: object, drift: readonly string[]): void {
    this.note = note;
    this.lastCaller = caller;
    this.lastCallerDrift = drift;
  }

  /** The fields in which the call is worded differently. Most repeats are worded as the last one was. */
  driftFrom(call: WordedCall): readonly string[] {
    const { wording } = call.maker;
    if (wording === undefined) return findDrift(this.record.content, call.content());
    if (wording === this.wording && this.words !== undefined && wording.isSame(call.args, this.words))
      return this.drift;
    const drift = findDrift(this.record.content, call.content());
    this.drift = drift.length === 0 ? noDrift : Object.freeze(drift);
    const words = wording.wordsIn(call.args);
    this.words = words !== undefined && isShort(words, this.record.args) ? words : undefined;
    this.wording = wording;
    return this.drift;
  }
}

/** Bounded by the stored args, whose size was counted: args that were too long to store are not cached here either. */
function isShort(words: readonly unknown[], args: string | null): boolean {
  let length = 0;
  for (const word of words) length += typeof word === 'string' ? word.length : 10;
  return length <= 200 + (args?.length ?? 0);
}

function isSameCaller(caller: object, before: object): boolean {
  const one = caller as Readonly<Record<string, unknown>>;
  const other = before as Readonly<Record<string, unknown>>;
  for (const part in one) if (one[part] !== other[part]) return false;
  for (const part in other) if (!(part in one)) return false;
  return true;
}

/** Shared by all receipts. */
const noDrift: readonly string[] = Object.freeze([]);

const manyEntries = 1_000;

/** The monotonic clock stops while a machine sleeps. A wall clock that is set forward looks the same, and costs some reads. */
const sleepMs = 100;

export function createCache(
  { maxBytes, maxAgeMs }: CacheLimits,
  clock: Pick<Clock, 'now' | 'mono'>,
): RecordCache {
  const entries = keyMap<CachedRecord>();
  /** By maker. Weak: a program may define its tools for each request, and they must be collected. */
  const exactMaps = new WeakMap<object, Map<string, CachedRecord>>();
  let bytes = 0;
  /** Drops are rare, so one instant serves all keys. */
  let droppedAt = Number.NEGATIVE_INFINITY;
  /** How far the wall clock was ahead of the monotonic one at the last lookup. Records may be put before the first. */
  let clockOffsetMs = clock.now() - clock.mono();

  function findByExact({ maker, exact }: CacheLookup): CachedRecord | undefined {
    return exact === undefined || maker === undefined ? undefined : exactMaps.get(maker)?.get(exact);
  }

  /** Also indexes the record by `exact`, for the next lookup. */
  function findByKey(lookup: CacheLookup): CachedRecord | undefined {
    const cached = entries.get(lookup.namespace, lookup.key);
    const { maker, exact } = lookup;
    if (cached === undefined || exact === undefined || maker === undefined) return cached;
    removeExact(cached);
    let map = exactMaps.get(maker);
    if (map === undefined) {
      map = new Map();
      exactMaps.set(maker, map);
    }
    map.set(exact, cached);
    cached.exactEntry = { map, exact };
    resize(cached, exact.length);
    if (bytes > maxBytes) evict();
    return cached;
  }

  function removeExact(cached: CachedRecord): void {
    if (cached.exactEntry === undefined) return;
    const { map, exact } = cached.exactEntry;
    map.delete(exact);
    cached.exactEntry = undefined;
    resize(cached, -exact.length);
  }

  /** Args may be far longer than the stored part of them. */
  function resize(cached: CachedRecord, by: number): void {
    cached.bytes += by;
    bytes += by;
  }

  function remove(namespace: string, key: string): void {
    const cached = entries.get(namespace, key);
    if (cached === undefined) return;
    removeExact(cached);
    bytes -= cached.bytes;
    entries.delete(namespace, key);
  }

  /** Oldest first. Of many, an eighth at once: a map finds its first entry slowly after deletions before it. */
  function evict(): void {
    const enough = entries.size() > manyEntries ? maxBytes - maxBytes / 8 : maxBytes;
    for (const { record } of entries.values()) {
      remove(record.namespace, record.key);
      if (bytes <= enough) return;
    }
  }

  return {
    get(lookup, mono, wall) {
      if (wall - mono - clockOffsetMs > sleepMs) {
        for (const { record } of entries.values()) remove(record.namespace, record.key);
        droppedAt = mono;
      }
      clockOffsetMs = wall - mono;
      const cached = findByExact(lookup) ?? findByKey(lookup);
      if (cached === undefined || mono < cached.until) return cached;
      remove(cached.record.namespace, cached.record.key);
      return undefined;
    },
    put(record, requestedAt) {
      if (record.status !== 'succeeded' && record.status !== 'failed') return;
      const livesMs =
        record.expiresAt === null ? maxAgeMs : Math.min(maxAgeMs, record.expiresAt - record.readAt);
      if (livesMs <= 0 || maxBytes === 0 || requestedAt <= droppedAt) return;
      const { namespace, key } = record;
      remove(namespace, key);
      // Twice: replays also keep the parsed value and the words of the last call.
      const size = 500 + 2 * ((record.result?.text?.length ?? 0) + (record.args?.length ?? 0));
      entries.set(namespace, key, new CachedRecord(record, requestedAt + livesMs, size));
      bytes += size;
      if (bytes > maxBytes) evict();
    },
    correct(namespace, key, now, mono) {
      const cached = entries.get(namespace, key);
      if (cached === undefined || (now?.fence === cached.record.fence && !now.expired)) return;
      drop(namespace, key, mono);
    },
    drop,
  };

  function drop(namespace: string, key: string, mono: number): void {
    droppedAt = mono;
    remove(namespace, key);
  }
}
