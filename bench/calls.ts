// The work of the benches: tools of an agent that return 200 bytes, called by one or by many callers for a while.

import { createSemel, type Store } from '../src/index.ts';

export const result = { id: 'm-1', text: 'x'.repeat(175) };
export const resultText: string = JSON.stringify(result);
export const callers = 128;

export interface Args {
  readonly lead: string;
  readonly n: number;
}

export interface Bench {
  /** A call of an agent in its conversation. */
  readonly send: (args: Args, conversation?: number) => Promise<typeof result>;
  /** A call that is the same for ever, whoever makes it. */
  readonly sendEver: (args: Args) => Promise<typeof result>;
  readonly close: () => Promise<void>;
}

export interface BenchOptions {
  readonly cache?: boolean;
  /** How long the effect takes. */
  readonly effectMs?: () => number;
}

export function benchOn(store: Store | string, { cache = false, effectMs }: BenchOptions = {}): Bench {
  const semel = createSemel({
    store,
    namespace: 'bench',
    cache: cache ? { maxAge: '1h' } : false,
    onWarning: () => undefined,
  });
  const run = async (_args: Args) => {
    if (effectMs !== undefined) await pause(effectMs());
    return result;
  };
  const effect = 'write-non-idempotent';
  const send = semel.tool({ name: 'email.send', effect, per: 'turn', run });
  return {
    send: (args, conversation = 0) =>
      send(args, { conversation: `conversation-${conversation}`, turn: 'turn-1' }),
    sendEver: semel.tool({ name: 'email.once', effect, per: 'ever', identity: ['lead'], run }),
    close: () => semel.close(),
  };
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Between 1 and 20 ms, as effects that talk to the world take. */
export const staggered = (): number => 1 + Math.random() * 19;

let fresh = 0;
export const next = (): Args => ({ lead: `l-${String(++fresh).padStart(9, '0')}`, n: fresh % 10 });

/** For how long a contestant works in a round. */
export const workMs = 600;

/** One call after the other. */
export async function alone(
  call: (n: number) => Promise<unknown> | unknown,
  forMs = workMs,
): Promise<number> {
  const until = performance.now() + forMs;
  let count = 0;
  for (; performance.now() < until; count += 1) await call(count);
  return count;
}

/** Many callers, each with one call after the other. */
export async function crowd(
  call: (caller: number, n: number) => Promise<unknown>,
  forMs = workMs,
): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: callers }, (_, caller) => alone((n) => call(caller, n), forMs)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** So many calls in all, as fast as many callers can. */
export async function fill(
  count: number,
  call: (n: number) => Promise<unknown>,
  width: number = callers,
): Promise<void> {
  let made = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (made < count) await call(made++);
    }),
  );
}
