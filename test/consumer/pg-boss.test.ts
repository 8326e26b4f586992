// pgBossWorker with real pg-boss workers on a real Postgres, in real processes that are really killed: one effect per message,
// and no message is lost.

import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { PgBoss, type QueueOptions } from 'pg-boss';
import { NotLanded, type Semel } from 'semel';
import { pgBossWorker } from 'semel/queues';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { rig } from '../library/support.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { ownSchema } from '../servers/own-place.ts';
import { listEffects, openSemel, type WorkerLine } from './effects.ts';
import { type PgBossWorkerJob, quickly } from './pg-boss-worker.ts';

let url: string;
let schema: string;
let boss: PgBoss;

beforeAll(async () => {
  ({ url, schema } = await ownSchema());
  boss = new PgBoss({ connectionString: url, schema, max: 4, ...quickly });
  boss.on('error', () => undefined);
  await boss.start();
});
afterAll(() => boss.stop({ graceful: false }));

let queues = 0;

async function open(more: QueueOptions = {}) {
  const scratch = newScratch('pg-boss');
  const queue = `q${++queues}`;
  await boss.createQueue(`${queue}-dead`);
  await boss.createQueue(queue, {
    retryLimit: 10_000,
    expireInSeconds: 1,
    deadLetter: `${queue}-dead`,
    ...more,
  });
  const job: PgBossWorkerJob = {
    url,
    schema,
    queue,
    ledger: scratch.path('ledger.db'),
    effects: scratch.path('effects.txt'),
  };
  onTestFinished(() => scratch[Symbol.dispose]());
  const find = async (id: string) => (await boss.findJobs<object>(queue, { id }))[0];
  return {
    job,
    scratch,
    find,
    start(changes: Partial<PgBossWorkerJob> = {}) {
      const worker = startNode<WorkerLine>(new URL('pg-boss-worker.ts', import.meta.url), {
        ...job,
        ...changes,
      });
      onTestFinished(() => void worker.kill());
      return worker;
    },
    send: async (data: object) => (await boss.send(queue, data)) as string,
    isIn: async (id: string, state: string) => (await find(id))?.state === state,
    listDead: () => boss.findJobs<object>(`${queue}-dead`),
  };
}

/** Waits until it is so. */
async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

describe('pg-boss', () => {
  test('a worker that dies after the effect is on record and before the ack: one effect, acknowledged by the next worker', async () => {
    const { job, start, send, find, isIn } = await open();
    const id = await send({ id: 'a' });
    await start({ dieAt: 'before ack' }).ended;
    expect(await isIn(id, 'completed')).toBe(false);
    start();
    await until(() => isIn(id, 'completed'));
    expect(listEffects(job)).toEqual(['a']);
    expect((await find(id))?.output).toEqual({ refunded: 'a' });
  });

  test('a worker that dies after the effect and before it is on record: `verify` finds it', async () => {
    const { job, start, send, isIn } = await open();
    const id = await send({ id: 'a' });
    await start({ dieAt: 'after effect', hasVerify: true }).ended;
    start({ hasVerify: true });
    await until(() => isIn(id, 'completed'));
    expect(listEffects(job)).toEqual(['a']);
  });

  test.each(['after effect', 'before ack'] as const)(
    'with its ledger in Postgres, a worker that dies %s: one effect, acknowledged by the next worker',
    async (dieAt) => {
      const { job, start, send, isIn } = await open();
      const ledger = await ownSchema();
      const id = await send({ id: 'a' });
      await start({ ledger, dieAt, hasVerify: true }).ended;
      expect(await isIn(id, 'completed')).toBe(false);
      start({ ledger, hasVerify: true });
      await until(() => isIn(id, 'completed'));
      expect(listEffects(job)).toEqual(['a']);
      await using semel = openSemel({ ...job, ledger });
      expect((await semel.records.list()).items).toMatchObject([{ contract: 'refund', status: 'succeeded' }]);
    },
  );

  test('without `verify` the message waits in doubt, delivery after delivery, until a person decides', async () => {
    const { job, start, send, isIn } = await open();
    const id = await send({ id: 'a' });
    await start({ dieAt: 'after effect' }).ended;
    const worker = start();
    const inDoubt = () => worker.lines.filter((line) => 'is' in line && line.code === 'IN_DOUBT').length;
    // More often than the consumer tries what did not land.
    await until(() => inDoubt() >= 4);
    expect(listEffects(job)).toEqual(['a']);
    await using semel = openSemel(job);
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, 'landed', { by: 'ann' });
    await until(() => isIn(id, 'completed'));
    expect(listEffects(job)).toEqual(['a']);
  });

  test('an effect slower than its job may take: the second worker finds it busy, and the job is done once', async () => {
    const { job, scratch, start, send, isIn } = await open();
    const hold = scratch.path('go');
    const first = start({ hold });
    await first.line((line) => 'ready' in line);
    const id = await send({ id: 'a' });
    await first.line((line) => 'running' in line);
    const second = start();
    await second.line((line) => 'is' in line && line.is === 'retry' && line.code === 'IN_FLIGHT');
    writeFileSync(hold, '');
    await until(() => isIn(id, 'completed'));
    expect(listEffects(job)).toEqual(['a']);
  });

  test('a worker that is stopped finishes its job', async () => {
    const { job, scratch, start, send, isIn } = await open({ expireInSeconds: 60 });
    const hold = scratch.path('go');
    const first = start({ hold });
    await first.line((line) => 'ready' in line);
    const id = await send({ id: 'a' });
    await first.line((line) => 'running' in line);
    const finishing = first.finish();
    writeFileSync(hold, '');
    expect(await finishing).toMatchObject({ code: 0 });
    expect(await isIn(id, 'completed')).toBe(true);
    expect(listEffects(job)).toEqual(['a']);
  });

  test('a body that does not fit the schema, and what never lands, are dead letters with a reason', async () => {
    const { job, start, send, find, isIn, listDead } = await open();
    const wrong = await send({ id: 7 });
    const unlucky = await send({ id: 'unlucky' });
    const worker = start();
    await until(async () => (await isIn(wrong, 'failed')) && (await isIn(unlucky, 'failed')));
    expect((await find(wrong))?.output).toEqual({
      message: expect.stringContaining('do not fit its schema'),
    });
    expect((await find(unlucky))?.output).toEqual({
      message: expect.stringContaining('It was tried 3 times.'),
    });
    expect(worker.lines.filter((line) => 'running' in line)).toHaveLength(3);
    expect((await listDead()).map(({ data }) => data)).toEqual(
      expect.arrayContaining([{ id: 7 }, { id: 'unlucky' }]),
    );
    expect(listEffects(job)).toEqual([]);
  });
});

