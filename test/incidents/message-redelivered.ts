// A queue's worker dies between the effect and the acknowledgement, and its message is delivered again.

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dieHere, jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'A message redelivered after the effect and before the ack',
  file: './message-redelivered.ts',
  happened: 'A worker makes a refund and is killed before it acknowledges the message.',
  answer: 'The next delivery finds the record, and is only acknowledged.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 2,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play({ folder, act }) {
    writeFileSync(messageFile({ folder }), JSON.stringify({ paymentId: 'pay-7', cents: 4_900 }));
    for (const dies of [true, false]) {
      await act({ dies });
      if (existsSync(messageFile({ folder })) !== dies)
        throw new Error('The message is not where it should be.');
    }
  },
};

/** The queue: a message is there until it is acknowledged. */
function messageFile({ folder }: Pick<Job, 'folder'>): string {
  return join(folder, 'message.json');
}

async function worker(job: Job & { dies: boolean }): Promise<void> {
  const body = JSON.parse(readFileSync(messageFile(job), 'utf8')) as unknown;
  const refund = ({ paymentId }: { paymentId: string; cents: number }) => send(job, paymentId);
  const acknowledge = () => {
    if (job.dies) dieHere();
    rmSync(messageFile(job));
  };
  if (job.way === 'bare') {
    await refund(body as Parameters<typeof refund>[0]);
    acknowledge();
    return;
  }
  const semel = semelOf(job);
  // contract
  const consumer = semel.consumer(
    semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', identity: ['paymentId'], run: refund }),
    { redelivery: '14d' },
  );
  const decision = await consumer.handle({ body });
  if (decision.is === 'ack') acknowledge();
  // end
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
