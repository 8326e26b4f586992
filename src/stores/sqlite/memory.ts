// Rows that need not be read again. As long as no other connection has written, what this one read or wrote is what
// is there: a claim's row is still known when it is settled. Only open rows and absences are worth remembering.

import { isOpen } from '../../store/row-columns.ts';
import type { Row } from '../../store/store.ts';

export interface RowMemory {
  /** Null: it is known that there is none. Undefined: nothing is known. */
  get(namespace: string, key: string): Row | null | undefined;
  set(namespace: string, key: string, row: Row | undefined): void;
  forget(): void;
}

const most = 10_000;

export function rowMemory(): RowMemory {
  const namespaces = new Map<string, Map<string, Row | null>>();
  let size = 0;

  return {
    get: (namespace, key) => namespaces.get(namespace)?.get(key),
    set(namespace, key, row) {
      let rows = namespaces.get(namespace);
      if (row !== undefined && !isOpen(row.status)) {
        if (rows?.delete(key)) size -= 1;
        return;
      }
      if (size >= most) {
        forget();
        rows = undefined;
      }
      if (rows === undefined) {
        rows = new Map();
        namespaces.set(namespace, rows);
      }
      size -= rows.size;
      rows.set(key, row ?? null);
      size += rows.size;
    },
    forget,
  };

  function forget(): void {
    namespaces.clear();
    size = 0;
  }
}
