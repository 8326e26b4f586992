// Two processes send the same mail at the same moment, each in its own words.

import type { Actor, Incident } from './incident.ts';

export const doubleClick: Incident = {
  title: 'A double click, two wordings',
  happened: 'Somebody clicks twice. Two workers let the model write the mail and send it at the same moment.',
  effect: ['mail', 'mails'],
  play: ({ startTogether }) => startTogether([{ nth: 1 }, { nth: 2 }]),
  act: click,
};

const bodies = ['Welcome on board, Ann!', 'Dear Ann, good to have you with us.'];

async function click(actor: Actor): Promise<void> {
  const { nth = 1 } = actor.part;
  const body = bodies[nth - 1] ?? '';
  if (actor.way === 'bare') {
    const { id } = await actor.send(`mail to ann: ${body}`);
    return actor.say(`worker ${nth} sent ${id}: "${body}"`);
  }
  await using semel = actor.semel();
  const tool = semel.tool({
    name: 'mail.welcome',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['lead'],
    run: (mail: { lead: number; body: string }) => actor.send(`mail to ann: ${mail.body}`),
  });
  const result = await tool.try({ lead: 7, body });
  if (!result.ok) return actor.say(`worker ${nth}: ${result.error.code}`);
  const { executed, drift } = result.receipt;
  const how = executed
    ? 'executed'
    : `replayed: the other worker's mail counts (${drift.join(', ')} worded differently)`;
  return actor.say(`worker ${nth}: ${result.value.id}, ${how}`);
}
