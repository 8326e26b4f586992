// Remembers how open records of a remote store last looked, to save a read. Only a guess: a swap based on a stale row is
// not done, so nothing depends on it.

import { type KeyMap, keyMap } from '../../core/key-map.ts';
import { isOpen } from '../columns.ts';
import type { Found } from './backend.ts';

export interface LastSeen {
  get(namespace: string, key: string): Found | undefined;
  set(namespace: string, key: string, found: Found | undefined): void;
  forget(namespace: string, key: string): void;
}

/** How many records are always remembered; at twice as many, the older half is dropped. */
const capacity = 5_000;

export function lastSeen(): LastSeen {
  let recent: KeyMap<Found> = keyMap();
  let older: KeyMap<Found> = keyMap();

  return {
    get: (namespace, key) =>
      recent.get(namespace, key) ?? (older.size() === 0 ? undefined : older.get(namespace, key)),
    set(namespace, key, found) {
      // Settled records do not change; callers read them from the store.
      if (found === undefined || !isOpen(found.row.status)) return forget(namespace, key);
      if (recent.size() >= capacity) {
        older = recent;
        recent = keyMap();
      }
      recent.set(namespace, key, found);
    },
    forget,
  };

  function forget(namespace: string, key: string): void {
    recent.delete(namespace, key);
    if (older.size() > 0) older.delete(namespace, key);
  }
}
