// A person starts the same script again, from another folder.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel } from '../../src/index.ts';
import { jobOf } from '../processes/child.ts';
import { send } from './actor.ts';
import type { Incident, Job } from './incident.ts';
import { namespace } from './stage.ts';

export const incident: Incident = {
  title: 'The same script from two folders',
  file: './two-clicks.ts',
  happened:
    'A script that remembers what it did in the working directory runs from the home folder, and again from the project.',
  answer: 'The ledger is per user, not per folder.',
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
  async play({ act, folder }) {
    for (const place of ['home', 'project']) {
      const cwd = join(folder, place);
      mkdirSync(cwd);
      await act({}, { cwd, env: { XDG_STATE_HOME: join(folder, 'state') } });
    }
  },
};

async function script(job: Job): Promise<void> {
  if (job.way === 'bare') {
    if (existsSync('.sent-2026-05')) return;
    await send(job, 'report 2026-05');
    writeFileSync('.sent-2026-05', '');
    return;
  }
  // No store is named: it is the ledger of this user.
  const semel = createSemel({ namespace, onWarning: () => undefined });
  // contract
  await semel.once('report.send', { month: '2026-05' }, () => send(job, 'report 2026-05'));
  // end
  await semel.close();
}

if (import.meta.main) await script(jobOf());
