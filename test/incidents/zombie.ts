// A worker stands still for longer than its lock lasts, and goes on as if nothing had been.

import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jobOf, print } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

const lockMs = 400;

export const incident: Incident = {
  title: 'A worker that froze while its lock expired',
  file: './zombie.ts',
  happened:
    'A worker freezes (garbage collection, a paused container) until its lock has expired and another has sent the invoice. Then it sends it again.',
  answer: '`dispatch()` refuses a worker that has been replaced.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 2,
      inDoubt: 0,
    },
    {
      name: 'semel, explicit dispatch',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play({ start, act }) {
    const frozen = start({ stands: true });
    await frozen.line((line) => line === 'prepared');
    await act({ stands: false });
    await frozen.ended;
  },
};

async function worker(job: Job & { stands: boolean }): Promise<void> {
  /** Standing still by a wait that nothing can interrupt: no timer and no heartbeat of this process runs meanwhile. */
  const prepare = () => {
    if (!job.stands) return;
    print('prepared');
    const sent = join(job.folder, 'sent');
    while (!existsSync(sent)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  };
  const done = () => writeFileSync(join(job.folder, 'sent'), '');
  if (job.way === 'bare') {
    const lock = join(job.folder, 'lock');
    while (existsSync(lock) && Date.now() - statSync(lock).mtimeMs < lockMs) await delay(20);
    writeFileSync(lock, '');
    prepare();
    await send(job, 'invoice 12');
    return done();
  }
  const semel = semelOf(job);
  // contract
  const sendInvoice = semel.tool({
    name: 'invoice.send',
    effect: 'irreversible',
    per: 'ever',
    lease: lockMs,
    dispatch: 'explicit',
    run: async ({ invoice }: { invoice: number }, { dispatch }) => {
      prepare();
      await dispatch();
      return send(job, `invoice ${invoice}`);
    },
  });
  // end
  const result = await sendInvoice.try({ invoice: 12 });
  if (result.ok) done();
  await semel.close();
}

if (import.meta.main) await worker(jobOf());
