// The time of the call is part of the identity, so no call is ever the same as another.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { mailServer } from '../worlds.ts';

export const row = 'three in a row';
export const fix = '`requestedAt` is fresh at each call: move it from `identity` to `volatile`.';

export function test(semel: Semel) {
  const mails = mailServer();
  const send = semel.tool({
    name: 'digest.send',
    effect: 'irreversible',
    per: 'ever',
    identity: ['list', 'requestedAt'],
    run: ({ list }: { list: string; requestedAt: number }) => mails.send({ to: list, subject: 'Digest' }),
  });
  // Whole seconds: two calls of one second would look the same.
  const args = () => ({ list: 'all', requestedAt: Math.floor(Date.now() / 1000) });
  return landsOnce(send, args, { effects: () => mails.sent.length });
}
