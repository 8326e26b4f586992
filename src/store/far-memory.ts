// What this process last saw of a key at a store far away: a guess that saves the question. A swap that was decided
// by a wrong guess is not done, so nothing depends on it.

import type { Found } from './far-backend.ts';
import { isOpen } from './row-columns.ts';

export interface FarMemory {
  /** `look`: there is something that is worth a look; undefined: nothing was seen. */
  get(namespace: string, key: string): Found | 'look' | undefined;
  set(namespace: string, key: string, found: Found | undefined): void;
  /** What is known may not be so: look first. */
  doubt(namespace: string, key: string): void;
  forget(namespace: string, key: string): void;
}

/** Keys that are remembered, the longest unused first to go. */
const most = 10_000;

export function farMemory(): FarMemory {
  const known = new Map<string, Found | 'look'>();
  const at = (namespace: string, key: string) => `${namespace}\0${key}`;

  return {
    get: (namespace, key) => known.get(at(namespace, key)),
    set(namespace, key, found) {
      const name = at(namespace, key);
      if (found === undefined) known.delete(name);
      else keep(name, isOpen(found.row.status) ? found : 'look');
    },
    doubt: (namespace, key) => keep(at(namespace, key), 'look'),
    forget: (namespace, key) => void known.delete(at(namespace, key)),
  };

  function keep(name: string, what: Found | 'look'): void {
    known.delete(name);
    known.set(name, what);
    if (known.size <= most) return;
    for (const oldest of known.keys()) {
      known.delete(oldest);
      break;
    }
  }
}
