// Calls on one transaction come one after the other: two savepoints that overlap would undo or release each other. A call
// from inside another's `run` does not wait for it.

import { AsyncLocalStorage } from 'node:async_hooks';

/** One call on a transaction, and the last of those made from inside it. */
interface Level {
  readonly tx: object;
  /** The call that it was made from, perhaps on another transaction. */
  readonly outer: Level | undefined;
  tail: Promise<unknown>;
}

const current = new AsyncLocalStorage<Level>();
const outermost = new WeakMap<object, Level>();

export function inOrder<T>(tx: unknown, work: () => Promise<T>): Promise<T> {
  // The store's error says what to pass instead.
  if ((typeof tx !== 'object' || tx === null) && typeof tx !== 'function') return work();
  const outer = current.getStore();
  const level = findLevel(outer, tx) ?? outermostOf(tx);
  const result = level.tail.then(() => current.run({ tx, outer, tail: Promise.resolve() }, work));
  level.tail = result.catch(() => undefined);
  return result;
}

/** The innermost of the calls that this one is made from, on the same transaction. */
function findLevel(level: Level | undefined, tx: object): Level | undefined {
  return level === undefined || level.tx === tx ? level : findLevel(level.outer, tx);
}

function outermostOf(tx: object): Level {
  const level = outermost.get(tx) ?? { tx, outer: undefined, tail: Promise.resolve() };
  outermost.set(tx, level);
  return level;
}
