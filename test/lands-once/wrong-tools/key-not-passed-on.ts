// The contract counts on a provider that honours keys, and `run` sends none.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { paymentProvider } from '../worlds.ts';

export const row = 'killed after the effect, retried';
export const fix =
  '`run` does not pass `ctx.key` on: send it to payco (Idempotency-Key), or use `ctx.fetch`.';

export function test(semel: Semel) {
  const provider = paymentProvider();
  const refund = semel.tool({
    name: 'refund',
    effect: 'write-non-idempotent',
    per: 'ever',
    provider: { name: 'payco', window: '30d' },
    run: (args: { payment: string; minor: number }) => provider.refund(args),
  });
  return landsOnce(refund, { payment: 'pay-1', minor: 4200 }, { effects: () => provider.made.length });
}
