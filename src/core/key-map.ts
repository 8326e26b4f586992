// What is kept per namespace and key. In two levels: one name made of both would have to be built and hashed anew at
// every look, while a key keeps its hash from one map to the next.

export interface KeyMap<Value> {
  size(): number;
  get(namespace: string, key: string): Value | undefined;
  set(namespace: string, key: string, value: Value): void;
  delete(namespace: string, key: string): boolean;
  clear(): void;
  /** Those of one namespace in the order in which they came. */
  values(): Iterable<Value>;
}

export function keyMap<Value>(): KeyMap<Value> {
  const namespaces = new Map<string, Map<string, Value>>();
  let size = 0;

  return {
    size: () => size,
    get: (namespace, key) => namespaces.get(namespace)?.get(key),
    set(namespace, key, value) {
      let values = namespaces.get(namespace);
      if (values === undefined) {
        values = new Map();
        namespaces.set(namespace, values);
      }
      size -= values.size;
      values.set(key, value);
      size += values.size;
    },
    delete(namespace, key) {
      const isDeleted = namespaces.get(namespace)?.delete(key) === true;
      if (isDeleted) size -= 1;
      return isDeleted;
    },
    clear() {
      namespaces.clear();
      size = 0;
    },
    *values() {
      for (const values of namespaces.values()) yield* values.values();
    },
  };
}
