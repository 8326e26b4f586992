// What is kept per namespace and key. In two levels: one name made of both would have to be built and hashed anew at
// every look, while a key keeps its hash from one map to the next.

export interface KeyMap<Value> {
  size(): number;
  get(namespace: string, key: string): Value | undefined;
  set(namespace: string, key: string, value: Value): void;
  delete(namespace: string, key: string): boolean;
  clear(): void;
  /** Those of one namespace in insertion order. */
  values(): Iterable<Value>;
}

/**
 * Between a map and a value that may be deleted. When V8 makes a new table for a map, the old table keeps its values and
 * points at the new one. Once one table of this chain is in the old generation, all that was ever in the map survives with it
 * until the next full collection: with entries in between, only empty entries survive.
 */
class Entry<Value> {
  value: Value | undefined;

  constructor(value: Value) {
    this.value = value;
  }
}

export function keyMap<Value>(): KeyMap<Value> {
  const namespaces = new Map<string, Map<string, Entry<Value>>>();
  let size = 0;

  return {
    size: () => size,
    get: (namespace, key) => namespaces.get(namespace)?.get(key)?.value,
    set(namespace, key, value) {
      let entries = namespaces.get(namespace);
      if (entries === undefined) {
        entries = new Map();
        namespaces.set(namespace, entries);
      }
      const known = entries.get(key);
      if (known !== undefined) known.value = value;
      else {
        entries.set(key, new Entry(value));
        size += 1;
      }
    },
    delete(namespace, key) {
      const entries = namespaces.get(namespace);
      const entry = entries?.get(key);
      if (entries === undefined || entry === undefined) return false;
      entry.value = undefined;
      entries.delete(key);
      size -= 1;
      return true;
    },
    clear() {
      namespaces.clear();
      size = 0;
    },
    *values() {
      for (const entries of namespaces.values())
        for (const { value } of entries.values()) yield value as Value;
    },
  };
}
