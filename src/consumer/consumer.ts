// A tool behind a queue. `handle` makes the call for a message and says what to do with the message; the queue's
// own worker does it. Refuses tools whose records do not outlive the longest redelivery: a late one would run again.

import { describeError, emptyReceipt, type Result, type Tool } from '../call/index.ts';
import { toInstant } from '../core/clock.ts';
import type { Contract } from '../core/contract/contract.ts';
import { refuse } from '../core/contract/contract-checks.ts';
import { type Duration, durationMs, formatDuration } from '../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import { isCalendarPeriod } from '../core/contract/period.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { type CallOptions, type Engine, engineOf, type ToolFunction } from '../semel/index.ts';
import { type Decision, decide, meanings, type RetryTerms } from './decision.ts';

/** One delivery of a message, as any queue can describe it. */
export interface QueueMessage {
  /** The tool's args. */
  readonly body: unknown;
  /** The message's own id, the same at every delivery. Needed for `key: 'id'`. */
  readonly id?: string | undefined;
  /** When the producer sent it. Needed for calendar periods: a redelivery after midnight still belongs to its day. */
  readonly sentAt?: Date | number | undefined;
  /** How often it was delivered, this time included. */
  readonly deliveries?: number | undefined;
  /** Asks the effect to stop: the worker has no more time for it. */
  readonly signal?: AbortSignal | undefined;
}

export interface ConsumerOptions<Value = unknown> {
  /** The longest time after which the queue may still deliver a message again, a redrive of dead letters included. */
  readonly redelivery: Duration;
  /**
   * What makes two messages the same: by default the tool's contract, applied to the body. `'id'`: the message's own id;
   * a producer that sends twice makes two ids, and both run. Or a function that returns a key.
   */
  readonly key?: 'id' | ((message: QueueMessage) => string);
  /** Options of the call, such as `conversation` and `turn`, `caller` or `notAfter`. */
  readonly call?: (message: QueueMessage) => Omit<CallOptions, 'key' | 'signal'>;
  /** Tries that definitely did not land, until the message is a dead letter. @default 5 */
  readonly maxTries?: number;
  /** The pause after the first such try; it doubles. @default '1s' */
  readonly backoff?: Duration;
  /** The longest pause, also between two checks of a message in doubt. @default '5m' */
  readonly maxBackoff?: Duration;
  /** After how many deliveries the queue itself gives up on a message, if it does. semel warns if a doubt may still be open by then. */
  readonly maxDeliveries?: number;
  /** Gets every decision, for logs and metrics. */
  readonly onDecision?: (decision: Decision<Value>, message: QueueMessage) => void;
}

export interface Consumer<Value = unknown> {
  readonly contract: Contract;
  /** Makes the message's call, unless it is done already, and says what to do with the message. Does not throw. */
  handle(message: QueueMessage): Promise<Decision<Value>>;
}

/** For the adapters of queues. */
export interface ConsumerParts {
  readonly engine: Pick<Engine, 'clock' | 'warn'>;
  /** Warns of a queue that gives up before a doubt is likely to be decided. */
  readonly checkLimit: (deliveries: number, setting: string) => void;
  /** For a queue that gives a message another id and time when it is sent back from the dead letters. */
  readonly checkRedrive: (queue: string) => void;
  /** The same as `handle`, for a body that may turn out to be unreadable. */
  readonly handleUnread: (message: Omit<QueueMessage, 'body'>, read: () => unknown) => Promise<Decision>;
}

const partsKey: unique symbol = Symbol.for('semel.consumer') as never;

export function partsOf(consumer: Consumer): ConsumerParts {
  const parts = (consumer as { [partsKey]?: ConsumerParts } | null | undefined)?.[partsKey];
  if (parts !== undefined) return parts;
  throw new SemelError('INVALID_ARGS', 'The first argument is not a consumer.', {
    path: 'consumer',
    next: 'Pass what `semel.consumer` returned.',
  });
}

