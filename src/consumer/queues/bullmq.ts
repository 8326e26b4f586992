// A BullMQ processor. A job goes back as a delayed one, which does not count as an attempt; a dead letter is a failed job. Nothing is
// imported from bullmq: it recognises its own errors by their names.

import { describeError } from '../../call/index.ts';
import { type Consumer, partsOf } from '../consumer.ts';
import { toOutput } from './output.ts';

/** What the processor needs of a BullMQ job. */
export interface BullmqJob {
  readonly id?: string | undefined;
  readonly queueName: string;
  readonly data: unknown;
  /** When it was added. */
  readonly timestamp: number;
  readonly attemptsStarted: number;
  moveToDelayed(timestamp: number, token?: string): Promise<void>;
}

/** The options of the worker that decide how often it starts a job. */
export interface BullmqWorkerLimits {
  readonly maxStalledCount?: number | undefined;
  readonly maxStartedAttempts?: number | undefined;
}

/** BullMQ passes a signal only to a function with three parameters. */
export type BullmqProcessor<Value> = (
  job: BullmqJob,
  token: string | undefined,
  signal: AbortSignal | undefined,
) => Promise<Value | undefined>;

/** For `new Worker(name, bullmqProcessor(consumer, options), options)`. */
export function bullmqProcessor<Value>(
  consumer: Consumer<Value>,
  worker?: BullmqWorkerLimits,
): BullmqProcessor<Value> {
  const { engine, checkLimit } = partsOf(consumer);
  const { name } = consumer.contract;
  if (worker?.maxStartedAttempts !== undefined) checkLimit(worker.maxStartedAttempts, 'maxStartedAttempts');
  const stalls = worker === undefined ? enoughStalls : (worker.maxStalledCount ?? bullmqStalls);
  if (stalls < enoughStalls)
    engine.warn(
      `${name}: BullMQ fails a job whose worker has died ${stalls + 1} times (maxStalledCount: ${stalls}), even if it is in doubt. ` +
        `Write maxStalledCount: ${enoughStalls}: semel does not re-run a job that may have landed.`,
    );

  return async (job, token, signal) => {
    const decision = await consumer.handle({
      body: job.data,
      // An id may be used again once its job is removed.
      id: job.id === undefined ? undefined : `${job.queueName}/${job.id}/${job.timestamp}`,
      sentAt: job.timestamp,
      deliveries: job.attemptsStarted,
      signal,
    });
    if (decision.is === 'ack') return toOutput(decision.value);
    if (decision.is === 'dead letter') throw namedError('UnrecoverableError', decision.reason);
    try {
      await job.moveToDelayed(engine.clock.now() + decision.afterMs, token);
    } catch (error) {
      // It stays active until its lock expires, and is then delivered again. Any other error would use up its attempts.
      engine.warn(`${name}: BullMQ could not delay a job: ${describeError(error)}`);
    }
    throw namedError('DelayedError', decision.reason);
  };
}

const bullmqStalls = 1;
const enoughStalls = 100;

function namedError(name: 'DelayedError' | 'UnrecoverableError', message: string): Error {
  return Object.assign(new Error(message), { name });
}
