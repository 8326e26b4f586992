// What this process last saw of a key at a store far away: a guess that saves the question. A swap that was decided
// by a wrong guess is not done, so nothing depends on it.

import { type KeyMap, keyMap } from '../../core/key-map.ts';
import { isOpen } from '../columns.ts';
import type { Found } from './backend.ts';

export interface LastSeen {
  /** `look`: there is something that is worth a look; undefined: nothing was seen. */
  get(namespace: string, key: string): Found | 'look' | undefined;
  set(namespace: string, key: string, found: Found | undefined): void;
  forget(namespace: string, key: string): void;
}

/** Keys that are remembered at least; when there are as many more, those that were seen before them go at once. */
const enough = 5_000;

export function lastSeen(): LastSeen {
  let recent: KeyMap<Found | 'look'> = keyMap();
  let older: KeyMap<Found | 'look'> = keyMap();

  return {
    get: (namespace, key) => recent.get(namespace, key) ?? older.get(namespace, key),
    set(namespace, key, found) {
      if (found === undefined) return forget(namespace, key);
      if (recent.size() >= enough) {
        older = recent;
        recent = keyMap();
      }
      recent.set(namespace, key, isOpen(found.row.status) ? found : 'look');
    },
    forget,
  };

  function forget(namespace: string, key: string): void {
    recent.delete(namespace, key);
    older.delete(namespace, key);
  }
}
