// The place where it would be remembered does not answer.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { jobOf, onFinish, print } from '../processes/child.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

export const incident: Incident = {
  title: 'The ledger is down',
  file: './ledger-down.ts',
  happened:
    'The caller tries during an outage of the store and after it. The code fails open and runs both times.',
  answer: 'The first call gets STORE_UNAVAILABLE.',
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
  async play({ act, start }) {
    const locking = start({ part: 'locks' });
    await locking.line(() => true);
    await act({ part: 'calls', isDown: true });
    await locking.finish();
    await act({ part: 'calls', isDown: false });
    await act({ part: 'calls', isDown: false });
  },
};

type Part = Job & ({ part: 'locks' } | { part: 'calls'; isDown: boolean });

/** A program that opened a transaction and forgot about it. */
function lock({ ledger }: Job): void {
  mkdirSync(dirname(ledger), { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(ledger);
  database.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE');
  print({ locked: true });
  const forgetting = setInterval(() => undefined, 1_000);
  onFinish(() => {
    clearInterval(forgetting);
    database.exec('ROLLBACK');
    database.close();
    process.exit(0);
  });
}

async function call(job: Job & { isDown: boolean }): Promise<void> {
  if (job.way === 'bare') {
    const memory = join(job.folder, 'done');
    if (!job.isDown && existsSync(memory)) return;
    await send(job, 'deploy 77');
    if (!job.isDown) writeFileSync(memory, '');
    return;
  }
  const store = sqliteStore({ path: job.ledger, busyMs: 100 });
  const semel = semelOf(job, 0, { store });
  // contract
  const deploy = semel.tool({
    name: 'service.deploy',
    effect: 'irreversible',
    per: 'ever',
    run: ({ build }: { build: number }) => send(job, `deploy ${build}`),
  });
  // end
  const result = await deploy.try({ build: 77 });
  const code = result.ok ? 'ok' : result.error.code;
  if (code !== (job.isDown ? 'STORE_UNAVAILABLE' : 'ok')) throw new Error(`It heard ${code}.`);
  await semel.close();
  // What the refused call may have left behind is given back in the background, which nobody waits for here.
  process.exit(0);
}

if (import.meta.main) {
  const job = jobOf<Part>();
  if (job.part === 'locks') lock(job);
  else await call(job);
}
