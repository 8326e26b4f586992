// A job is killed between its effect and its record, and cron starts it again.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shownOwner } from '../../../jobs/index.ts';
import type { Actor, Incident, Stage } from './incident.ts';

export const killedJob: Incident = {
  title: 'A job killed after its effect',
  happened:
    'The monthly invoice is sent, and the machine goes down before the job can record it. Cron starts it again.',
  effect: ['invoice', 'invoices'],
  async play(stage) {
    await stage.start({ dies: true });
    stage.say('the process was killed (SIGKILL); cron starts the job again');
    await stage.start();
    if (stage.way === 'semel') await decide(stage);
  },
  act: (actor) => (actor.way === 'bare' ? bare(actor) : guarded(actor)),
};

async function bare({ folder, part, send, say, die }: Actor): Promise<void> {
  const note = join(folder, 'invoice-2026-05.sent');
  if (existsSync(note)) return say('already sent');
  await say('not marked as sent: sending the invoice');
  await send('invoice 2026-05');
  if (part.dies) await die();
  writeFileSync(note, '');
}

async function guarded(actor: Actor): Promise<void> {
  await using semel = actor.semel();
  const tool = semel.tool({
    name: 'invoice.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    // How long a dead process blocks; short, to keep the demo short.
    lease: '1s',
    run: async ({ month }: { month: string }) => {
      await actor.say('no record yet: sending the invoice');
      const sent = await actor.send(`invoice ${month}`);
      if (actor.part.dies) await actor.die();
      return sent;
    },
  });
  const result = await tool.try({ month: '2026-05' });
  if (result.ok) return actor.say(`${result.value.id}, replayed: nothing was sent again`);
  return actor.say(`${result.error.code}: may have landed. Nothing was sent again.`);
}

/** As a person would: look at the target, then say what is there. */
async function decide({ semel: open, start, say }: Stage): Promise<void> {
  await using semel = open();
  const { items } = await semel.doubts.list();
  for (const { ref, lastDispatchedAt, owner } of items) {
    say(
      `what is known: dispatched at ${lastDispatchedAt?.toISOString()} by ${shownOwner(owner)}, which never reported back`,
    );
    say(`a person checks the outbox and types: semel resolve ${ref} landed`);
    await semel.doubts.resolve(ref, { landed: { id: 'seen in the outbox' } }, { by: 'the demo' });
  }
  await start();
}
