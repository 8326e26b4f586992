// `run` takes a time-out for a failure and sends again, out of sight of the contract.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { mailServer } from '../worlds.ts';

export const row = 'reply lost inside run';
export const fix = '`run` retries by itself (one run made 2 effects): let `retry` do it, with `ctx.key`.';

export function test(semel: Semel) {
  const mails = mailServer();
  const send = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    async run(mail: { to: string; subject: string }) {
      for (let tries = 1; ; tries += 1) {
        try {
          return await mails.send(mail);
        } catch (error) {
          if (tries === 3) throw error;
        }
      }
    },
  });
  const args = { to: 'ann@example.com', subject: 'Your order' };
  return landsOnce(send, args, { effects: () => mails.sent.length, loseReply: mails.loseReply });
}
