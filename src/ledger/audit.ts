// Appends replays and conflicts to the history, off the path of a call. The first of a kind is written within a second;
// equal ones are counted, and their count is written once a minute: a tool that is called a thousand times a second must
// not write a thousand times a second. A program that ends by itself writes what is left. No rule depends on the audit, so
// notes that the store refuses are dropped.

import type { Clock } from '../core/clock.ts';
import { keyMap } from '../core/key-map.ts';
import type { Store, StoreEvent } from '../store/store.ts';

export interface Audit {
  /** Returns the counter of equal notes, so that the cache can count a repeat by itself. */
  note(event: Note): CountedNote;
  /** Writes all notes and counts. */
  flush(): Promise<void>;
}

type Note = Omit<StoreEvent, 'at'>;

export interface CountedNote {
  readonly event: Note;
  times: number;
  /** Its count has not been written yet. */
  isPending: boolean;
}

const firstNoteMs = 500;
const countsMs = 60_000;
/** With more different notes than this, counts are written before their minute is over. */
const maxNotes = 2_000;
/** One transaction each: claims wait for it. */
const sliceSize = 200;
/** While a slow store has this many to write, further ones are dropped. */
const maxSlices = 50;

export function createAudit(store: Store, clock: Clock): Audit {
  let fresh = new Map<string, CountedNote>();
  /** Already written; `times` counts repeats since then. */
  let written = new Map<string, CountedNote>();
  /** The last note of each key: most repeats come from the same caller. */
  const latest = keyMap<CountedNote>();
  let freshTimer: unknown;
  let countsTimer: unknown;
  let forgetExit: (() => void) | undefined;
  /** Slices are written in sequence, so that `flush` knows when the last one is. */
  let writing: Promise<void> = Promise.resolve();
  let slices = 0;

  function write(notes: Iterable<CountedNote>): void {
    const batch: Note[] = [];
    for (const { event, times } of notes) {
      if (times > 0) batch.push(times === 1 ? event : { ...event, detail: { ...event.detail, times } });
    }
    for (let from = 0; from < batch.length; from += sliceSize) {
      if (slices >= maxSlices) return;
      slices += 1;
      const slice = batch.slice(from, from + sliceSize);
      const done = () => {
        slices -= 1;
      };
      writing = writing.then(() => store.append(slice)).then(done, done);
    }
  }

  function writeFresh(): void {
    clock.clearTimeout(freshTimer);
    freshTimer = undefined;
    const batch = fresh;
    fresh = new Map();
    write(batch.values());
    for (const [name, counted] of batch) {
      counted.times = 0;
      written.set(name, counted);
    }
    if (batch.size > 0) countsTimer ??= clock.setTimeout(writeCounts, countsMs, 'background');
  }

  function writeCounts(): void {
    clock.clearTimeout(countsTimer);
    countsTimer = undefined;
    const batch = written;
    written = new Map();
    latest.clear();
    write(batch.values());
    for (const counted of batch.values()) counted.isPending = false;
    if (freshTimer === undefined) forgetExit?.();
  }

  function writeAll(): void {
    writeFresh();
    writeCounts();
  }

  return {
    note(event) {
      const { namespace, key, generation, type, detail } = event;
      const last = latest.get(namespace, key);
      if (last !== undefined && isSameNote(last.event, event)) {
        last.times += 1;
        return last;
      }
      let name = `${namespace}\0${key}\0${generation}\0${type}`;
      for (const part in detail) name += `\0${detail[part]}`;
      const known = written.get(name) ?? fresh.get(name);
      if (known !== undefined) {
        known.times += 1;
        latest.set(namespace, key, known);
        return known;
      }
      if (fresh.size + written.size >= maxNotes) writeAll();
      const counted = { event, times: 1, isPending: true };
      fresh.set(name, counted);
      latest.set(namespace, key, counted);
      if (freshTimer === undefined) {
        freshTimer = clock.setTimeout(writeFresh, firstNoteMs, 'background');
        forgetExit = clock.beforeExit?.(writeAll);
      }
      return counted;
    },
    async flush() {
      writeAll();
      await writing;
    },
  };
}

/** Compares two notes of one key. */
function isSameNote(one: Note, other: Note): boolean {
  if (one.type !== other.type || one.generation !== other.generation) return false;
  for (const part in one.detail) if (one.detail[part] !== other.detail[part]) return false;
  for (const part in other.detail) if (!(part in one.detail)) return false;
  return true;
}
