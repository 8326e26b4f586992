// The payment provider remembers a key for an hour; the retry comes after two.

import { landed, notLanded } from '../../src/index.ts';
import { dieHere, jobOf } from '../processes/child.ts';
import { find, semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

const hourMs = 3_600_000;

export const incident: Incident = {
  title: 'A retry after the provider forgot the key',
  file: './provider-forgot.ts',
  happened:
    'A worker sends a payout under a key and dies before the reply. After two hours it sends the key again; the provider remembers keys for one.',
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
      inDoubt: 1,
    },
    {
      name: 'semel, verify',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { keyed: { windowMs: hourMs } },
  async play({ act, server }) {
    await act({ dies: true });
    await server.advance(2 * hourMs);
    await act({ dies: false });
  },
};

async function worker(job: Job & { dies: boolean }): Promise<void> {
  if (job.way === 'bare') {
    await send(job, 'payout 12', { key: 'payout-12' });
    if (job.dies) dieHere();
    return;
  }
  const semel = semelOf(job, job.dies ? 0 : 2 * hourMs);
  const isVerified = job.way === 'semel, verify';
  // contract
  const payOut = semel.tool({
    name: 'payout.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    window: isVerified ? '7d' : '1h',
    provider: { name: 'payouts', window: '1h' },
    run: async ({ payout }: { payout: number }, { key }) => {
      const sent = await send(job, `payout ${payout}`, { key });
      if (job.dies) dieHere();
      return sent;
    },
    ...(isVerified && {
      verify: async ({ payout }: { payout: number }) => {
        const sent = await find(job, `payout ${payout}`);
        return sent === undefined ? notLanded() : landed(sent);
      },
    }),
  });
  // end
  await payOut.try({ payout: 12 });
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
