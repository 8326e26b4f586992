// Calls one tool for every item of a source, a few at a time. It adds no rules: each item is a call of its own, and the stores
// commit what waits together.

import { describeError, emptyReceipt, type Result } from '../call/index.ts';
import { systemClock, toInstant } from '../core/clock.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import { type ContractPer, calendarSlot } from '../core/contract/period.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import {
  ambient,
  type CallerTransaction,
  type CallOptions,
  callInTransaction,
  engineOf,
  type ToolFunction,
} from '../semel/index.ts';
import {
  type BatchProgress,
  type BatchReport,
  concernsAll,
  describeReport,
  type ItemOutcome,
  type ItemProblem,
  maxProblemsKept,
  toOutcome,
} from './report.ts';

export interface EachOptions<Item, Value> extends Omit<CallOptions, 'key' | 'toolCallId' | 'signal'> {
  /**
   * The item's idempotency key, for example its id in your database: the same key with other identity args is a KEY_CONFLICT
   * of that item. It counts for the period of the tool's `per`, such as this run or this day. Without it, the key is derived from the item, as for any call.
   */
  readonly id?: ((item: Item, index: number) => string | number | bigint) | undefined;
  /**
   * Runs each item in a transaction of your own, `(work) => db.transaction(work)`: its writes through `ctx.tx` and its record commit
   * together. The ledger must be in the same database. With one connection, as on a SQLite handle: `concurrency: 1`.
   */
  readonly transaction?: CallerTransaction | undefined;
  /** How many items run at the same time; no more are read ahead. @default 16 */
  readonly concurrency?: number | undefined;
  /** Start no further items. Those that run finish. */
  readonly signal?: AbortSignal | undefined;
  /** Start no more items once this many have failed or are in doubt. @default Infinity */
  readonly maxProblems?: number | undefined;
  /** Called after every item; `progressBar()` draws one. */
  readonly onProgress?: ((progress: BatchProgress) => void) | undefined;
  /** Gets every item's outcome, with its value. The batch waits for it. */
  readonly onItem?: ((outcome: ItemOutcome<Item, Value>) => void | Promise<void>) | undefined;
}

export type Items<Item> = Iterable<Item> | AsyncIterable<Item>;

