// bullmqProcessor with real BullMQ workers on a real Redis, in real processes that are really killed: one effect per message,
// and no message is lost.

import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type JobsOptions, Queue } from 'bullmq';
import { bullmqProcessor } from 'semel/queues';
import { describe, expect, onTestFinished, test } from 'vitest';
import { quick, rig } from '../library/support.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { ownPrefix } from '../servers/own-place.ts';
import type { BullmqWorkerJob } from './bullmq-worker.ts';
import { listEffects, openSemel, type WorkerLine } from './effects.ts';

const place = ownPrefix();

function open() {
  const { url, prefix } = place as NonNullable<typeof place>;
  const scratch = newScratch('bullmq');
  const { hostname, port } = new URL(url);
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
  const options = { prefix: prefix.replace(':', ''), queue: `q${Math.random().toString(36).slice(2)}` };
  const queue = new Queue(options.queue, { connection, prefix: options.prefix });
  const job: BullmqWorkerJob = {
    url,
    ...options,
    ledger: scratch.path('ledger.db'),
    effects: scratch.path('effects.txt'),
  };
  onTestFinished(async () => {
    await queue.close();
    scratch[Symbol.dispose]();
  });
  const start = (more: Partial<BullmqWorkerJob> = {}) => {
    const worker = startNode<WorkerLine>(new URL('bullmq-worker.ts', import.meta.url), { ...job, ...more });
    onTestFinished(() => void worker.kill());
    return worker;
  };
  return {
    job,
    scratch,
    start,
    add: async (data: unknown, more: JobsOptions = {}) =>
      (await queue.add('refund', data, { attempts: 2, ...more })).id as string,
    stateOf: (id: string) => queue.getJobState(id),
    find: (id: string) => queue.getJob(id),
  };
}

/** Waits until it is so. */
async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

describe.skipIf(place === undefined)('BullMQ', () => {
  test('a worker that dies after the effect is on record and before the ack: one effect, acknowledged by the next worker', async () => {
    const { job, start, add, stateOf, find } = open();
    const id = await add({ id: 'a' });
    await start({ dieAt: 'before ack' }).ended;
    expect(await stateOf(id)).toBe('active');
    start();
    await until(async () => (await stateOf(id)) === 'completed');
    expect(listEffects(job)).toEqual(['a']);
    expect((await find(id))?.returnvalue).toEqual({ refunded: 'a' });
  });

  test('a worker that dies after the effect and before it is on record: `verify` finds it', async () => {
    const { job, start, add, stateOf } = open();
    const id = await add({ id: 'a' });
    await start({ dieAt: 'after effect', hasVerify: true }).ended;
    start({ hasVerify: true });
    await until(async () => (await stateOf(id)) === 'completed');
    expect(listEffects(job)).toEqual(['a']);
  });

  test('without `verify` the message waits in doubt, delivery after delivery, until a person decides', async () => {
    const { job, start, add, stateOf } = open();
    const id = await add({ id: 'a' });
    await start({ dieAt: 'after effect' }).ended;
    const worker = start();
    const inDoubt = () => worker.lines.filter((line) => 'is' in line && line.code === 'IN_DOUBT').length;
    await until(() => inDoubt() >= 5);
    expect(['active', 'delayed', 'waiting']).toContain(await stateOf(id));
    expect(listEffects(job)).toEqual(['a']);
    await using semel = openSemel(job);
    const { items } = await semel.doubts.list();
    expect(items).toHaveLength(1);
    await semel.doubts.resolve(items[0]!.ref, 'landed', { by: 'ann' });
    await until(async () => (await stateOf(id)) === 'completed');
    expect(listEffects(job)).toEqual(['a']);
  });

  test('an effect slower than its lock: the second worker finds it busy, and the job is done once', async () => {
    const { job, scratch, start, add, stateOf } = open();
    const hold = scratch.path('go');
    const first = start({ skipLockRenewal: true, hold });
    await first.line((line) => 'ready' in line);
    const id = await add({ id: 'a' });
    await first.line((line) => 'running' in line);
    const second = start();
    await second.line((line) => 'is' in line && line.is === 'retry' && line.code === 'IN_FLIGHT');
    writeFileSync(hold, '');
    await until(async () => (await stateOf(id)) === 'completed');
    expect(listEffects(job)).toEqual(['a']);
  });

  test('a worker that is stopped finishes its job and leaves the rest to others', async () => {
    const { job, scratch, start, add, stateOf } = open();
    const hold = scratch.path('go');
    // Long: on a busy machine a short lock expires, and the finished job stays active until it is delivered again.
    const first = start({ hold, lockMs: 60_000 });
    await first.line((line) => 'ready' in line);
    const one = await add({ id: 'a' });
    await first.line((line) => 'running' in line);
    const other = await add({ id: 'b' });
    const finishing = first.finish();
    writeFileSync(hold, '');
    expect(await finishing).toMatchObject({ code: 0 });
    expect(await stateOf(one)).toBe('completed');
    expect(await stateOf(other)).toBe('waiting');
    start();
    await until(async () => (await stateOf(other)) === 'completed');
    expect(listEffects(job)).toEqual(['a', 'b']);
  });

  test('a body that does not fit the schema fails at once, with the reason', async () => {
    const { job, start, add, stateOf, find } = open();
    const id = await add({ id: 7 }, { attempts: 5 });
    start();
    await until(async () => (await stateOf(id)) === 'failed');
    expect(await find(id)).toMatchObject({
      failedReason: expect.stringContaining('do not fit its schema'),
      attemptsMade: 1,
    });
    expect(listEffects(job)).toEqual([]);
  });

  test('what never lands fails after as many tries as the consumer allows, whatever the job says', async () => {
    const { start, add, stateOf, find } = open();
    const id = await add({ id: 'unlucky' }, { attempts: 1 });
    const worker = start();
    await until(async () => (await stateOf(id)) === 'failed');
    expect((await find(id))?.failedReason).toContain('It was tried 3 times.');
    expect(worker.lines.filter((line) => 'running' in line)).toHaveLength(3);
  });
});

