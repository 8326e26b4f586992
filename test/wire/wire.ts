// One operation over a wire that fails at one message, then at the next, in every manner: it answers as it should or
// says that the store did not answer; asked again it says what it would have said; what is there is what would be
// there; and the store finds its way back by itself.

import { deepStrictEqual } from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { isSemelError } from '../../src/index.ts';
import type { Store } from '../../src/store/index.ts';
import type { Fault, FaultProxy } from '../servers/fault-proxy.ts';
import type { Direction } from '../servers/frames.ts';
import { type Operation, wireNamespace } from './operations.ts';
import { plain } from './plain.ts';

export const manners = [
  'cut-before',
  'cut-inside',
  'cut-after',
  'trickle',
  'black-hole',
  { delayMs: 20 },
] as const satisfies readonly Fault[];

export interface WireReport {
  readonly operation: string;
  /** Messages of a clean run, both ways. */
  readonly frames: number;
  readonly faults: number;
  /** How many of them met their message: after a cut a driver may say less. */
  readonly hits: number;
  /** How often the caller was told that the store did not answer. */
  readonly refused: number;
  /** What went wrong, a sentence each. */
  readonly wrong: readonly string[];
}

export interface WireOptions {
  /** Its only way is through the proxy. */
  readonly store: Store;
  /** The same ledger, by a way that nobody disturbs. */
  readonly direct: Store;
  readonly proxy: FaultProxy;
  readonly operation: Operation;
  /** Which of the manners a message meets: all of them, unless time is short. */
  readonly mannersOf?: (frame: number) => readonly Fault[];
}

interface Outcome {
  readonly answer: unknown;
  /** What the ledger holds afterwards. */
  readonly left: unknown;
  readonly refused: number;
}

/** How long a store may take to find its way back. */
const patienceMs = 30_000;

export async function faultEveryFrame(options: WireOptions): Promise<WireReport> {
  const { proxy, operation, mannersOf = () => manners } = options;
  let count = 0;
  const wrong: string[] = [];
  let faults = 0;
  let hits = 0;
  let refused = 0;

  const run = async (begin: () => void): Promise<Outcome> => {
    // A connection that the last fault broke fails here, and not in the operation.
    await answered(() => options.store.read(wireNamespace, 'anything'));
    count += 1;
    const key = `${operation.name.replaceAll(' ', '-')}/=${count}`;
    return outcomeOf(options, key, begin);
  };

  // Connects first, so that the handshake is not counted as part of the operation.
  await answered(() => options.store.open());
  let clean = await run(() => proxy.mark());
  // A machine that stalled can look like a fault: repeat.
  while (clean.refused > 0) clean = await run(() => proxy.mark());
  const frames = proxy.frames().map(({ direction, index }) => ({ direction, index }));

  for (const [nth, { direction, index }] of frames.entries()) {
    for (const fault of mannersOf(nth)) {
      faults += 1;
      const hit = (frame: { direction: Direction; index: number }) =>
        frame.direction === direction && frame.index === index ? fault : undefined;
      const said = typeof fault === 'object' ? `delay ${fault.delayMs} ms` : fault;
      const where = `${operation.name}: ${said} at ${direction} ${index}`;
      try {
        const outcome = await run(() => {
          proxy.mark();
          proxy.rule(hit);
        });
        refused += outcome.refused;
        if (!isDeepStrictEqual(outcome.answer, clean.answer) && !operation.once)
          wrong.push(`${where}: it answered otherwise: ${difference(clean.answer, outcome.answer)}`);
        if (!isAsWell(outcome, clean, operation))
          wrong.push(`${where}: it left something else: ${difference(clean.left, outcome.left)}`);
      } catch (error) {
        wrong.push(`${where}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      }
      hits += Math.min(1, proxy.hits());
      proxy.calm();
    }
  }
  return { operation: operation.name, frames: frames.length, faults, hits, refused, wrong };
}

function difference(expected: unknown, actual: unknown): string {
  try {
    deepStrictEqual(actual, expected);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

/** What is asked once only may have been done or not, but not twice. */
function isAsWell(outcome: Outcome, clean: Outcome, { once }: Operation): boolean {
  if (isDeepStrictEqual(outcome.left, clean.left)) return true;
  const { events, ...left } = outcome.left as { events: unknown[] };
  const { events: usual, ...usually } = clean.left as { events: unknown[] };
  return (
    once === true && outcome.refused > 0 && events.length < usual.length && isDeepStrictEqual(left, usually)
  );
}

async function outcomeOf(
  { store, direct, proxy, operation }: WireOptions,
  name: string,
  begin: () => void,
): Promise<Outcome> {
  let tries = 0;
  let key = name;
  const prepared = await answered(() => {
    // What was prepared and not heard of by a machine that stood still is in the way of preparing it again.
    tries += 1;
    key = `${name}.${tries}`;
    return operation.prepare(store, key);
  });
  const ask = prepared.answer as () => Promise<unknown>;
  let refused = 0;
  begin();
  const answer = await answered(ask, (error) => {
    refused += 1;
    // Only the first time: whoever asks again finds the wire in order.
    proxy.calm();
    // A transaction that the server has open on a connection which we have given up. It hears of that in the end.
    const isHeld = isSemelError(error) && /another transaction/i.test(error.message);
    if (isHeld) proxy.cutAll();
    return operation.once === true;
  });
  proxy.calm();
  const record = await direct.read(wireNamespace, key);
  const events = await direct.history(wireNamespace, key);
  return { answer: plain(answer.answer), left: plain({ record, events }), refused };
}

/** Asks until there is an answer. */
async function answered<T>(
  ask: () => Promise<T>,
  onRefused: (error: unknown) => boolean = () => false,
): Promise<{ readonly answer: T } | { readonly answer: undefined }> {
  const until = Date.now() + patienceMs;
  for (;;) {
    try {
      return { answer: await ask() };
    } catch (error) {
      const isPassing = isSemelError(error, 'STORE_UNAVAILABLE') || isSemelError(error, 'IN_FLIGHT');
      if (!isPassing || !error.retriable || Date.now() > until) throw error;
      if (onRefused(error)) return { answer: undefined };
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