describe('the worker', () => {
  function consumerOf(semel: Semel, run: (args: { id: string }) => unknown = () => 1) {
    const tool = semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', run });
    return semel.consumer(tool, { redelivery: '1d', maxTries: 2 });
  }

  const getReindexCommands = async () => [];

  test('refuses a pg-boss that would complete every job', async () => {
    const older = { getQueue: async () => null, work: async () => 'worker-1' };
    await expect(pgBossWorker(older as never, 'q', consumerOf(rig().semel))).rejects.toThrow(
      'Use pg-boss 12.30 or a later version.',
    );
  });

  test('warns of a queue that gives up, or that delivers again at once', async () => {
    const { semel, warnings } = rig();
    const queueWith = (queue: object | null) => ({
      getReindexCommands,
      getQueue: async () => queue,
      work: async () => 'worker-1',
    });
    const good = { retryLimit: 10_000, retryDelay: 1, retryBackoff: true };
    expect(await pgBossWorker(queueWith(good), 'q', consumerOf(semel))).toBe('worker-1');
    await pgBossWorker(queueWith(null), 'q', consumerOf(semel));
    expect(warnings).toEqual([]);
    await pgBossWorker(queueWith({ ...good, retryLimit: 2 }), 'q', consumerOf(semel));
    expect(warnings.join()).toContain('gives up on a message after 3 deliveries (retryLimit: 2)');
    await pgBossWorker(queueWith({ retryLimit: 10_000 }), 'q', consumerOf(semel));
    expect(warnings.join()).toContain('again at once');
  });

  test('settles every job of a batch by itself, and says so where a doubt runs out of retries', async () => {
    const { semel, warnings } = rig();
    const consumer = consumerOf(semel, ({ id }) => {
      if (id === 'refused') throw new NotLanded('no funds');
      if (id === 'hang up') throw new Error('socket hang up');
      return id === 'odd' ? 'nul \0' : id;
    });
    let handler: ((jobs: readonly object[]) => Promise<readonly object[]>) | undefined;
    let given: object | undefined;
    const stub = {
      getReindexCommands,
      getQueue: async () => null,
      async work(_: string, options: object, handle: typeof handler) {
        handler = handle;
        given = options;
        return '1';
      },
    };
    // Without results per job, pg-boss would complete all of them.
    await pgBossWorker(stub, 'q', consumer, { batchSize: 5, perJobResults: false });
    expect(given).toMatchObject({ batchSize: 5, perJobResults: true, includeMetadata: true });
    const job = (id: string) => ({
      id,
      name: 'q',
      data: { id },
      createdOn: new Date(),
      retryCount: 2,
      retryLimit: 2,
    });
    const results = await handler?.(['done', 'odd', 'refused', 'hang up'].map(job));
    expect(results).toMatchObject([
      { id: 'done', status: 'completed', output: 'done' },
      { id: 'odd', status: 'completed', output: undefined },
      { id: 'refused', status: 'failed' },
      { id: 'hang up', status: 'failed' },
    ]);
    expect(warnings.join('\n')).toMatch(
      /no retries left for job hang up .* undecided: refund: socket hang up/,
    );
  });
});
