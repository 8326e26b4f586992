// A provider that honours keys: what may have landed is sent again, with the same key.
import { day, type Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { paymentProvider } from '../worlds.ts';

export const verdicts = {
  'throws after the effect': 'once',
  'killed after the effect, retried': 'once',
  "retried late in the provider's window": 'once',
};

export function test(semel: Semel) {
  const provider = paymentProvider({ windowMs: 30 * 86_400_000 });
  const refund = semel.tool({
    name: 'refund',
    effect: 'write-non-idempotent',
    stakes: 'high',
    per: day('Europe/Paris'),
    identity: ['payment', 'amount.minor'],
    provider: { name: 'payco', window: '30d' },
    run: ({ payment, amount }: { payment: string; amount: { minor: number }; reason: string }, { key }) =>
      provider.refund({ payment, minor: amount.minor }, key),
  });
  const args = { payment: 'pay-1', amount: { minor: 4200 }, reason: 'damaged' };
  return landsOnce(refund, args, {
    effects: () => provider.made.length,
    advanceTime: provider.advanceTime,
    reword: (refunded) => ({ ...refunded, reason: 'the goods arrived broken' }),
    otherArgs: { ...args, amount: { minor: 100 } },
  });
}
