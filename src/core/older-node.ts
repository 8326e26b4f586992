// What Node.js 20 lacks of the language. The library must load and work there, with every store but SQLite.

export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value | PromiseLike<Value>) => void;
  readonly reject: (reason: unknown) => void;
}

/** `Promise.withResolvers` */
export function deferred<Value>(): Deferred<Value> {
  let resolve!: Deferred<Value>['resolve'];
  let reject!: Deferred<Value>['reject'];
  const promise = new Promise<Value>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** `Map.groupBy` */
export function groupBy<Item, Name>(items: Iterable<Item>, nameOf: (item: Item) => Name): Map<Name, Item[]> {
  const groups = new Map<Name, Item[]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return groups;
}
