// One tool makes three writes, and dies in the second.

import { landed, notLanded } from '../../src/index.ts';
import { dieHere, jobOf } from '../processes/child.ts';
import { find, semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'Three writes, killed in the second',
  file: './three-writes.ts',
  happened:
    'A worker charges a card, sends the receipt and orders the parcel. It is killed after the receipt, and starts again from the top.',
  wanted: 3,
  ways: [
    {
      name: 'bare',
      effects: 5,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 2,
      inDoubt: 2,
    },
    {
      name: 'semel, verify',
      effects: 3,
      inDoubt: 0,
    },
  ],
  async play({ act }) {
    await act({ dies: true });
    await act({ dies: false });
  },
};

async function worker(job: Job & { dies: boolean }): Promise<void> {
  const mail = async () => {
    const sent = await send(job, 'receipt');
    if (job.dies) dieHere();
    return sent;
  };
  if (job.way === 'bare') {
    await send(job, 'charge');
    await mail();
    await send(job, 'parcel');
    return;
  }
  const semel = semelOf(job, job.dies ? 0 : 61_000);
  const verify = async () => {
    const found = await find(job, 'receipt');
    return found === undefined ? notLanded() : landed(found);
  };
  // contract
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: async ({ order }: { order: number }, ctx) => {
      await ctx.step('charge', () => send(job, 'charge'));
      await ctx.step('receipt', job.way === 'semel' ? {} : { verify }, mail);
      await ctx.step('parcel', () => send(job, 'parcel'));
      return order;
    },
  });
  // end
  await place.try({ order: 9 });
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
