// A named batch: a tool made from a function, called for each item.

import type { AttemptContext } from '../call/index.ts';
import { SemelError } from '../core/errors.ts';
import type { Semel, ToolDefinition } from '../semel/index.ts';
import { type EachOptions, type Items, runEach } from './each.ts';
import type { BatchReport } from './report.ts';

/** Any term of a contract, besides what `each` takes. */
export interface BatchOptions<Item, Value>
  extends EachOptions<Item, Value>,
    Partial<Omit<ToolDefinition<Item, Value>, 'name' | 'run' | 'prepare' | 'input'>> {
  /**
   * Names this run of the batch, for example `2026-11`: the next one does every item anew. Without it, an item is done once for
   * good.
   */
  readonly run?: string;
}

export function runBatch<Item, Value>(
  semel: Semel,
  name: string,
  items: Items<Item>,
  options: BatchOptions<Item, Value>,
  work: (item: Item, ctx: AttemptContext<undefined>) => Value | Promise<Value>,
): Promise<BatchReport<Item>> {
  if (typeof work !== 'function')
    throw new SemelError(
      'INVALID_ARGS',
      `batch(${JSON.stringify(name)}, …) needs a function as its fourth argument.`,
      {
        path: 'work',
        next: 'Write batch(name, items, {}, async (item, ctx) => …).',
      },
    );
  const { id, transaction, concurrency, signal, maxProblems, onProgress, onItem, ...rest } = options;
  const { conversation, turn, run, at, again, notAfter, permissions, caller, ...terms } = rest;
  // What `undefined` means is up to each option; leaving it out means the default.
  const call = withoutUndefined({ conversation, turn, run, at, again, notAfter, permissions, caller });
  const tool = semel.tool({
    effect: 'write-non-idempotent',
    per: run === undefined ? 'ever' : 'run',
    ...terms,
    name,
    run: work,
  } as ToolDefinition<Item, Value>);
  const own = { id, transaction, concurrency, signal, maxProblems, onProgress, onItem };
  const each = { ...own, ...call } as EachOptions<Item, never>;
  return runEach(semel, tool as never, items, each);
}

function withoutUndefined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}
