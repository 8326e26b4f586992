// A load balancer and a client both retry, at the same moment.

import { jobOf } from '../processes/child.ts';
import { conducts } from '../support/effect-server/index.ts';
import { find, meet, semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'Two retries at the same moment',
  file: './parallel-retries.ts',
  happened:
    'The load balancer and the client both retry a request. Two workers get it at the same moment, check, and find nothing.',
  answer: 'One opens the ticket; the other waits and gets the same.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 2, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { usually: conducts.slow(100) },
  async play({ act }) {
    await Promise.all([act(), act()]);
  },
};

async function worker(job: Job): Promise<void> {
  if (job.way === 'bare') {
    const isDone = (await find(job, 'request 31')) !== undefined;
    await meet(job, 'looked', 2);
    if (!isDone) await send(job, 'request 31');
    return;
  }
  const semel = semelOf(job);
  await semel.open();
  await meet(job, 'ready', 2);
  // contract
  const openTicket = semel.tool({
    name: 'ticket.open',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: ({ request }: { request: number }) => send(job, `request ${request}`),
  });
  // end
  await openTicket({ request: 31 });
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
