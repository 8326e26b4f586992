// Recent entries by name, in two generations, of which the older is dropped whole: deleting single entries from the front
// of a Map slows down every lookup.

export interface Recent<T> {
  get(name: string): T | undefined;
  set(name: string, value: T): void;
  /** Entries dropped early because there were too many. */
  readonly forgotten: number;
}

export function createRecent<T extends { readonly at: number }>(withinMs: number, most: number): Recent<T> {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let youngSince = Number.POSITIVE_INFINITY;
  let latest = Number.NEGATIVE_INFINITY;
  let forgotten = 0;

  function grow(at: number): void {
    latest = Math.max(latest, at);
    youngSince = Math.min(youngSince, at);
    const isFull = young.size >= most / 2;
    if (!isFull && latest - youngSince <= withinMs) return;
    // Only where they are too many is one of them still in its time.
    if (isFull)
      for (const [name, each] of old) if (each.at >= latest - withinMs && !young.has(name)) forgotten += 1;
    old = young;
    young = new Map();
    youngSince = at;
  }

  return {
    get: (name) => young.get(name) ?? old.get(name),
    set(name, value) {
      grow(value.at);
      young.set(name, value);
    },
    get forgotten() {
      return forgotten;
    },
  };
}