export async function runEach<Item, Value>(
  semel: object,
  tool: ToolFunction<Item, Value>,
  items: Items<Item>,
  options: EachOptions<Item, Value> = {},
): Promise<BatchReport<Item>> {
  const engine = engineOf(semel);
  const { name, per } = tool.contract;
  const {
    id,
    concurrency = 16,
    signal,
    maxProblems,
    onProgress,
    onItem,
    transaction,
    ...callOptions
  } = options;
  checkKnown(`each() of ${name}`, options, optionNames, 'INVALID_ARGS');
  if (transaction !== undefined && typeof transaction !== 'function')
    throw new SemelError('INVALID_ARGS', `${name}: \`transaction\` is not a function.`, {
      path: 'transaction',
      next: 'Write transaction: (work) => db.transaction(work).',
    });
  checkPositive(name, 'concurrency', concurrency);
  checkPositive(name, 'maxProblems', maxProblems ?? 1);
  const source = readInTurn(name, items, isStopped);
  const total = countItems(items);
  const counts = { done: 0, executed: 0, failed: 0, inDoubt: 0, skipped: 0, running: 0 };
  const problems: ItemProblem<Item>[] = [];
  let stopped: string | undefined;
  const report = (isOver: boolean) => {
    const { executed: _, ...shown } = counts;
    onProgress?.({ total, ...shown, isOver });
  };

  const ends = await Promise.allSettled(Array.from({ length: concurrency }, work));
  await source.finish();
  report(true);
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
  const { done, executed, failed, inDoubt, skipped } = counts;
  const ok = stopped === undefined && failed + inDoubt + skipped === 0;
  const summary = { ok, done, executed, failed, inDoubt, skipped, problems, stopped };
  return Object.defineProperty(summary, 'toString', { value: () => describeReport(summary) });

  async function work(): Promise<void> {
    try {
      for (;;) {
        const next = await source.next();
        if (next === undefined) return;
        counts.running += 1;
        // The source may have taken its time.
        const result = isStopped() ? refuseStopped() : await call(next.item, next.index);
        counts.running -= 1;
        const outcome = toOutcome(next.item, next.index, result);
        count(outcome);
        report(false);
        await onItem?.(outcome);
      }
    } catch (error) {
      // The source or the caller's own function threw: the items that run may finish.
      stopped ??= describeError(error);
      throw error;
    }
  }

  function isStopped(): boolean {
    if (signal?.aborted) stopped ??= `aborted: ${describeError(signal.reason)}`;
    return stopped !== undefined;
  }

  function refuseStopped(): Result<Value> {
    const error = new SemelError('ABORTED', `${name} was not started: the batch had stopped.`);
    return { ok: false, error, receipt: emptyReceipt(name) };
  }

  async function call(item: Item, index: number): Promise<Result<Value>> {
    try {
      const key =
        id === undefined ? undefined : toKey(name, id(item, index), nameSlot(name, per, callOptions));
      const itemOptions = key === undefined ? callOptions : { ...callOptions, key };
      const result = await callItem(item, itemOptions);
      return (isRefused(result) ? await findEarlier(item, itemOptions) : undefined) ?? result;
    } catch (error) {
      const refused = isSemelError(error)
        ? error
        : new SemelError('INVALID_ARGS', `${name}: no id for item ${index}: ${describeError(error)}.`, {
            path: 'id',
            next: 'Return a text or a number that is unique to the item.',
            cause: error,
          });
      return { ok: false, error: refused, receipt: refused.receipt ?? emptyReceipt(name) };
    }
  }

  function callItem(item: Item, itemOptions: CallOptions): Promise<Result<Value>> {
    if (transaction === undefined) return tool.try(item, itemOptions);
    return callInTransaction(semel, tool, transaction, item, itemOptions) as Promise<Result<Value>>;
  }

  /** It cannot be called with these args, perhaps only since a deploy: what an earlier start left is reported. */
  async function findEarlier(item: Item, itemOptions: CallOptions): Promise<Result<Value> | undefined> {
    const found = await engine.findEarlier(tool, item, itemOptions);
    const tells = found !== undefined && toOutcome(item, 0, found).is !== 'failed';
    return tells ? (found as Result<Value>) : undefined;
  }

  function count(outcome: ItemOutcome<Item, Value>): void {
    if (outcome.is === 'done') {
      counts.done += 1;
      if (outcome.receipt.executed) counts.executed += 1;
      return;
    }
    counts[outcome.is === 'in doubt' ? 'inDoubt' : outcome.is] += 1;
    if (problems.length < maxProblemsKept) problems.push(outcome);
    if (concernsAll(outcome.error)) stopped ??= outcome.error?.message;
    const found = counts.failed + counts.inDoubt;
    if (maxProblems !== undefined && found >= maxProblems)
      stopped ??= `${found} items failed or are in doubt`;
  }
}

/** Before it had a key. */
function isRefused(result: Result): boolean {
  if (result.ok || result.receipt.key !== '') return false;
  return result.error.code === 'INVALID_ARGS' || result.error.code === 'NOT_CANONICAL';
}

const optionNames = fieldNames<EachOptions<unknown, unknown>>({
  id: true,
  concurrency: true,
  signal: true,
  maxProblems: true,
  onProgress: true,
  onItem: true,
  transaction: true,
  conversation: true,
  turn: true,
  run: true,
  at: true,
  again: true,
  notAfter: true,
  version: true,
  permissions: true,
  caller: true,
});

