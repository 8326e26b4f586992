// A pg-boss worker that settles each job by itself. pg-boss decides how long a failed job waits and how often it is tried, so
// the queue needs a high `retryLimit`: every message that goes back uses up one.

import { describeError } from '../../call/index.ts';
import { SemelError } from '../../core/errors.ts';
import { type Consumer, partsOf } from '../consumer.ts';
import { toOutput, toReason } from './output.ts';

export interface PgBossJob {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly createdOn: Date;
  readonly retryCount: number;
  readonly retryLimit: number;
}

export interface PgBossResult {
  readonly id: string;
  readonly status: 'completed' | 'failed' | 'deadletter';
  readonly output?: unknown;
}

/** What is needed of a PgBoss instance. */
export interface PgBossLike {
  // biome-ignore lint/suspicious/noExplicitAny: pg-boss types its handler by its options, each version in another way.
  work(name: string, options: any, handler: any): Promise<string>;
  getQueue(name: string): Promise<PgBossQueue | null>;
  /** Not called. */
  getReindexCommands(): Promise<unknown>;
}

interface PgBossQueue {
  readonly retryLimit?: number;
  readonly retryDelay?: number;
  readonly retryBackoff?: boolean;
}

/** Options of `boss.work`, except those that decide what a job's result means. */
export interface PgBossWorkOptions {
  readonly batchSize?: number;
  readonly localConcurrency?: number;
  readonly pollingIntervalSeconds?: number;
  readonly [option: string]: unknown;
}

/** Calls `boss.work`; resolves to its worker id. */
export async function pgBossWorker(
  boss: PgBossLike,
  queueName: string,
  consumer: Consumer,
  options: PgBossWorkOptions = {},
): Promise<string> {
  const { engine, checkLimit, checkRedrive } = partsOf(consumer);
  const { name } = consumer.contract;
  // It came after results per job: a version without them would complete every job, whatever its result says.
  if (typeof boss?.getReindexCommands !== 'function')
    throw new SemelError('CONTRACT_INVALID', `${name}: this version of pg-boss has no results per job.`, {
      path: 'boss',
      next: 'Use pg-boss 12.30 or a later version.',
    });
  checkRedrive('pg-boss');
  const queue = await boss.getQueue(queueName);
  if (queue !== null) {
    checkLimit((queue.retryLimit ?? 0) + 1, `retryLimit: ${queue.retryLimit ?? 0}`);
    if (!queue.retryDelay && queue.retryBackoff !== true)
      engine.warn(
        `${name}: pg-boss delivers a job of ${queueName} again at once, even if it is running elsewhere. ` +
          'Write retryDelay: 1, retryBackoff: true, retryDelayMax: 300.',
      );
  }
  return boss.work(
    queueName,
    // Without results per job, pg-boss would complete whatever the handler returns.
    { ...options, perJobResults: true, includeMetadata: true },
    (jobs: readonly PgBossJob[]) => Promise.all(jobs.map(handle)),
  );

  async function handle(job: PgBossJob): Promise<PgBossResult> {
    const { id, retryCount, retryLimit } = job;
    try {
      // Not with `job.signal`: it aborts when the job expires, and an effect that is under way finishes under its lease.
      const decision = await consumer.handle({
        body: job.data,
        id: `${queueName}/${id}`,
        sentAt: job.createdOn,
        deliveries: retryCount + 1,
      });
      if (decision.is === 'ack') return { id, status: 'completed', output: toOutput(decision.value) };
      const output = { message: toReason(decision.reason) };
      if (decision.is === 'dead letter') return { id, status: 'deadletter', output };
      if (retryCount >= retryLimit)
        engine.warn(
          `${name}: pg-boss has no retries left for job ${id} and fails it, although its outcome is undecided: ${decision.reason}`,
        );
      return { id, status: 'failed', output };
    } catch (error) {
      // One job must not decide about the others of its batch.
      return { id, status: 'failed', output: { message: toReason(describeError(error)) } };
    }
  }
}
