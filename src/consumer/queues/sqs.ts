// A Lambda handler for an SQS queue, with partial batch responses. Every message counts as failed until it is known to be done,
// and the handler returns before the function's deadline. Needs FunctionResponseTypes: ['ReportBatchItemFailures']: without
// it Lambda does not read the answer, and deletes the whole batch.

import { describeError } from '../../call/index.ts';
import { type Duration, durationMs } from '../../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../../core/contract/known-fields.ts';
import { SemelError } from '../../core/errors.ts';
import { sleep } from '../../ledger/index.ts';
import { type Consumer, partsOf } from '../consumer.ts';

export interface SqsRecord {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  readonly attributes: {
    readonly ApproximateReceiveCount: string;
    readonly SentTimestamp: string;
    readonly MessageGroupId?: string | undefined;
  };
  readonly eventSourceARN: string;
}

export interface SqsEvent {
  readonly Records: readonly SqsRecord[];
}

export interface SqsBatchResponse {
  readonly batchItemFailures: { readonly itemIdentifier: string }[];
}

export interface SqsHandlerOptions {
  /** Makes the tool's args from a message. If it throws, the message is a dead letter. @default JSON.parse of its body */
  readonly parse?: (record: SqsRecord) => unknown;
  /** Sends a dead letter to a queue of yours; it is deleted here once this resolves. @default it stays until the queue's maxReceiveCount */
  readonly deadLetter?: (record: SqsRecord, reason: string) => Promise<unknown>;
  /** Calls ChangeMessageVisibility. @default a message comes back after the queue's visibility timeout */
  readonly setDelay?: (record: SqsRecord, seconds: number) => Promise<unknown>;
  /** Maximum number of messages at a time; those of one FIFO group are always handled in order. @default 10 */
  readonly concurrency?: number;
  /** How long before the function's deadline to stop. Half of it is left to record what was stopped. @default '2s' */
  readonly reserve?: Duration;
}

export type SqsHandler = (
  event: SqsEvent,
  context?: { getRemainingTimeInMillis(): number },
) => Promise<SqsBatchResponse>;

export function sqsHandler(consumer: Consumer, options: SqsHandlerOptions = {}): SqsHandler {
  const { engine, handleUnread, checkRedrive } = partsOf(consumer);
  checkRedrive('SQS');
  const { clock, warn } = engine;
  const { name } = consumer.contract;
  checkKnown(`sqsHandler(${name})`, options, optionNames);
  const { parse = ({ body }: SqsRecord) => JSON.parse(body) as unknown, deadLetter, setDelay } = options;
  const { concurrency = 10 } = options;
  if (!(Number.isSafeInteger(concurrency) && concurrency >= 1))
    throw new SemelError('CONTRACT_INVALID', `${name}: \`concurrency\` is not a whole number from 1.`, {
      path: 'concurrency',
      next: 'Write concurrency: 10, or leave it out.',
    });
  const reserveMs = durationMs(options.reserve ?? '2s', 'reserve');

  return async (event, context) => {
    const records = checkEvent(name, event);
    const leftMs = context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;
    const deadline = new AbortController();
    const stop = () => deadline.abort(new Error('the function is out of time'));
    if (leftMs <= reserveMs) stop();
    const timer = Number.isFinite(leftMs)
      ? clock.setTimeout(stop, Math.max(0, leftMs - reserveMs))
      : undefined;
    const { signal } = deadline;
    const done = new Set<SqsRecord>();
    try {
      const lanes = toLanes(records);
      const work = async () => {
        for (let lane = lanes.shift(); lane !== undefined; lane = lanes.shift())
          for (const record of lane) {
            if (signal.aborted || !(await handle(record, signal))) break;
            done.add(record);
          }
      };
      const workers = Array.from({ length: Math.min(concurrency, lanes.length) }, work);
      // A message that does not end in time is delivered again, and its record says what is known.
      await Promise.race([Promise.all(workers), untilAborted(signal)]);
      if (signal.aborted) await sleep(clock, Math.min(reserveMs, leftMs) / 2, []);
    } finally {
      clock.clearTimeout(timer);
    }
    const failed = new Set(records.filter((record) => !done.has(record)).map(({ messageId }) => messageId));
    return { batchItemFailures: [...failed].map((itemIdentifier) => ({ itemIdentifier })) };
  };

  /** Whether the message may be deleted. */
  async function handle(record: SqsRecord, signal: AbortSignal): Promise<boolean> {
    const { messageId, attributes } = record;
    const message = {
      id: messageId,
      sentAt: toNumber(attributes?.SentTimestamp),
      deliveries: toNumber(attributes?.ApproximateReceiveCount),
      signal,
    };
    try {
      const decision = await handleUnread(message, () => parse(record));
      if (decision.is === 'ack') return true;
      if (decision.is === 'retry') {
        await setDelay?.(record, Math.min(longestDelay, Math.ceil(decision.afterMs / 1_000)));
        return false;
      }
      await deadLetter?.(record, decision.reason);
      return deadLetter !== undefined;
    } catch (error) {
      warn(`${name}: a message goes back to its queue: ${describeError(error)}`);
      return false;
    }
  }
}

const optionNames = fieldNames<SqsHandlerOptions>({
  parse: true,
  deadLetter: true,
  setDelay: true,
  concurrency: true,
  reserve: true,
});

/** The longest visibility timeout is 12 hours from the receipt. */
const longestDelay = 11 * 3_600;

/** An error fails the whole batch, which is delivered again; an answer about the wrong messages could delete it. */
function checkEvent(name: string, event: SqsEvent): readonly SqsRecord[] {
  const records: unknown = event?.Records;
  if (Array.isArray(records) && records.every((record) => isText(record?.messageId))) return records;
  throw new SemelError('INVALID_ARGS', `${name}: this is not an event of an SQS queue.`, {
    path: 'event',
    next: 'Make the handler the target of an SQS event source mapping.',
  });
}

/** In a FIFO queue, a group stops at its first message that is not done: the next one must not overtake it. */
function toLanes(records: readonly SqsRecord[]): (readonly SqsRecord[])[] {
  const groups = new Map<unknown, SqsRecord[]>();
  for (const record of records) {
    // Standard queues have groups too, without an order.
    const isOrdered = record.eventSourceARN?.endsWith('.fifo') ?? false;
    const group = isOrdered ? (record.attributes?.MessageGroupId ?? '') : record;
    const lane = groups.get(group);
    if (lane === undefined) groups.set(group, [record]);
    else lane.push(record);
  }
  return [...groups.values()];
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function toNumber(text: string | undefined): number | undefined {
  const value = Number(text);
  return text !== undefined && Number.isSafeInteger(value) ? value : undefined;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
