// A list of invoices: one of them fails in the middle, and the script is started again.

import { createSemel, NotLanded } from '../../src/index.ts';
import { jobOf } from '../processes/child.ts';
import { send } from './actor.ts';
import type { Incident, Job } from './incident.ts';
import { namespace } from './stage.ts';

const count = 100;

export const incident: Incident = {
  title: 'A batch of 100, item 60 fails, started again',
  file: './batch-started-again.ts',
  happened:
    'A script sends 100 invoices, and number 60 throws. It is mended and started again, from the top.',
  answer: 'Every item has its own record.',
  wanted: count,
  ways: [
    {
      name: 'bare',
      effects: count + 60,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: count,
      inDoubt: 0,
    },
  ],
  async play({ act }) {
    for (const hasAddress of [false, true]) await act({ hasAddress });
  },
};

interface Start extends Job {
  readonly hasAddress: boolean;
}

async function script(job: Start): Promise<void> {
  const invoices = Array.from({ length: count }, (_, number) => ({ number }));
  const isComplete = (number: number) => number !== 60 || job.hasAddress;
  if (job.way === 'bare') {
    for (const { number } of invoices) {
      // It throws here, and the script ends.
      if (!isComplete(number)) return;
      await send(job, `invoice ${number}`);
    }
    return;
  }
  const semel = createSemel({ store: `sqlite:${job.ledger}`, namespace, onWarning: () => undefined });
  // contract
  await semel.batch('invoice.send', invoices, { id: (invoice) => invoice.number }, async ({ number }) => {
    if (!isComplete(number)) throw new NotLanded('no address');
    await send(job, `invoice ${number}`);
  });
  // end
  await semel.close();
}

if (import.meta.main) await script(jobOf());
