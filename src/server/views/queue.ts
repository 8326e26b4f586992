// Lets a few run at once; the others wait for their turn, which namespaces take in turn.

import { onAbort } from '../../core/abort.ts';
import { type Link, LinkedList } from '../../core/linked-list.ts';
import { createPlaces } from '../places.ts';

export interface Asker {
  /** Aborts when the client hangs up. */
  readonly signal: AbortSignal;
  readonly space: { readonly engine: { readonly namespace: string } };
}

export type Queue = <Value>(work: () => Promise<Value>, asker: Asker) => Promise<Value | undefined>;

/** Not an item of an array: to take the first of a million moves all the others. */
class Waiter implements Link<Waiter> {
  previous: Waiter | undefined = undefined;
  next: Waiter | undefined = undefined;
  readonly start: () => void;

  constructor(start: () => void) {
    this.start = start;
  }
}

/** Undefined: the client hung up while it waited. */
export function createQueue(atOnce: number): Queue {
  const places = createPlaces(atOnce);
  /** The namespace whose turn it is comes first. */
  const waiting = new Map<string, LinkedList<Waiter>>();

  function startNext(): void {
    for (const [namespace, its] of waiting) {
      const { first } = its;
      if (first === undefined) waiting.delete(namespace);
      else if (places.take(namespace)) {
        its.remove(first);
        // Behind the others.
        waiting.delete(namespace);
        if (!its.isEmpty) waiting.set(namespace, its);
        first.start();
        return;
      }
    }
  }

  /** False: the client hung up. */
  function waitForTurn(namespace: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const its = waiting.get(namespace) ?? new LinkedList<Waiter>();
      waiting.set(namespace, its);
      const waiter = new Waiter(() => {
        unlisten();
        resolve(true);
      });
      its.add(waiter);
      const unlisten = onAbort(signal, () => {
        its.remove(waiter);
        resolve(false);
      });
    });
  }

  return async (work, { signal, space }) => {
    const { namespace } = space.engine;
    if (signal.aborted) return undefined;
    if (!places.take(namespace) && !(await waitForTurn(namespace, signal))) return undefined;
    try {
      return signal.aborted ? undefined : await work();
    } catch (error) {
      // It ended because nobody waits for it.
      if (signal.aborted) return undefined;
      throw error;
    } finally {
      places.leave(namespace);
      startNext();
    }
  };
}
