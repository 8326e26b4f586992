// BullMQ on Redis: it cannot stage in a transaction, so the job is added after the commit, and a crash in between loses it.
// After a crash of a worker it runs a job again.

import { load } from './peer.ts';
import type { Intent, Queue, QueueOptions } from './queue.ts';

interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => { add(name: string, data: object, options: object): Promise<unknown>; close(): Promise<void> };
  readonly Worker: new (
    name: string,
    processor: (job: { data: Intent }) => Promise<unknown>,
    options: object,
  ) => { close(): Promise<void> };
}

export async function bullMq({ url, deliver }: QueueOptions): Promise<Queue> {
  const { Queue: Adder, Worker } = await load<BullMq>('bullmq');
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Adder('send', { connection });
  const worker = new Worker('send', ({ data }) => deliver(data), { connection, concurrency: 256 });
  return {
    name: 'BullMQ',
    add: (intent) => queue.add('send', intent, { removeOnComplete: true }),
    async [Symbol.asyncDispose]() {
      await worker.close();
      await queue.close();
    },
  };
}
