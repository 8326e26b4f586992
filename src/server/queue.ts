// Lets a few run at once; the others wait for their turn.

export type Queue = <Value>(work: () => Promise<Value>, signal: AbortSignal) => Promise<Value | undefined>;

/** Undefined: the client hung up while it waited. */
export function createQueue(atOnce: number): Queue {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work, signal) => {
    if (running < atOnce) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return signal.aborted ? undefined : await work();
    } finally {
      const next = waiting.shift();
      // The next one takes over its place.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
