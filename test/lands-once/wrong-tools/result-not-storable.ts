// `run` returns a handle, which no ledger can keep: the effect lands once, but nobody gets its value again.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { mailServer } from '../worlds.ts';

export const row = 'three in a row';
export const fix =
  "the result cannot be stored (result.close is a function): return data, or keep the provider's id with `ctx.note` and fetch the value in `onReplay`.";

export function test(semel: Semel) {
  const mails = mailServer();
  const send = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    run: async (mail: { to: string; subject: string }) => ({
      ...(await mails.send(mail)),
      close: () => undefined,
    }),
  });
  const args = { to: 'ann@example.com', subject: 'Your order' };
  return landsOnce(send, args, { effects: () => mails.sent.length });
}
