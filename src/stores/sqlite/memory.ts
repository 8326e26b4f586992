// Rows that need not be read again. As long as no other connection has written, what this one read or wrote is what
// is there: a claim's row is still known when it is settled. Only open rows and absences are worth remembering.

import { keyMap } from '../../core/key-map.ts';
import type { Row } from '../../store/store.ts';
import { isOpen } from './rows.ts';

export interface RowMemory {
  /** Null: it is known that there is none. Undefined: nothing is known. */
  get(namespace: string, key: string): Row | null | undefined;
  set(namespace: string, key: string, row: Row | undefined): void;
  forget(): void;
}

const most = 10_000;

export function rowMemory(): RowMemory {
  const rows = keyMap<Row | null>();

  return {
    get: rows.get,
    set(namespace, key, row) {
      if (row !== undefined && !isOpen(row.status)) {
        rows.delete(namespace, key);
        return;
      }
      if (rows.size() >= most) rows.clear();
      rows.set(namespace, key, row ?? null);
    },
    forget: rows.clear,
  };
}
