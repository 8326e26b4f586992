// A target that honours no key, and a `verify` that can look.
import { landed, notLanded, type Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { mailServer } from '../worlds.ts';

export const verdicts = { 'throws after the effect': 'once', 'killed after the effect, retried': 'once' };

export function test(semel: Semel) {
  const mails = mailServer();
  const send = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'turn',
    content: ['subject'],
    run: (mail: { to: string; subject: string }) => mails.send(mail),
    verify({ to }) {
      const mail = mails.sent.findLast((sent) => sent.to === to);
      return mail === undefined ? notLanded() : landed(mail, mail.id);
    },
  });
  const args = { to: 'ann@example.com', subject: 'Your order' };
  return landsOnce(send, args, {
    effects: () => mails.sent.length,
    reword: (mail) => ({ ...mail, subject: 'On its way' }),
    otherArgs: (mail) => ({ ...mail, to: 'bob@example.com' }),
    loseReply: mails.loseReply,
  });
}
