// Settled records of this process, so that a replay needs no store at all. Settled records are immutable until
// they expire; what another process forgets or reopens is noticed after `maxAgeMs`.

import { resultReader } from '../core/codec/codec.ts';
import { findDrift } from '../core/key/identity.ts';
import type { Wording } from '../core/key/wording.ts';
import { keyMap } from '../core/key-map.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Counted } from './audit.ts';

export interface CacheLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** What is looked for. By `exact`, where the call has one: its key would have to be digested first. */
export interface Wanted {
  readonly namespace: string;
  readonly key: string;
  readonly exact?: string | undefined;
  /** Whose `exact` it is: two contracts may have equal ones. */
  readonly maker?: object;
}

export interface RecordCache {
  /** Both clocks: where the machine slept in between, nobody knows how old anything is. */
  get(wanted: Wanted, mono: number, wall: number): Kept | undefined;
  /** Its age is counted from when it was asked for: the answer may have come late. */
  put(record: StoredRecord, askedAt: number): void;
  /** Nothing that was asked for before now is kept any more: its answer may tell of what was. */
  drop(namespace: string, key: string, mono: number): void;
}

/** A call as far as its wording goes. */
export interface Worded {
  readonly args: unknown;
  readonly maker: { readonly wording?: Wording };
  content(): string | null;
}

/** A record in memory, with what its replays have in common. */
export class Kept {
  readonly record: StoredRecord;
  readonly until: number;
  bytes: number;
  /** Under which it is found without its key. */
  name: { readonly among: Map<string, Kept>; readonly exact: string } | undefined = undefined;
  /** The audit note of the last replay, and who got it. */
  private counted: Counted | undefined = undefined;
  private asker: object | undefined = undefined;
  private askerDrift: readonly string[] = noDrift;
  private read: (() => unknown) | undefined = undefined;
  private words: readonly unknown[] | undefined = undefined;
  private wording: Wording | undefined = undefined;
  private drift: readonly string[] = noDrift;

  constructor(record: StoredRecord, until: number, bytes: number) {
    this.record = record;
    this.until = until;
    this.bytes = bytes;
  }

  /** The stored value, a copy for each reader. */
  value(text: string): unknown {
    this.read ??= resultReader(text);
    return this.read();
  }

  /** Whoever asks again is mostly the one who asked before, in the same words: another one is counted. */
  isCounted(asker: object, drift: readonly string[]): boolean {
    if (this.counted === undefined || !this.counted.isOpen || drift !== this.askerDrift) return false;
    if (asker !== this.asker && !isSameAsker(asker, this.asker as object)) return false;
    this.counted.times += 1;
    return true;
  }

  countFrom(counted: Counted, asker: object, drift: readonly string[]): void {
    this.counted = counted;
    this.asker = asker;
    this.askerDrift = drift;
  }

  /** The fields in which the call is worded differently. Most repeats are worded as the last one was. */
  driftFrom(call: Worded): readonly string[] {
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

/** No longer than the args whose room was counted: those that were too long to be stored are not kept here either. */
function isShort(words: readonly unknown[], args: string | null): boolean {
  let length = 0;
  for (const word of words) length += typeof word === 'string' ? word.length : 10;
  return length <= 200 + (args?.length ?? 0);
}

function isSameAsker(asker: object, before: object): boolean {
  const one = asker as Readonly<Record<string, unknown>>;
  const other = before as Readonly<Record<string, unknown>>;
  for (const part in one) if (one[part] !== other[part]) return false;
  for (const part in other) if (!(part in one)) return false;
  return true;
}

/** Receipts share it. */
const noDrift: readonly string[] = Object.freeze([]);

const manyEntries = 1_000;

/** The monotonic clock stands still while a machine sleeps. A wall clock that is set forward looks alike, and costs some reads. */
const sleepMs = 100;

export function createCache({ maxBytes, maxAgeMs }: CacheLimits): RecordCache {
  const entries = keyMap<Kept>();
  /** By maker. Weak: a program may define its tools anew for each request, and what they were made of must not be kept. */
  const names = new WeakMap<object, Map<string, Kept>>();
  let bytes = 0;
  /** The last act: rare enough to be remembered for all keys at once. */
  let droppedAt = Number.NEGATIVE_INFINITY;
  /** From the monotonic clock to the wall clock, when somebody last looked. */
  let apartMs = Number.POSITIVE_INFINITY;

  function named({ maker, exact }: Wanted): Kept | undefined {
    return exact === undefined || maker === undefined ? undefined : names.get(maker)?.get(exact);
  }

  function byKey(wanted: Wanted): Kept | undefined {
    const kept = entries.get(wanted.namespace, wanted.key);
    const { maker, exact } = wanted;
    if (kept === undefined || exact === undefined || maker === undefined) return kept;
    unname(kept);
    let among = names.get(maker);
    if (among === undefined) {
      among = new Map();
      names.set(maker, among);
    }
    among.set(exact, kept);
    kept.name = { among, exact };
    resize(kept, exact.length);
    if (bytes > maxBytes) evict();
    return kept;
  }

  function unname(kept: Kept): void {
    if (kept.name === undefined) return;
    const { among, exact } = kept.name;
    among.delete(exact);
    kept.name = undefined;
    resize(kept, -exact.length);
  }

  /** What was asked may be far longer than what is stored of it. */
  function resize(kept: Kept, by: number): void {
    kept.bytes += by;
    bytes += by;
  }

  function remove(namespace: string, key: string): void {
    const kept = entries.get(namespace, key);
    if (kept === undefined) return;
    unname(kept);
    bytes -= kept.bytes;
    entries.delete(namespace, key);
  }

  /** The oldest. Of many, an eighth at once: a map finds its first entry slowly where those before it were deleted. */
  function evict(): void {
    const enough = entries.size() > manyEntries ? maxBytes - maxBytes / 8 : maxBytes;
    for (const { record } of entries.values()) {
      remove(record.namespace, record.key);
      if (bytes <= enough) return;
    }
  }

  return {
    get(wanted, mono, wall) {
      if (wall - mono - apartMs > sleepMs) {
        for (const { record } of entries.values()) remove(record.namespace, record.key);
        droppedAt = mono;
      }
      apartMs = wall - mono;
      const kept = named(wanted) ?? byKey(wanted);
      if (kept === undefined || mono < kept.until) return kept;
      remove(kept.record.namespace, kept.record.key);
      return undefined;
    },
    put(record, askedAt) {
      if (record.status !== 'succeeded' && record.status !== 'failed') return;
      const livesMs =
        record.expiresAt === null ? maxAgeMs : Math.min(maxAgeMs, record.expiresAt - record.readAt);
      if (livesMs <= 0 || maxBytes === 0 || askedAt <= droppedAt) return;
      const { namespace, key } = record;
      remove(namespace, key);
      // Twice: replays keep the value that was read, and the words of the last call.
      const size = 500 + 2 * ((record.result?.text?.length ?? 0) + (record.args?.length ?? 0));
      entries.set(namespace, key, new Kept(record, askedAt + livesMs, size));
      bytes += size;
      if (bytes > maxBytes) evict();
    },
    drop(namespace, key, mono) {
      droppedAt = mono;
      remove(namespace, key);
    },
  };
}
