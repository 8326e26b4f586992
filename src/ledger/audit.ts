// Who asked for what was already done: replays and conflicts, appended to history off the path. The first of a kind is
// there within a second; equal ones are counted, and their count follows once a minute: a tool that is asked a thousand
// times a second must not write a thousand times a second. No rule depends on it, so what the store refuses is dropped.

import type { Clock } from '../core/clock.ts';
import { keyMap } from '../core/key-map.ts';
import type { Store, StoreEvent } from '../store/store.ts';

export interface Audit {
  /** The note, so that its like can be counted at once. */
  note(event: Note): Counted;
  /** Writes all that is known, counts too. */
  flush(): Promise<void>;
}

type Note = Omit<StoreEvent, 'at'>;

export interface Counted {
  readonly event: Note;
  times: number;
  /** Its count is still to be written. */
  isOpen: boolean;
}

const firstMs = 500;
const countsMs = 60_000;
/** Of different ones; then the counts are written before their minute is over. */
const most = 2_000;
/** In one transaction: whoever wants to claim meanwhile waits for it. */
const sliceSize = 200;
/** That wait for a slow store; more are dropped. */
const mostSlices = 50;

export function createAudit(store: Store, clock: Clock): Audit {
  let fresh = new Map<string, Counted>();
  /** Written already; `times` is what came since. */
  let written = new Map<string, Counted>();
  /** The last of each key: whoever asks again is mostly the one who asked before. */
  const latest = keyMap<Counted>();
  let freshTimer: unknown;
  let countsTimer: unknown;
  /** One after the other, so that whoever asks for the history knows when all is there. */
  let writing: Promise<void> = Promise.resolve();
  let slices = 0;

  function write(notes: Iterable<Counted>): void {
    const batch: Note[] = [];
    for (const { event, times } of notes) {
      if (times > 0) batch.push(times === 1 ? event : { ...event, detail: { ...event.detail, times } });
    }
    for (let from = 0; from < batch.length; from += sliceSize) {
      if (slices >= mostSlices) return;
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
    for (const counted of batch.values()) counted.isOpen = false;
  }

  return {
    note(event) {
      const { namespace, key, generation, type, detail } = event;
      const last = latest.get(namespace, key);
      if (last !== undefined && isSame(last.event, event)) {
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
      if (fresh.size + written.size >= most) {
        writeFresh();
        writeCounts();
      }
      const counted = { event, times: 1, isOpen: true };
      fresh.set(name, counted);
      latest.set(namespace, key, counted);
      freshTimer ??= clock.setTimeout(writeFresh, firstMs, 'background');
      return counted;
    },
    async flush() {
      writeFresh();
      writeCounts();
      await writing;
    },
  };
}

/** Of one key. */
function isSame(one: Note, other: Note): boolean {
  if (one.type !== other.type || one.generation !== other.generation) return false;
  for (const part in one.detail) if (one.detail[part] !== other.detail[part]) return false;
  for (const part in other.detail) if (!(part in one.detail)) return false;
  return true;
}
