// A pg-boss worker in a process of its own, which is killed or told to stop.

import { PgBoss } from 'pg-boss';
import { pgBossWorker } from '../../src/consumer/queues/index.ts';
import { die, openConsumer, print, type WorkerJob } from './effects.ts';

export interface PgBossWorkerJob extends WorkerJob {
  readonly schema: string;
}

/** Looks for expired jobs as often as it can. */
export const quickly = { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 };

if (process.argv[1]?.endsWith('pg-boss-worker.ts')) {
  const job = JSON.parse(process.argv[2] as string) as PgBossWorkerJob;
  const { semel, consumer } = openConsumer(job);
  const boss = new PgBoss({ connectionString: job.url, schema: job.schema, max: 4, ...quickly });
  boss.on('error', () => undefined);
  await boss.start();
  await pgBossWorker(
    {
      getQueue: (name) => boss.getQueue(name),
      getReindexCommands: () => boss.getReindexCommands(),
      work: (name, options, handler) =>
        boss.work(name, options, async (jobs: unknown) => {
          const results = await handler(jobs);
          die(job, 'before ack');
          return results;
        }),
    },
    job.queue,
    consumer,
    { pollingIntervalSeconds: 0.5 },
  );
  print({ ready: true });
  process.stdin
    .on('end', async () => {
      await boss.stop({ graceful: true, timeout: 20_000 });
      await semel.close();
      process.exit();
    })
    .resume();
}
