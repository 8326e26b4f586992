// What this process works on right now: closing waits for it, then ends it by what is known.

import type { Clock } from '../core/clock.ts';
import { type Link, LinkedList } from '../core/linked-list.ts';
import { sleep } from '../ledger/index.ts';
import type { Result } from './receipt.ts';
import { interruptedError } from './refusals.ts';

/** A call that has an answer to wait for, and can be ended early. */
export interface Closable extends Link<Closable> {
  readonly result: Promise<Result> | undefined;
  close(reason: Error): void;
}

export interface Work {
  /** No new calls: those that run may still finish. */
  readonly isClosing: boolean;
  /** Aborts when calls that still run or wait must end. */
  readonly closing: AbortSignal;
  readonly active: LinkedList<Closable>;
  /** Closing waits for this promise as for an active call. */
  track<T>(promise: Promise<T>): Promise<T>;
  /** Settling that goes on after the caller was answered. */
  inBackground(settling: Promise<unknown>): void;
  /** The same, unless something of this name is under way. */
  onceInBackground(name: string, settle: () => Promise<unknown>): void;
  /** Refuses new calls, gives running ones this long to finish, then ends them. */
  close(graceMs: number): Promise<void>;
}

export function createWork(clock: Clock): Work {
  const closing = new AbortController();
  const active = new LinkedList<Closable>();
  const tracked = new Set<Promise<unknown>>();
  const settling = new Set<Promise<unknown>>();
  const named = new Set<string>();

  const work = {
    isClosing: false,
    closing: closing.signal,
    active,
    track: <T>(promise: Promise<T>) => keepUntilEnd(tracked, promise),
    inBackground: (promise: Promise<unknown>) => void keepUntilEnd(settling, promise),
    onceInBackground(name: string, settle: () => Promise<unknown>) {
      if (named.has(name)) return;
      named.add(name);
      work.inBackground(settle().finally(() => named.delete(name)));
    },
    async close(graceMs: number) {
      work.isClosing = true;
      const finished = new AbortController();
      void allEnded().then(() => finished.abort());
      await sleep(clock, graceMs, [finished.signal]);
      closing.abort(interruptedError());
      for (const call of active) call.close(interruptedError());
      await allEnded();
      while (settling.size > 0) await Promise.allSettled(settling);
    },
  };
  return work;

  /** Also waits for calls that start meanwhile. */
  async function allEnded(): Promise<void> {
    while (!active.isEmpty || tracked.size > 0)
      await Promise.allSettled([...tracked, ...Array.from(active, ({ result }) => result)]);
  }
}

function keepUntilEnd<T>(set: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  const end = () => void set.delete(promise);
  set.add(promise);
  promise.then(end, end);
  return promise;
}
