// What the rules see while the store holds the write lock.

import type { Transaction } from '../../store/rule-store.ts';
import { isRemovable, isTombstoneDue } from '../../store/rules/prune.ts';
import type { Time } from '../../store/rules/state.ts';
import type { Row } from '../../store/store.ts';
import { type ExpiryEntry, rangeOf } from './expiry.ts';
import type { Session } from './session.ts';

const entriesAtOnce = 500;

/** One at a time, so one object serves them all. */
export function transactions(session: Session): (time: Time, floor: number) => Transaction {
  const { records, expiry, memory, meta, events } = session;
  let time: Time;
  let floor: number;

  const transaction: Transaction = {
    get time() {
      return time;
    },
    get floor() {
      return floor;
    },
    get,
    put(row) {
      const before = get(row.namespace, row.key);
      records.put(row, before);
      if (row.expiresAt !== null && row.expiresAt !== before?.expiresAt) expiry.note(row);
      memory.set(row.namespace, row.key, row);
    },
    remove(row) {
      records.remove(row);
      memory.set(row.namespace, row.key, undefined);
    },
    raiseFloor(fence) {
      if (fence <= floor) return;
      floor = fence;
      meta.setFloor(fence);
    },
    note: events.note,
    dropEvents: events.drop,
    due,
  };
  return (now, storedFloor) => {
    time = now;
    floor = storedFloor;
    return transaction;
  };

  function get(namespace: string, key: string): Row | undefined {
    const known = memory.get(namespace, key);
    if (known !== undefined) return known ?? undefined;
    const row = records.get(namespace, key);
    memory.set(namespace, key, row);
    return row;
  }

  function due(limit: number): readonly Row[] {
    // By name: several entries may lead to one record.
    const found = new Map<string, Row>();
    const left = () => limit - found.size;
    // While the clock is not trusted, only what a person had forgotten goes.
    const by = time.steady ? time.wall : 0;
    let entry: ExpiryEntry | undefined;
    for (let more = true; more && left() > 0; ) {
      const entries = expiry.entries(by, entry, entriesAtOnce);
      more = entries.length === entriesAtOnce;
      for (entry of entries) {
        if (left() === 0) break;
        const expired = records.expired(rangeOf(entry), by, left());
        // Whoever asks takes all it is given, so what is found here is gone when this transaction ends.
        if (expired.length < left() && entry.overAt <= by) expiry.remove(entry);
        take(expired);
      }
    }
    if (left() > 0 && time.steady) take(records.lapsedUndispatched(time.boot, time.mono));
    return [...found.values()];

    function take(rows: readonly Row[]): void {
      for (const row of rows) {
        if (left() > 0 && isDue(row)) found.set(`${row.namespace}\0${row.key}`, row);
      }
    }
  }

  function isDue(row: Row): boolean {
    return isRemovable(row, time) || isTombstoneDue(row, time);
  }
}
