// What the model wrote is part of the identity: when it plans once more, it words the mail anew.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { mailServer } from '../worlds.ts';

export const row = 're-worded content';
export const fix = '`subject` is identity: name it in `content`. `body` is identity: name it in `content`.';

export function test(semel: Semel) {
  const mails = mailServer();
  const send = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'turn',
    run: ({ to, subject }: { to: string; subject: string; body: string }) => mails.send({ to, subject }),
  });
  const args = { to: 'ann@example.com', subject: 'Your order', body: 'Dear Ann, your order is on its way.' };
  return landsOnce(send, args, {
    effects: () => mails.sent.length,
    reword: (mail) => ({ ...mail, subject: 'On its way', body: 'Hello Ann! We have sent your order.' }),
  });
}