export function createConsumer<Input, Value>(
  semel: object,
  tool: ToolFunction<Input, Value>,
  options: ConsumerOptions<Value>,
): Consumer<Value> {
  const engine = engineOf(semel);
  const { contract } = checkTool(engine, tool as ToolFunction<unknown, unknown>);
  const { name } = contract;
  const terms = checkOptions(contract, options);
  const { key, call: callOf, onDecision } = options;
  let adapted: Tool | undefined;

  async function makeCall(message: QueueMessage): Promise<Result> {
    const call = await engine.makeCall(tool as ToolFunction<unknown, unknown>, message.body, {
      ...readCallOptions(message),
      ...(message.signal === undefined ? {} : { signal: message.signal }),
    });
    // If the store cannot be opened, the call itself fails with that error.
    await engine.open().catch(() => undefined);
    // A message whose call is executed elsewhere goes back: a worker has others to handle meanwhile. Without `onReplay`:
    // fetching the value again must not decide whether a message is done.
    adapted ??= {
      ...call.tool,
      contract: { ...call.tool.contract, ifBusy: 'fail' },
      onReplay: undefined,
    };
    return engine.pipeline.run(call.with({ tool: adapted }));
  }

  function readCallOptions(message: QueueMessage): CallOptions {
    const given = ask('call', () => callOf?.(message));
    if (key !== undefined) return { ...given, key: readKey(message) };
    if (!isCalendarPeriod(contract.per) || given?.at !== undefined) return given ?? {};
    const at = toInstant('sentAt', message.sentAt);
    if (at !== undefined) return { ...given, at };
    throw new SemelError(
      'NO_IDENTITY',
      `${name}: per ${contract.per.unit} needs to know when the message was sent; a redelivery would count for another ${contract.per.unit}.`,
      { path: 'sentAt', next: 'Pass `sentAt` with the message. With pg-boss, `pgBossWorker` does so.' },
    );
  }

  function readKey(message: QueueMessage): string {
    const found = key === 'id' ? message.id : ask('key', () => key?.(message));
    if (typeof found === 'string' && found !== '') return found;
    throw new SemelError('INVALID_ARGS', `${name}: the message has no ${key === 'id' ? 'id' : 'key'}.`, {
      path: 'key',
      next: 'Return a text that is the same at every delivery of the message.',
    });
  }

  /** The next delivery would be just as unreadable. */
  function ask<T>(path: string, read: () => T): T {
    try {
      return read();
    } catch (cause) {
      throw new SemelError('INVALID_ARGS', `${name}: \`${path}\` threw: ${describeError(cause)}.`, {
        path,
        cause,
      });
    }
  }

  async function handleUnread(
    message: Omit<QueueMessage, 'body'>,
    read: () => unknown,
  ): Promise<Decision<Value>> {
    let whole: QueueMessage = { ...message, body: undefined };
    let isRead = false;
    let result: Result;
    try {
      whole = { ...message, body: ask('body', read) };
      isRead = true;
      result = await makeCall(whole);
    } catch (thrown) {
      result = await answerRefused(whole, isRead, toSemelError(name, thrown));
    }
    const decision = decide(result as Result<Value>, terms, message.deliveries, engine.random.fraction());
    warnIfHeld(decision);
    report(decision, whole);
    return decision;
  }

  /** No call can be made for the message, perhaps only since a deploy: the record of an earlier delivery decides. */
  async function answerRefused(message: QueueMessage, isRead: boolean, error: SemelError): Promise<Result> {
    const refused = { ok: false, error, receipt: error.receipt ?? emptyReceipt(name) } as const;
    const isRecorded = contract.mode === 'enforce' && !isRepeatable(contract.effect);
    if (meanings[error.code] !== 'never' || !isRecorded) return refused;
    const { options, isExact } = lookUpOptions(message, isRead);
    const found = options && (await engine.findEarlier(tool, message.body, options));
    const isOther =
      found?.ok === false && found.error.code === 'KEY_CONFLICT' && found.error.evidence?.open === undefined;
    if (found !== undefined && !isOther) return found;
    return isExact && !isOther ? refused : { ...refused, error: mayHaveLanded(name, error) };
  }

  /** `isExact`: without a record under this key, no earlier delivery was started. */
  function lookUpOptions(
    message: QueueMessage,
    isRead: boolean,
  ): { readonly options?: CallOptions; readonly isExact: boolean } {
    try {
      if (isRead) return { options: readCallOptions(message), isExact: key !== undefined };
    } catch {
      // It may have been this that refused the message.
    }
    if (key === 'id') {
      const options = typeof message.id === 'string' && message.id !== '' ? { key: message.id } : undefined;
      return { ...(options && { options }), isExact: options !== undefined && callOf === undefined };
    }
    const { sentAt } = message;
    const isTimed = sentAt !== undefined || !isCalendarPeriod(contract.per);
    if (key !== undefined || !isRead || !isTimed) return { isExact: false };
    return { options: sentAt === undefined ? {} : { at: sentAt }, isExact: false };
  }

  function warnIfHeld(decision: Decision): void {
    if (decision.is !== 'retry' || decision.error === undefined) return;
    if (meanings[decision.error.code] === 'not here')
      engine.warn(`${name}: its messages go back to the queue. ${decision.error.message}`);
  }

  /** The user's own mistake must not lose a decision. */
  function report(decision: Decision<Value>, message: QueueMessage): void {
    try {
      onDecision?.(decision, message);
    } catch (error) {
      engine.warn(`${name}: \`onDecision\` of a consumer threw: ${describeError(error)}`);
    }
  }

  function checkLimit(deliveries: number, setting: string): void {
    const needed = Math.ceil(decisionTakesMs / terms.maxBackoffMs);
    if (deliveries >= needed) return;
    engine.warn(
      `${name}: the queue gives up on a message after ${deliveries} deliveries (${setting}). One in doubt goes back until it is decided, so it ` +
        `may end there undecided; its record stays in \`semel doubt\`. Allow at least ${needed}: semel itself stops a message that never lands.`,
    );
  }

  function checkRedrive(queue: string): void {
    const isByTime = isCalendarPeriod(contract.per) && key === undefined && callOf === undefined;
    if (isRepeatable(contract.effect) || (key !== 'id' && !isByTime)) return;
    const [what, next] = isByTime
      ? ['time', 'call: (message) => ({ at: … })']
      : ['id', 'key: (message) => …'];
    engine.warn(
      `${name}: a message that is sent back from the dead letters of ${queue} gets a new ${what}, so it runs again even if it may have landed. ` +
        `Take the ${what} from its body: ${next}.`,
    );
  }

  if (options.maxDeliveries !== undefined) checkLimit(options.maxDeliveries, 'maxDeliveries');
  const parts: ConsumerParts = { engine, checkLimit, checkRedrive, handleUnread };
  const consumer: Consumer<Value> = {
    contract,
    handle: ({ body, ...message }) => handleUnread(message, () => body),
  };
  return Object.defineProperty(consumer, partsKey, { value: parts });
}

