// Lets a few run at once; the others wait for their turn. Namespaces take turns, and none gets more than half of the places:
// one that asks a thousand times, or for what takes long, must not keep the others waiting.

export interface Asker {
  /** Aborts when the client hangs up. */
  readonly signal: AbortSignal;
  readonly space: { readonly engine: { readonly namespace: string } };
}

export type Queue = <Value>(work: () => Promise<Value>, asker: Asker) => Promise<Value | undefined>;

/** Undefined: the client hung up while it waited. */
export function createQueue(atOnce: number): Queue {
  const most = Math.ceil(atOnce / 2);
  let running = 0;
  const runningOf = new Map<string, number>();
  /** The namespace whose turn it is comes first. */
  const waiting = new Map<string, (() => void)[]>();

  const isFree = (namespace: string) => running < atOnce && (runningOf.get(namespace) ?? 0) < most;

  function count(namespace: string, more: 1 | -1): void {
    running += more;
    const its = (runningOf.get(namespace) ?? 0) + more;
    if (its === 0) runningOf.delete(namespace);
    else runningOf.set(namespace, its);
  }

  function startNext(): void {
    for (const [namespace, its] of waiting) {
      if (!isFree(namespace)) continue;
      const start = its.shift();
      // Behind the others.
      waiting.delete(namespace);
      if (its.length > 0) waiting.set(namespace, its);
      count(namespace, 1);
      start?.();
      return;
    }
  }

  return async (work, { signal, space }) => {
    const { namespace } = space.engine;
    if (isFree(namespace)) count(namespace, 1);
    else
      await new Promise<void>((resolve) => {
        const others = waiting.get(namespace);
        if (others === undefined) waiting.set(namespace, [resolve]);
        else others.push(resolve);
      });
    try {
      return signal.aborted ? undefined : await work();
    } finally {
      count(namespace, -1);
      startNext();
    }
  };
}
