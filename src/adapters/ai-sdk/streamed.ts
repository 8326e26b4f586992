// Supports generator tools: what they yield is shown while they work, and the last value is the result. Only the result is
// stored and replayed.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { AnyFunction, ExecuteOptions } from './tool-set.ts';

export type Calling = (
  input: unknown,
  options: ExecuteOptions,
  run: (args: unknown) => unknown,
) => Promise<unknown>;

export function wrapExecute(execute: AnyFunction, call: Calling): AnyFunction {
  if (!isGenerator(execute))
    return (input: unknown, options: ExecuteOptions = {}) =>
      call(input, options, async (args) => lastPart(await execute(args, options)));
  return (input: unknown, options: ExecuteOptions = {}) => {
    // A generator starts when it is first read, perhaps outside of the `within` that it was called in.
    const here = AsyncLocalStorage.snapshot();
    return stream((see) => here(() => call(input, options, (args) => lastPart(execute(args, options), see))));
  };
}

async function* stream(start: (see: (part: unknown) => void) => Promise<unknown>): AsyncGenerator<unknown> {
  const parts = channel();
  const calling = start(parts.put);
  calling.then(parts.end, parts.end);
  let shown: unknown = nothing;
  for await (const part of parts) {
    shown = part;
    yield part;
  }
  const value = await calling;
  if (!Object.is(value, shown)) yield value;
}

const nothing: unique symbol = Symbol('nothing');

/** The bound form keeps the kind of its function. */
function isGenerator(execute: AnyFunction): boolean {
  return Object.prototype.toString.call(execute) === '[object AsyncGeneratorFunction]';
}

/** The result of a tool: of a generator, what it yields last. */
export async function lastPart(
  result: unknown,
  see: (part: unknown) => void = () => undefined,
): Promise<unknown> {
  if (!isIterable(result)) return result;
  let value: unknown;
  for await (const part of result) {
    see(part);
    value = part;
  }
  return value;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

interface Channel extends AsyncIterable<unknown> {
  put(part: unknown): void;
  end(): void;
}

function channel(): Channel {
  const parts: unknown[] = [];
  let isOver = false;
  let wake = () => {};
  return {
    put(part) {
      parts.push(part);
      wake();
    },
    end() {
      isOver = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (parts.length > 0) yield parts.shift();
        if (isOver) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
