// Two clients write the same args down differently.

import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

/** The same transfer: other order of fields, an optional one spelt out, a number with a decimal point, a fresh trace id inside. */
const writings: readonly string[] = [
  '{"to":{"iban":"DE02","name":"Ada"},"amount":100,"meta":{"trace":"a1"}}',
  '{"amount":100.0,"to":{"name":"Ada","iban":"DE02"},"meta":{"trace":"b2"}}',
  '{"meta":{"trace":"c3"},"to":{"name":"Ada","iban":"DE02"},"amount":1e2}',
];

export const incident: Incident = {
  title: 'The same args in another order, with a trace id',
  file: './key-order.ts',
  happened:
    'Two services and a retry request one transfer, each with its own order of args and trace id. The key is a hash of the body.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 3, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play({ act }) {
    for (const body of writings) await act({ body });
  },
};

async function service(job: Job & { body: string }): Promise<void> {
  if (job.way === 'bare') {
    const record = join(job.folder, createHash('sha256').update(job.body).digest('hex'));
    if (existsSync(record)) return;
    await send(job, 'transfer to Ada');
    writeFileSync(record, '');
    return;
  }
  const semel = semelOf(job);
  // contract
  const transfer = semel.tool({
    name: 'money.transfer',
    effect: 'write-non-idempotent',
    stakes: 'high',
    per: 'ever',
    volatile: ['meta.trace'],
    run: (_args: { to: { iban: string; name: string }; amount: number; meta: { trace: string } }) =>
      send(job, 'transfer to Ada'),
  });
  // end
  await transfer(JSON.parse(job.body));
  await semel.close();
}

if (import.meta.main) await service(jobOf());