describe('the processor', () => {
  const consumerOf = (semel: ReturnType<typeof quick>) =>
    semel.consumer(
      semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', run: (_: object): unknown => 10n }),
      { redelivery: '1d' },
    );

  test('warns of a worker that fails jobs by counting', () => {
    const { semel, warnings } = rig();
    bullmqProcessor(consumerOf(semel), { maxStalledCount: 100 });
    bullmqProcessor(consumerOf(semel));
    expect(warnings).toEqual([]);
    bullmqProcessor(consumerOf(semel), {});
    expect(warnings.join()).toContain('Write maxStalledCount: 100');
    bullmqProcessor(consumerOf(semel), { maxStalledCount: 100, maxStartedAttempts: 3 });
    expect(warnings.join()).toContain('(maxStartedAttempts)');
  });

  const delivered = { id: '1', queueName: 'q', data: {}, timestamp: 1, attemptsStarted: 1 };

  test('takes the signal that BullMQ passes only to functions with three parameters', () => {
    expect(bullmqProcessor(consumerOf(quick()))).toHaveLength(3);
  });

  test('identifies a job by queue, id and time: an id may be reused once its job is removed', async () => {
    const semel = quick();
    let ran = 0;
    const tool = semel.tool({
      name: 'refund',
      effect: 'irreversible',
      per: 'ever',
      run: (_: object) => ++ran,
    });
    const handle = bullmqProcessor(semel.consumer(tool, { redelivery: '1d', key: 'id' }));
    const moveToDelayed = async () => undefined;
    for (const timestamp of [1, 1, 2])
      await handle({ ...delivered, timestamp, moveToDelayed }, 't', undefined);
    expect(ran).toBe(2);
  });

  test('returns no value that BullMQ cannot store: the job would fail although it is done', async () => {
    const job = { ...delivered, moveToDelayed: async () => undefined };
    expect(await bullmqProcessor(consumerOf(quick()))(job, 't', undefined)).toBeUndefined();
  });

  test('does not use up an attempt where the job could not be delayed', async () => {
    const semel = quick();
    const consumer = consumerOf(semel);
    await semel.close();
    const job = { ...delivered, moveToDelayed: () => Promise.reject(new Error('connection lost')) };
    const handling = bullmqProcessor(consumer)(job, 't', undefined);
    await expect(handling).rejects.toMatchObject({ name: 'DelayedError' });
  });
});
