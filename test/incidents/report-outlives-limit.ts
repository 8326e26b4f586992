// A step takes longer than its function may run: the platform kills the function, and retries it three times.

import { setTimeout as delay } from 'node:timers/promises';
import { landed, month, notLanded } from '../../src/index.ts';
import { dieHere, jobOf } from '../processes/child.ts';
import { conducts } from '../support/effect-server/index.ts';
import { find, findAll, type Sent, semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

const attempts = 4;

export const incident: Incident = {
  title: 'A report that outlives its function, retried three times',
  file: './report-outlives-limit.ts',
  happened:
    'A function orders a report that takes longer than the function may run. The platform kills it, and retries it three times.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: attempts,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 1,
    },
    {
      name: 'semel, verify',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { usually: conducts.commitsThenHangs },
  async play({ act }) {
    for (let attempt = 1; attempt <= attempts; attempt += 1) await act({ attempt });
  },
};

async function platformFunction(job: Job & { attempt: number }): Promise<void> {
  const collect = () => ({ orders: 12 });
  const order = (_figures: { orders: number }) => orderUntilLimit(job);
  if (job.way === 'bare') {
    await order(collect());
    return;
  }
  // Each retry comes an hour after the attempt before it.
  const semel = semelOf(job, (job.attempt - 1) * 3_600_000);
  const verify = async () => {
    const found = await find(job, 'report');
    return found === undefined ? notLanded() : landed(found);
  };
  const isVerified = job.way === 'semel, verify';
  // contract
  const report = semel.job('customer.report', { per: month('UTC') }, async (run) => {
    const figures = await run.step('figures', collect);
    const id = { customer: 7, month: run.slot };
    await run.once('report', id, isVerified ? { verify } : {}, () => order(figures));
  });
  // end
  const { status } = await report.try({ at: new Date('2026-06-01T02:00:00Z') });
  const expected = isVerified ? (job.attempt === 2 ? 'executed' : 'skipped') : 'failed';
  if (status !== expected) throw new Error(`Attempt ${job.attempt}: ${status}, not ${expected}.`);
  await semel.close();
}

/** The limit is reached at the worst moment: the report is out, its answer is not. */
async function orderUntilLimit(job: Job): Promise<Sent> {
  const before = (await findAll(job, 'report')).length;
  const sending = send(job, 'report');
  while ((await findAll(job, 'report')).length === before) await delay(5);
  dieHere();
  return sending;
}

if (import.meta.main) await platformFunction(jobOf());
