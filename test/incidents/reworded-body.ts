// The model writes the mail anew with every plan.

import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jobOf } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

const bodies: readonly string[] = [
  'Your order is on its way.',
  'Good news: your order has been sent!',
  'We have sent your order today.',
];

export const incident: Incident = {
  title: 'A mail that the model re-words',
  file: './reworded-body.ts',
  happened:
    'A run is retried twice after its mail was sent. The model words the mail anew, so a cache of calls by their args finds nothing.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 3,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play({ act }) {
    for (const body of bodies) await act({ body });
  },
};

async function run(job: Job & { body: string }): Promise<void> {
  const mail = { to: 'ada@example.com', body: job.body };
  if (job.way === 'bare') {
    const record = join(job.folder, createHash('sha256').update(JSON.stringify(mail)).digest('hex'));
    if (existsSync(record)) return;
    await send(job, `mail to ${mail.to}`, { body: mail.body });
    writeFileSync(record, '');
    return;
  }
  const semel = semelOf(job);
  // contract
  const sendMail = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'turn',
    content: ['body'],
    run: ({ to, body }: typeof mail) => send(job, `mail to ${to}`, { body }),
  });
  await semel.within({ conversation: 'order 17', turn: 'message 3' }, () => sendMail(mail));
  // end
  await semel.close();
}

if (import.meta.main) await run(jobOf());
