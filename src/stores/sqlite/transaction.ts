// What the rules see while the store holds the write lock.

import type { Transaction } from '../../store/rule-store.ts';
import { isRemovable, isTombstoneDue } from '../../store/rules/prune.ts';
import type { Time } from '../../store/rules/state.ts';
import type { Row } from '../../store/store.ts';
import type { ExpiryEntry, Tables } from './tables.ts';

const entriesAtOnce = 500;

export function transaction(tables: Tables, time: Time, storedFloor: number): Transaction {
  // The pieces of a batch often meet the same record.
  const rows = new Map<string, Row | undefined>();
  let floor = storedFloor;

  return {
    time,
    get floor() {
      return floor;
    },
    get,
    put(row) {
      tables.put(row, get(row.namespace, row.key));
      rows.set(at(row), row);
    },
    remove(row) {
      tables.remove(row);
      rows.set(at(row), undefined);
    },
    raiseFloor(fence) {
      if (fence <= floor) return;
      floor = fence;
      tables.setFloor(fence);
    },
    note: tables.note,
    due,
  };

  function get(namespace: string, key: string): Row | undefined {
    const name = at({ namespace, key });
    if (rows.has(name)) return rows.get(name);
    const row = tables.get(namespace, key);
    rows.set(name, row);
    return row;
  }

  function due(limit: number): readonly Row[] {
    // By name: several entries may lead to one record.
    const found = new Map<string, Row>();
    const left = () => limit - found.size;
    const take = (rows: readonly Row[]) => {
      for (const row of rows) if (left() > 0 && isDue(row)) found.set(at(row), row);
    };
    // While the clock is not trusted, only what a person had forgotten goes.
    const by = time.steady ? time.wall : 0;
    let entry: ExpiryEntry | undefined;
    for (let more = true; more && left() > 0; ) {
      const entries = tables.expiryEntries(by, entry, entriesAtOnce);
      more = entries.length === entriesAtOnce;
      for (entry of entries) {
        if (left() === 0) break;
        const expired = tables.expired(entry, by, left());
        // Whoever asks takes all it is given, so what is found here is gone when this transaction ends.
        if (expired.length < left() && entry.last <= by) tables.removeExpiry(entry);
        take(expired);
      }
    }
    if (left() > 0 && time.steady) take(tables.lapsedUndispatched(time.boot, time.mono));
    return [...found.values()];
  }

  function isDue(row: Row): boolean {
    return isRemovable(row, time) || isTombstoneDue(row, time);
  }
}

function at({ namespace, key }: { namespace: string; key: string }): string {
  return `${namespace}\0${key}`;
}
