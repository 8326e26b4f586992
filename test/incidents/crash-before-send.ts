// The worker dies after it has noted that it will send, before it sends.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dieHere, jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'A crash before the send',
  file: './crash-before-send.ts',
  happened: 'A worker marks an order as confirmed, and is killed before it sends the confirmation.',
  answer: 'It died before `dispatch()`, so the next worker sends.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 0,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 0,
      inDoubt: 1,
    },
    {
      name: 'semel, explicit dispatch',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play({ act }) {
    await act({ dies: true });
    await act({ dies: false });
  },
};

async function worker(job: Job & { dies: boolean }): Promise<void> {
  const beforeTheSend = () => {
    if (job.dies) dieHere();
  };
  if (job.way === 'bare') {
    const mark = join(job.folder, 'confirmed-order-5');
    if (existsSync(mark)) return;
    writeFileSync(mark, '');
    beforeTheSend();
    await send(job, 'order 5');
    return;
  }
  const isExplicit = job.way === 'semel, explicit dispatch';
  // The second worker comes by after the lease of the first.
  const semel = semelOf(job, job.dies ? 0 : 61_000);
  // contract
  const confirm = semel.tool({
    name: 'order.confirm',
    effect: 'write-non-idempotent',
    per: 'ever',
    ...(isExplicit && { dispatch: 'explicit' }),
    run: async ({ order }: { order: number }, { dispatch }) => {
      beforeTheSend();
      if (isExplicit) await dispatch();
      return send(job, `order ${order}`);
    },
  });
  // end
  await confirm.try({ order: 5 });
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