/** One reader at a time: not every iterator can be asked twice at once. */
function readInTurn<Item>(name: string, items: Items<Item>, isStopped: () => boolean) {
  const iterator = open(name, items);
  let reading: Promise<unknown> = Promise.resolve();
  let index = 0;
  let isOver = false;

  async function read(): Promise<{ item: Item; index: number } | undefined> {
    if (isOver || isStopped()) return undefined;
    // Even if reading throws, the source is not read again.
    isOver = true;
    const { done, value } = await iterator.next();
    if (done) return undefined;
    isOver = false;
    index += 1;
    return { item: value, index: index - 1 };
  }

  return {
    next(): ReturnType<typeof read> {
      const next = reading.then(read);
      reading = next.catch(() => undefined);
      return next;
    },
    /** Lets a source that was not read to its end clean up. */
    async finish(): Promise<void> {
      await reading;
      if (isOver) return;
      isOver = true;
      await iterator.return?.();
    },
  };
}

function open<Item>(name: string, items: Items<Item>): Iterator<Item> | AsyncIterator<Item> {
  const source: object = Object(items);
  if (Symbol.asyncIterator in source) return (source as AsyncIterable<Item>)[Symbol.asyncIterator]();
  // A string is iterable too, but nobody means its characters.
  if (Symbol.iterator in source && typeof items !== 'string')
    return (source as Iterable<Item>)[Symbol.iterator]();
  throw new SemelError('INVALID_ARGS', `${name}: the items cannot be iterated.`, {
    path: 'items',
    next: 'Pass an array, an iterable or an async iterable such as an async generator.',
  });
}

function countItems(items: unknown): number | undefined {
  if (Array.isArray(items)) return items.length;
  return items instanceof Set || items instanceof Map ? items.size : undefined;
}

function toKey(name: string, id: unknown, slot: readonly string[]): string {
  const isText = typeof id === 'string' && id !== '';
  if (isText || typeof id === 'bigint' || (typeof id === 'number' && Number.isFinite(id)))
    return [...slot.map(encodeURIComponent), id].join('/');
  throw new SemelError('INVALID_ARGS', `${name}: \`id\` returned ${describeId(id)}.`, {
    path: 'id',
    next: 'Return a text or a number that is unique to the item.',
  });
}

/** A key of the caller's own has no period: without this in it, the next run, or the next day, would find every item done. */
function nameSlot(name: string, per: ContractPer, options: CallOptions): readonly string[] {
  if (per === 'ever' || typeof per === 'number') return [];
  const outer = ambient();
  if (typeof per === 'object')
    return [calendarSlot(per, toInstant('at', options.at ?? outer.at) ?? systemClock.now()).slot];
  const { conversation = outer.conversation, turn = outer.turn, run = outer.run } = options;
  const names = { run: { run }, conversation: { conversation }, turn: { conversation, turn } }[per];
  return Object.entries(names).map(([what, value]) => {
    if (value !== undefined) return value;
    throw new SemelError('NO_IDENTITY', `${name}: \`per: '${per}'\` needs a ${what}, and none was given.`, {
      path: what,
    });
  });
}

function describeId(id: unknown): string {
  if (id === '') return 'an empty text';
  return typeof id === 'number' ? String(id) : id === null ? 'null' : `a value of type ${typeof id}`;
}

function checkPositive(name: string, path: string, value: number): void {
  if (value === Number.POSITIVE_INFINITY && path === 'maxProblems') return;
  if (Number.isSafeInteger(value) && value >= 1 && (path !== 'concurrency' || value <= maxConcurrency))
    return;
  const limit = path === 'concurrency' ? ` up to ${maxConcurrency.toLocaleString('en')}` : '';
  throw new SemelError('INVALID_ARGS', `${name}: \`${path}\` is not a whole number from 1${limit}.`, {
    path,
    next: `Write ${path}: 16, or leave it out.`,
  });
}

/** More do not make it faster: a store commits at most 256 at once. */
const maxConcurrency = 10_000;
