// A payment provider delivers one event three times: the first delivery kills the worker after the credit, and the other two come at
// once.

import { createHmac } from 'node:crypto';
import { receive, stripeEvents } from '../../src/http/index.ts';
import { dieHere, jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'A webhook delivered three times',
  file: './webhook-three-times.ts',
  happened:
    'The worker that credits a customer dies before it has answered. The event comes again, twice at once.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 3, inDoubt: 0 },
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
  targets: { keyed: { windowMs: 90 * 86_400_000 } },
  async play({ act }) {
    await act({ dies: true, deliveries: 1 });
    await act({ dies: false, deliveries: 2 });
  },
};

const secret = 'whsec_incident';

interface Part extends Job {
  readonly dies: boolean;
  readonly deliveries: number;
}

async function endpoint(job: Part): Promise<void> {
  const deliver = (handle: (request: Request) => Promise<unknown>) =>
    Promise.all(Array.from({ length: job.deliveries }, () => handle(delivery())));
  const credit = async (event: { id: string }, key?: string) => {
    await send(job, `credit ${event.id}`, key === undefined ? {} : { key });
    if (job.dies) dieHere();
  };
  if (job.way === 'bare') {
    await deliver(async (request) => credit((await request.json()) as { id: string }));
    return;
  }
  const isKeyed = job.way === 'semel, provider';
  const semel = semelOf(job);
  // contract
  const handle = receive(
    semel,
    stripeEvents<{ id: string }>({ secret }),
    (event, { key }) => credit(event, isKeyed ? key : undefined),
    {
      ...(isKeyed && { provider: { name: 'books', window: '90d', sentBy: 'tool' } as const }),
      onError: () => undefined,
    },
  );
  // end
  await deliver(handle);
  await semel.close();
}

function delivery(): Request {
  const body = JSON.stringify({ id: 'evt_9', type: 'payment_intent.succeeded' });
  const time = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
  const headers = { 'stripe-signature': `t=${time},v1=${signature}` };
  return new Request('https://shop.example/hooks', { method: 'POST', headers, body });
}

if (import.meta.main) await endpoint(jobOf());
