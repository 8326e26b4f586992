// The answer to a refund is lost on its way, and the agent tries again in other words.

import { randomUUID } from 'node:crypto';
import type { Actor, Incident } from './incident.ts';

export const refund: Incident = {
  title: 'A refund whose answer is lost',
  happened: 'The payment API refunds, and the connection breaks before it can say so. The agent tries again.',
  effect: ['refund', 'refunds'],
  losesAnswers: true,
  play: ({ start }) => start(),
  async act(actor) {
    for (const reason of ['arrived broken', 'the customer says it is damaged', 'damaged on arrival'])
      await ask(actor, reason);
  },
};

async function ask(actor: Actor, reason: string): Promise<void> {
  const { say } = actor;
  if (actor.way === 'bare') {
    // A key per call, as most agents have it: it names the attempt, not the refund.
    const asked = actor.send(`refund pay_81 49.00 EUR: ${reason}`, randomUUID());
    return asked.then(
      ({ id }) => say(`refunded: ${id}`),
      () => say(`"${reason}": connection lost. Did it work? Let me try that again.`),
    );
  }
  await using semel = actor.semel();
  const tool = semel.tool({
    name: 'payment.refund',
    effect: 'write-non-idempotent',
    per: 'conversation',
    identity: ['payment', 'amount'],
    provider: { name: 'payments', window: '30d' },
    run: (args: { payment: string; amount: string; reason: string }, { key }) =>
      actor.send(`refund ${args.payment} ${args.amount}: ${args.reason}`, key),
  });
  const result = await tool.try(
    { payment: 'pay_81', amount: '49.00 EUR', reason },
    { conversation: 'ticket 1204' },
  );
  if (!result.ok)
    return say(
      `"${reason}": ${result.error.code}, it may have landed. A retry is safe: it sends the same key.`,
    );
  const { executed } = result.receipt;
  const how = executed
    ? 'sent again under the same key: the API returns the first refund'
    : 'replayed: nothing was sent again';
  return say(`"${reason}": ${result.value.id}, ${how}`);
}
