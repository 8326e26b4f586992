// The client's time-out is shorter than the mail server's answer; the agent tries three times.

import { setTimeout as delay } from 'node:timers/promises';
import { landed, notLanded } from '../../src/index.ts';
import { jobOf } from '../processes/child.ts';
import { conducts } from '../support/effect-server/index.ts';
import { find, findAll, type Sent, semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'Three mails after a timeout',
  file: './mail-after-timeout.ts',
  happened: 'The mail server accepts a mail and answers late. The client times out and retries twice.',
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
      inDoubt: 1,
    },
    {
      name: 'semel, verify',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { usually: conducts.commitsThenHangs },
  play: ({ act }) => act().then(() => undefined),
};

async function agent(job: Job): Promise<void> {
  const mail = (lead: string) => sendUntilTimeout(job, lead);
  const isVerified = job.way === 'semel, verify';
  if (job.way === 'bare') return thrice(() => mail('lead 7'));

  const semel = semelOf(job);
  // contract
  const sendMail = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'turn',
    identity: ['lead'],
    run: ({ lead }: { lead: string; body: string }) => mail(lead),
    ...(isVerified && {
      verify: async ({ lead }: { lead: string; body: string }) => {
        const sent = await find(job, lead);
        return sent === undefined ? notLanded() : landed(sent);
      },
    }),
  });
  // end
  await thrice((nth) =>
    sendMail({ lead: 'lead 7', body: `Worded anew, ${nth}` }, { conversation: 'c1', turn: '4' }),
  );
  await semel.close();
}

/** The time is out at the worst moment: the mail is there, its answer is not. */
async function sendUntilTimeout(job: Job, lead: string): Promise<Sent> {
  const before = (await findAll(job, lead)).length;
  const timeout = new AbortController();
  const sending = send(job, lead, { signal: timeout.signal });
  while ((await findAll(job, lead)).length === before) await delay(5);
  timeout.abort(new Error('timed out'));
  return sending;
}

/** What an agent does with an error. */
async function thrice(attempt: (nth: number) => Promise<unknown>): Promise<void> {
  for (let nth = 1; nth <= 3; nth += 1) {
    try {
      await attempt(nth);
      return;
    } catch {
      // "Something went wrong, let me try that again."
    }
  }
}

if (import.meta.main) await agent(jobOf<Job>());