/** A person looks at a doubt within a day. */
const decisionTakesMs = 24 * 3_600_000;

function checkTool<T extends Pick<ToolFunction<unknown, unknown>, 'contract'>>(engine: Engine, tool: T): T {
  const name = tool?.contract?.name ?? 'This';
  const known = engine.find(name);
  if (known === undefined)
    refuse('tool', `${name} was not created by this Semel instance.`, 'Pass what `semel.tool` returned.');
  if (known.isExternal)
    refuse('tool', `${name} is executed by a framework, not by its \`run\`.`, 'Define a tool for the queue.');
  if (tool.contract.effect === 'read')
    refuse('tool', `${name} is a read, which is not recorded.`, 'Call it without a consumer.');
  return tool;
}

function checkOptions<Value>(contract: Contract, options: ConsumerOptions<Value>): RetryTerms {
  const { name, per, windowMs, effect } = contract;
  checkKnown(`consumer(${name})`, options ?? {}, optionNames);
  if (options?.redelivery === undefined)
    refuse(
      'redelivery',
      `${name}: a consumer needs \`redelivery\`: the longest time after which the queue may deliver a message again.`,
      "Write redelivery: '14d', or how long your queue keeps messages.",
    );
  const redeliveryMs = durationMs(options.redelivery, 'redelivery');
  if (!isRepeatable(effect) && per !== 'ever' && windowMs < redeliveryMs)
    refuse(
      'redelivery',
      `${name} is remembered for ${formatDuration(windowMs)}, and the queue may deliver its message again after ${formatDuration(redeliveryMs)}: it would run twice.`,
      typeof per === 'number'
        ? `Write per: '${formatDuration(redeliveryMs)}', or per: 'ever'.`
        : `Write window: '${formatDuration(redeliveryMs)}', or per: 'ever'.`,
    );
  const needsIdentity = per === 'turn' || per === 'conversation' || per === 'run';
  if (needsIdentity && options.key === undefined && options.call === undefined)
    refuse(
      'key',
      `${name}: a message has no ${per}, and \`per: '${per}'\` needs one.`,
      `Give the tool per: 'ever', or the consumer \`key\` or call: (message) => ({ conversation, turn }).`,
    );
  for (const path of ['maxTries', 'maxDeliveries'] as const) {
    const value = options[path];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1))
      refuse(
        path,
        `${name}: \`${path}\` is not a whole number from 1.`,
        `Write ${path}: 5, or leave it out.`,
      );
  }
  const maxBackoffMs = durationMs(options.maxBackoff ?? '5m', 'maxBackoff');
  const backoffMs = durationMs(options.backoff ?? '1s', 'backoff');
  if (backoffMs < 1 || maxBackoffMs < backoffMs)
    refuse(
      'maxBackoff',
      `${name}: \`backoff\` must be at least 1ms, and \`maxBackoff\` not shorter.`,
      "Write backoff: '1s', maxBackoff: '5m'.",
    );
  return { maxTries: options.maxTries ?? 5, backoffMs, maxBackoffMs };
}

const optionNames = fieldNames<ConsumerOptions>({
  redelivery: true,
  key: true,
  call: true,
  maxTries: true,
  backoff: true,
  maxBackoff: true,
  maxDeliveries: true,
  onDecision: true,
});

/** Its key is not known, so nobody can tell whether it has a record. */
function mayHaveLanded(name: string, { code, happened, path, cause, retriable }: SemelError): SemelError {
  const unknown = `If an earlier delivery of it ran, it may have landed: look for its record with \`semel ls --tool ${name}\`.`;
  return new SemelError(code, `${happened} ${unknown}`, { ...(path && { path }), cause, retriable });
}

/** What is thrown was not enforced: a doubt would be delivered, and run, for ever. */
function toSemelError(name: string, thrown: unknown): SemelError {
  if (isSemelError(thrown) && meanings[thrown.code] !== 'undecided') return thrown;
  return new SemelError('FAILED', `${name} threw: ${describeError(thrown)}.`, {
    cause: thrown,
    retriable: true,
  });
}
