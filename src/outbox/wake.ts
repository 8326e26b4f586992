// Wakes the relays of this process when something was staged in it. They cannot know when it is committed, so they look often
// for a while. Nothing is sent through the database: a NOTIFY in the caller's transaction would slow all commits down.

import type { Store } from '../store/store.ts';

const relays = new WeakMap<Store, Set<() => void>>();

export function wakeRelays(store: Store): void {
  for (const wake of relays.get(store) ?? []) wake();
}

/** Returns how to stop listening. */
export function onStaged(store: Store, wake: () => void): () => void {
  const set = relays.get(store) ?? new Set();
  relays.set(store, set);
  set.add(wake);
  return () => set.delete(wake);
}
