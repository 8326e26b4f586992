// A BullMQ worker in a process of its own, which is killed or told to stop.

import { Worker } from 'bullmq';
import { bullmqProcessor } from '../../src/consumer/queues/index.ts';
import { die, openConsumer, print, type WorkerJob } from './effects.ts';

export interface BullmqWorkerJob extends WorkerJob {
  readonly prefix: string;
  /** Loses its lock while it works, as a blocked process does. */
  readonly skipLockRenewal?: boolean;
  /** How long its lock lasts: short, so that others take over soon. */
  readonly lockMs?: number;
}

const job = JSON.parse(process.argv[2] as string) as BullmqWorkerJob;
const { semel, consumer } = openConsumer(job);
const { hostname, port } = new URL(job.url);
const options = {
  connection: { host: hostname, port: Number(port), maxRetriesPerRequest: null },
  prefix: job.prefix,
  lockDuration: job.lockMs ?? 600,
  stalledInterval: 300,
  maxStalledCount: 100,
  skipLockRenewal: job.skipLockRenewal ?? false,
};
const handle = bullmqProcessor(consumer, options);
const worker = new Worker(
  job.queue,
  async (delivered, token, signal) => {
    const value = await handle(delivered, token, signal);
    die(job, 'before ack');
    return value;
  },
  options,
);
worker.on('error', () => undefined);
await worker.waitUntilReady();
print({ ready: true });
process.stdin
  .on('end', async () => {
    await worker.close();
    await semel.close();
    process.exit();
  })
  .resume();
