// graphile-worker: `add_job` in the caller's transaction, with the settings of its page on performance. After a crash it runs
// a job again, four hours later.

import { load } from './peer.ts';
import type { Intent, Queue, QueueOptions } from './queue.ts';

interface Graphile {
  run(options: object): Promise<{ stop(): Promise<void> }>;
  readonly Logger: new (factory: () => () => void) => object;
}

export async function graphileWorker({ url, deliver }: QueueOptions): Promise<Queue> {
  const { run, Logger } = await load<Graphile>('graphile-worker');
  const runner = await run({
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: 24,
        maxPoolSize: 25,
        localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    logger: new Logger(() => () => undefined),
    noHandleSignals: true,
    parsedCronItems: [],
    taskList: { send: (payload: unknown) => deliver(payload as Intent) },
  });
  return {
    name: 'graphile-worker',
    stage: (tx, intent) =>
      tx.query('SELECT graphile_worker.add_job($1, $2::json)', ['send', JSON.stringify(intent)]),
    [Symbol.asyncDispose]: () => runner.stop(),
  };
}
