// What this process last saw of an open record at a store far away: a guess that saves the question. A swap that was decided
// by a wrong guess is not done, so nothing depends on it.

import { type KeyMap, keyMap } from '../../core/key-map.ts';
import { isOpen } from '../columns.ts';
import type { Found } from './backend.ts';

export interface LastSeen {
  get(namespace: string, key: string): Found | undefined;
  set(namespace: string, key: string, found: Found | undefined): void;
  forget(namespace: string, key: string): void;
}

/** Records that are remembered at least; when there are as many more, those that were seen before them go at once. */
const enough = 5_000;

export function lastSeen(): LastSeen {
  let recent: KeyMap<Found> = keyMap();
  let older: KeyMap<Found> = keyMap();

  return {
    get: (namespace, key) =>
      recent.get(namespace, key) ?? (older.size() === 0 ? undefined : older.get(namespace, key)),
    set(namespace, key, found) {
      // An ended record is not acted on; the store tells a caller that asks for it.
      if (found === undefined || !isOpen(found.row.status)) return forget(namespace, key);
      if (recent.size() >= enough) {
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
