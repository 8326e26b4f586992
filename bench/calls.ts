// What the store benches call: one tool of an agent, in as many conversations as there are callers.

import { createSemel, type Store } from '../src/index.ts';

export const result = { id: 'm-1', text: 'x'.repeat(175) };
export const callers = 128;

export interface Args {
  readonly lead: string;
  readonly n: number;
}

export interface Bench {
  /** One call of an agent in its conversation. */
  readonly send: (args: Args, conversation?: number) => Promise<typeof result>;
  readonly close: () => Promise<void>;
}

export interface BenchOptions {
  readonly cache: boolean;
  /** How long the effect takes. */
  readonly effectMs?: () => number;
}

/** One tool on one store. */
export function benchOn(store: Store, { cache, effectMs }: BenchOptions): Bench {
  const semel = createSemel({
    store,
    namespace: 'bench',
    ...(cache ? { cache: { maxAge: '1h' } } : { cache: false }),
    onWarning: () => undefined,
  });
  const send = semel.tool({
    name: 'email.send',
    effect: 'write-non-idempotent',
    per: 'turn',
    run: (_args: Args) =>
      effectMs === undefined
        ? result
        : new Promise<typeof result>((resolve) => setTimeout(() => resolve(result), effectMs())),
  });
  return {
    send: (args, conversation = 0) =>
      send(args, { conversation: `conversation-${conversation}`, turn: 'turn-1' }),
    close: () => semel.close(),
  };
}

let fresh = 0;
export const next = (): Args => ({ lead: `l-${String(++fresh).padStart(9, '0')}`, n: fresh % 10 });

/** Every caller makes so many calls, one after the other. */
export async function inParallel(
  each: number,
  call: (caller: number, n: number) => Promise<unknown>,
  count: number = callers,
): Promise<number> {
  await Promise.all(
    Array.from({ length: count }, async (_, caller) => {
      for (let n = 0; n < each; n += 1) await call(caller, n);
    }),
  );
  return count * each;
}

export async function timesAsync(count: number, work: (n: number) => Promise<unknown>): Promise<number> {
  for (let n = 0; n < count; n += 1) await work(n);
  return count;
}

/** Between 1 and 20 ms, as effects that talk to the world take. */
export const staggered = (): number => 1 + Math.random() * 19;

/**
 * Makes these calls, makes them again, and waits for the note that the first replay of a key leaves off the path: later
 * replays write nothing for a minute, and can be counted.
 */
export async function settleAll(bench: Bench, calls: readonly Args[]): Promise<void> {
  for (let time = 0; time < 2; time += 1) await Promise.all(calls.map((args) => bench.send(args)));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}
