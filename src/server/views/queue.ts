// Lets a few run at once; the others wait for their turn, which namespaces take in turn.

import { createPlaces } from '../places.ts';

export interface Asker {
  /** Aborts when the client hangs up. */
  readonly signal: AbortSignal;
  readonly space: { readonly engine: { readonly namespace: string } };
}

export type Queue = <Value>(work: () => Promise<Value>, asker: Asker) => Promise<Value | undefined>;

/** Undefined: the client hung up while it waited. */
export function createQueue(atOnce: number): Queue {
  const places = createPlaces(atOnce);
  /** The namespace whose turn it is comes first. */
  const waiting = new Map<string, (() => void)[]>();

  function startNext(): void {
    for (const [namespace, its] of waiting) {
      if (!places.take(namespace)) continue;
      const start = its.shift();
      // Behind the others.
      waiting.delete(namespace);
      if (its.length > 0) waiting.set(namespace, its);
      start?.();
      return;
    }
  }

  return async (work, { signal, space }) => {
    const { namespace } = space.engine;
    if (!places.take(namespace))
      await new Promise<void>((resolve) => {
        const others = waiting.get(namespace);
        if (others === undefined) waiting.set(namespace, [resolve]);
        else others.push(resolve);
      });
    try {
      return signal.aborted ? undefined : await work();
    } finally {
      places.leave(namespace);
      startNext();
    }
  };
}
