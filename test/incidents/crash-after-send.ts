// The worker dies after it has sent, before it has noted so.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dieHere, jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'A crash after the send',
  file: './crash-after-send.ts',
  happened: 'A worker charges a card and is killed before it records that. The next one finds no record.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 2, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 1,
    },
    {
      name: 'semel, provider',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { keyed: { windowMs: 30 * 86_400_000 } },
  async play({ act }) {
    await act({ dies: true });
    await act({ dies: false });
  },
};

async function worker(job: Job & { dies: boolean }): Promise<void> {
  if (job.way === 'bare') {
    const record = join(job.folder, 'charged-invoice-9');
    if (existsSync(record)) return;
    await send(job, 'invoice 9');
    if (job.dies) dieHere();
    writeFileSync(record, '');
    return;
  }
  const isKeyed = job.way === 'semel, provider';
  const semel = semelOf(job, job.dies ? 0 : 61_000);
  // contract
  const charge = semel.tool({
    name: 'card.charge',
    effect: 'write-non-idempotent',
    stakes: 'high',
    per: 'ever',
    ...(isKeyed && { provider: { name: 'payments', window: '30d' } }),
    run: async ({ invoice }: { invoice: number }, { key }) => {
      const charged = await send(job, `invoice ${invoice}`, isKeyed ? { key } : {});
      if (job.dies) dieHere();
      return charged;
    },
  });
  // end
  await charge.try({ invoice: 9 });
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
