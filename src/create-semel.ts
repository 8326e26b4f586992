// The public object: the core, and the patterns that stand on it. A pattern's code is loaded when it is first used, so that
// `import 'semel'` costs no more than the core.

import type { BatchOptions, BatchReport, EachOptions } from './batch/index.ts';
import type { AttemptContext, Result } from './call/index.ts';
import { type Consumer, type ConsumerOptions, createConsumer } from './consumer/index.ts';
import type { IfBusy } from './core/contract/contract.ts';
import type { StandardSchema } from './core/contract/standard-schema.ts';
import { defineJob, type Job, type JobOptions } from './jobs/definition.ts';
import type { JobContext } from './jobs/library/index.ts';
import type { RelayOptions, RelayReport, Staged, StageOptions } from './outbox/index.ts';
import {
  type ArgsOf,
  type CallOptions,
  type Semel as Core,
  createSemel as createCore,
  type Given,
  type InputOf,
  type SemelOptions,
  type Storable,
  type ToolDefinition,
  type ToolFunction,
} from './semel/index.ts';

export interface Semel extends Omit<Core, 'tool'> {
  /** A function whose effect lands once. */
  tool<
    Args,
    Value,
    Prepared = undefined,
    Busy extends IfBusy = 'wait',
    Schema extends StandardSchema | undefined = undefined,
  >(
    definition: ToolDefinition<ArgsOf<Schema, Args>, Value, Prepared, Busy, Schema> & Storable<Value>,
  ): Tool<InputOf<Schema, Args>, Given<Value, Busy>>;
  /**
   * Does `work` once for every item, a few at a time. What is finished is not done again: not after a crash, not by another
   * process, not if the batch is started again for the items that failed.
   */
  batch<Item, Value>(
    name: string,
    items: Iterable<Item> | AsyncIterable<Item>,
    options: BatchOptions<Item, Awaited<Value>>,
    work: (item: Item, ctx: AttemptContext<undefined>) => Value | Promise<Value>,
  ): Promise<BatchReport<Item>>;
  /**
   * A function that runs once per slot and never twice at a time, on any machine, with steps that a later attempt does not repeat.
   * Shares its lock and its slots with `semel run` of the same name.
   */
  job<Value>(
    name: string,
    options: JobOptions<NoInfer<Awaited<Value>>>,
    work: (job: JobContext) => Value | Promise<Value>,
  ): Job<Awaited<Value>>;
  /**
   * The tool behind a queue: a message that is delivered again is not done again, and none is acknowledged before its outcome is on
   * record. `semel/queues` has adapters.
   */
  consumer<Input, Value>(
    tool: ToolFunction<Input, Value>,
    options: ConsumerOptions<NoInfer<Value>>,
  ): Consumer<Value>;
  readonly outbox: OutboxRelay;
}

export interface Tool<Input, Value> extends ToolFunction<Input, Value> {
  /** Calls the tool for every item, a few at a time, and reports what became of each. */
  each<Item extends Input>(
    items: Iterable<Item> | AsyncIterable<Item>,
    options?: EachOptions<Item, Value>,
  ): Promise<BatchReport<Item>>;
  /**
   * Runs the effect in your open transaction: it and its record commit together, or neither does. `run` gets the transaction as
   * `ctx.tx`; what it throws comes out as it is, and leaves nothing behind.
   */
  readonly inTransaction: CallInTransaction<Input, Value>;
  /** Stages the call in your open transaction: a relay delivers it once that has committed. */
  stage(tx: unknown, args: Input, options?: StageOptions): Promise<Staged>;
}

/** Delivers what tools have staged. */
export interface OutboxRelay {
  /** Delivers until its signal aborts or the Semel instance is closed. Any number of processes may do so. */
  relay(options?: RelayOptions): Promise<RelayReport>;
  /** Delivers what is due, and then resolves. */
  drain(options?: RelayOptions): Promise<RelayReport>;
}

export interface CallInTransaction<Input, Value> {
  (tx: unknown, args: Input, options?: CallOptions): Promise<Value>;
  /** Refusals are values; what `run` throws is still thrown. */
  try(tx: unknown, args: Input, options?: CallOptions): Promise<Result<Value>>;
}

export function createSemel(options: SemelOptions = {}): Semel {
  const core = createCore(options);
  const define = core.tool as (definition: unknown) => ToolFunction<unknown, unknown>;
  const patterns: Pick<Semel, 'tool' | 'batch' | 'consumer' | 'outbox' | 'job'> = {
    consumer: (tool, consumerOptions) => createConsumer(core, tool, consumerOptions),
    outbox: {
      relay: async (relayOptions) => (await loadOutbox()).relay(core, relayOptions),
      drain: async (relayOptions) => (await loadOutbox()).drain(core, relayOptions),
    },
    tool: ((definition: unknown) => addPatterns(core, define(definition))) as Semel['tool'],
    async batch(name, items, batchOptions, work) {
      const { runBatch } = await import('./batch/index.ts');
      return runBatch(core, name, items, batchOptions as never, work);
    },
    job: (name, jobOptions, work) =>
      defineJob(name, jobOptions as never, work, async (terms, runOptions) => {
        const { runFunction } = await import('./jobs/library/index.ts');
        return runFunction(core, name, terms, work, runOptions);
      }),
  };
  return Object.assign(core, patterns);
}

let outbox: Promise<typeof import('./outbox/index.ts')> | undefined;

/** Kept: looking a loaded module up again takes longer than the rest of a staging. */
function loadOutbox(): Promise<typeof import('./outbox/index.ts')> {
  outbox ??= import('./outbox/index.ts');
  return outbox;
}

function addPatterns(core: Core, tool: ToolFunction<unknown, unknown>): Tool<unknown, unknown> {
  const tryInTransaction = async (tx: unknown, args: unknown, options?: CallOptions) => {
    const { runInTransaction } = await loadOutbox();
    return runInTransaction(core, tool, tx, args, options);
  };
  const patterns: Pick<Tool<unknown, unknown>, 'each' | 'inTransaction' | 'stage'> = {
    async stage(tx, args, options) {
      const { stage } = await loadOutbox();
      return stage(core, tool, tx, args, options);
    },
    inTransaction: Object.assign(
      async (tx: unknown, args: unknown, options?: CallOptions) => {
        const result = await tryInTransaction(tx, args, options);
        if (result.ok) return result.value;
        throw result.error;
      },
      { try: tryInTransaction },
    ),
    async each(items, options) {
      const { runEach } = await import('./batch/index.ts');
      return runEach(core, tool as never, items, options as never);
    },
  };
  return Object.assign(tool, patterns);
}
