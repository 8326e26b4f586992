// One tool per receiver: which contract fields it accepts, and how it is called, with or without the caller's transaction. The
// rules are those of every call.

import type { AttemptContext, Result } from '../call/index.ts';
import type { ContractDefinition } from '../core/contract/contract.ts';
import { type Duration, durationMs, formatDuration } from '../core/contract/duration.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import {
  type CallerTransaction,
  type CallOptions,
  type Classify,
  callInTransaction,
  type Semel,
  type ToolFunction,
  warnerOf,
} from '../semel/index.ts';

/** The contract fields that say how a handler's effect may be repeated. */
export interface ReceiverTerms
  extends Pick<
    ContractDefinition,
    | 'version'
    | 'lease'
    | 'timeout'
    | 'maxAttempts'
    | 'failureWindow'
    | 'provider'
    | 'verifyAfter'
    | 'via'
    | 'dispatch'
    | 'mode'
    | 'onDoubt'
  > {
  /** @default 'write-non-idempotent' */
  readonly effect?: 'write-non-idempotent' | 'irreversible';
  /** What an error of the handler means. */
  readonly classify?: Classify;
  /**
   * Runs the handler in a transaction of your own, `(work) => db.transaction(work)`: its writes through `ctx.tx` and the record commit
   * together. The ledger must be in the same database.
   */
  readonly transaction?: CallerTransaction;
  /** Gets every error that is answered with 5xx, and every doubt, with what the handler threw as its `cause`. @default console.error */
  readonly onError?: (error: SemelError) => void;
}

export interface Receiver<Args> {
  readonly tool: ToolFunction<Args, unknown>;
  /** Resolves when the outcome is durable, or refused. */
  call(args: Args, options?: CallOptions): Promise<Result>;
  report(error: SemelError): void;
}

/** The contract fields that the receiver sets itself. */
export interface ReceiverTool<Args>
  extends Pick<ContractDefinition, 'name' | 'identity' | 'volatile' | 'redact'> {
  readonly keepMs: number;
  readonly run: (args: Args, ctx: AttemptContext) => unknown;
  readonly verify: ((args: Args, ctx: VerifyContext) => Promise<Verification>) | undefined;
}

export function createReceiver<Args>(
  semel: Semel,
  { keepMs, ...own }: ReceiverTool<Args>,
  { transaction, onError = printError, ...contract }: ReceiverTerms & Pick<ContractDefinition, 'retry'>,
): Receiver<Args> {
  if (typeof (semel as Partial<Semel> | undefined)?.tool !== 'function')
    refuse('semel', 'A receiver needs a Semel instance first.', 'Pass what `createSemel()` returned.');
  const tool = semel.tool({
    effect: 'write-non-idempotent',
    ...contract,
    ...own,
    per: keepMs,
    ifBusy: 'fail',
  } as never) as ToolFunction<Args, unknown>;
  warnOfSecond(semel, tool);
  return {
    tool,
    call: (args, options = {}) =>
      transaction === undefined
        ? tool.try(args, options)
        : callInTransaction(semel, tool, transaction, args, options),
    report(error) {
      try {
        onError(error);
      } catch (thrown) {
        printError(thrown);
      }
    },
  };
}

/** Records are found by the name: a second handler under it would never run for what the first one has handled. */
function warnOfSecond(semel: Semel, tool: ToolFunction<never, unknown>): void {
  const { name } = tool.contract;
  const names = receivers.get(semel) ?? new Set<string>();
  receivers.set(semel, names);
  if (names.has(name))
    warnerOf(tool)?.(
      `Two receivers are named ${name}: they share their records, so that each event or key reaches only one of them. Give each a \`name\` of its own.`,
    );
  names.add(name);
}

const receivers = new WeakMap<Semel, Set<string>>();

/** How long records are kept, which must be as long as the other side may repeat itself: it began to before they were made. */
export function keepLongEnough(name: string, keepFor: Duration, longest: Duration, who: string): number {
  const keepMs = durationMs(keepFor, 'keepFor');
  const longestMs = durationMs(longest, 'retriesFor');
  if (keepMs >= longestMs) return keepMs;
  return refuse(
    'keepFor',
    `${name}: records are kept for ${formatDuration(keepMs)}, but ${who} repeats itself for ${formatDuration(longestMs)}; what comes later would run again.`,
    `Write keepFor: '30d', or anything from ${formatDuration(longestMs)}.`,
  );
}

/** What it may bound: anything else would bound nothing, or what no process has room for. */
export function checkBytes(name: string, path: string, bytes: number): number {
  if (Number.isSafeInteger(bytes) && bytes >= 1 && bytes <= limits.messageBytes) return bytes;
  return refuse(
    path,
    `${name}: \`${path}\` is not a whole number from 1 to ${limits.messageBytes}.`,
    `Write ${path}: 1024 * 1024, or leave it out.`,
  );
}

export function refuse(path: string, happened: string, next: string): never {
  throw new SemelError('CONTRACT_INVALID', happened, { path, next });
}

/** A handler that failed silently would never be noticed. */
function printError(error: unknown): void {
  if (isSemelError(error)) console.error(error.message, ...(error.cause === undefined ? [] : [error.cause]));
  else console.error(error);
}
