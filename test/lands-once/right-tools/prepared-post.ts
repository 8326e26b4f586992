// The model writes first, then `run` says when the line is crossed. Nobody can look afterwards: what is torn apart
// stays in doubt.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { mailServer } from '../worlds.ts';

export const verdicts = {
  'throws after the effect': 'in doubt',
  'killed after the effect, retried': 'in doubt',
};

export function test(semel: Semel) {
  const mails = mailServer();
  let written = 0;
  const publish = semel.tool({
    name: 'post.publish',
    effect: 'irreversible',
    per: 'conversation',
    dispatch: 'explicit',
    prepare: async ({ topic }: { topic: string; now: string }) => `${topic}, version ${++written}`,
    volatile: ['now'],
    async run({ topic }, ctx) {
      await ctx.dispatch();
      return mails.send({ to: topic, subject: ctx.prepared });
    },
  });
  const args = () => ({ topic: 'leases', now: new Date().toISOString() });
  return landsOnce(publish, args, {
    effects: () => mails.sent.length,
    reword: (post) => ({ ...post, now: 'some other time' }),
    otherArgs: { topic: 'fences', now: '' },
    loseReply: mails.loseReply,
  });
}
