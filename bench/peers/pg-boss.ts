// pg-boss: `send` with the `db` of the caller's transaction, batches of jobs per fetch. After a crash it runs a job again.

import { load } from './peer.ts';
import type { Intent, Queue, QueueOptions } from './queue.ts';

interface Database {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

interface Boss {
  on(event: 'error', listener: (error: unknown) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string, options: { notify: boolean }): Promise<void>;
  send(name: string, data: object, options: { db: Database }): Promise<string | null>;
  work(
    name: string,
    options: object,
    handler: (jobs: { data: Intent }[]) => Promise<unknown>,
  ): Promise<string>;
}

interface PgBoss {
  readonly PgBoss: new (options: object) => Boss;
}

/**
 * Its workers learn of a job by a NOTIFY, which every commit that sends one waits for in turn; or they poll, at most twice a
 * second, and go on without a pause while batches are full. The first is for latency, the second for throughput.
 */
export async function pgBoss(wakeUp: 'notify' | 'poll', { url, deliver }: QueueOptions): Promise<Queue> {
  const { PgBoss } = await load<PgBoss>('pg-boss');
  const isNotified = wakeUp === 'notify';
  const boss = new PgBoss({
    connectionString: url,
    schema: `pgboss_${wakeUp}`,
    useListenNotify: isNotified,
    schedule: false,
    supervise: false,
  });
  boss.on('error', (error) => process.stderr.write(`pg-boss: ${error}\n`));
  await boss.start();
  await boss.createQueue('send', { notify: isNotified });
  const options = {
    batchSize: 250,
    localConcurrency: 2,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  };
  await boss.work(
    'send',
    options,
    async (jobs) => void (await Promise.all(jobs.map(({ data }) => deliver(data)))),
  );
  return {
    name: `pg-boss, ${wakeUp}`,
    stage: (tx, intent) =>
      boss.send('send', intent, { db: { executeSql: (text, values) => tx.query(text, values) } }),
    [Symbol.asyncDispose]: () => boss.stop({ graceful: false }),
  };
}
