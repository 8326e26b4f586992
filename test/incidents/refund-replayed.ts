// An orchestrator restarts from the last checkpoint and lets the model plan anew.

import { randomUUID } from 'node:crypto';
import { jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'Four refunds from a replayed workflow',
  file: './refund-replayed.ts',
  happened:
    'A workflow is replayed three times, each time with a new tool call id and another reason: the provider gets four keys.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 4,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { keyed: { windowMs: 30 * 86_400_000 } },
  async play({ act }) {
    for (const reason of [
      'damaged on arrival',
      'arrived broken',
      'customer says it is broken',
      'item damaged',
    ])
      await act({ reason });
  },
};

async function step(job: Job & { reason: string }): Promise<void> {
  const args = { paymentId: 'pay_81', amount: { minor: 4_900, currency: 'EUR' }, reason: job.reason };
  const toolCallId = `call_${randomUUID()}`;
  if (job.way === 'bare') {
    await send(job, args.paymentId, { key: toolCallId, body: JSON.stringify(args) });
    return;
  }
  const semel = semelOf(job);
  // contract
  const refund = semel.tool({
    name: 'payment.refund',
    effect: 'write-non-idempotent',
    stakes: 'high',
    per: 'conversation',
    identity: ['paymentId', 'amount'],
    provider: { name: 'payments', window: '30d' },
    run: (refunded: typeof args, { key }) =>
      send(job, refunded.paymentId, { key, body: JSON.stringify(refunded) }),
  });
  // end
  await refund(args, { conversation: 'ticket 1204', toolCallId });
  await semel.close();
}

if (import.meta.main) await step(jobOf());
