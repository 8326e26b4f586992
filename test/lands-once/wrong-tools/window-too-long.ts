// The contract says that the provider remembers a key for 30 days; it forgets it after one.
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { paymentProvider } from '../worlds.ts';

export const row = "retried late in the provider's window";
export const fix =
  'payco forgets a key sooner than `provider.window: "30d"` says, and a retry in between lands again: write how long it really remembers keys.';

export function test(semel: Semel) {
  const provider = paymentProvider({ windowMs: 86_400_000 });
  const refund = semel.tool({
    name: 'refund',
    effect: 'write-non-idempotent',
    per: 'ever',
    provider: { name: 'payco', window: '30d' },
    run: (args: { payment: string; minor: number }, { key }) => provider.refund(args, key),
  });
  return landsOnce(
    refund,
    { payment: 'pay-1', minor: 4200 },
    { effects: () => provider.made.length, advanceTime: provider.advanceTime },
  );
}
