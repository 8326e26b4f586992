// The application gives each request an id of its own, and the id is part of the identity.
import { randomUUID } from 'node:crypto';
import type { Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { paymentProvider } from '../worlds.ts';

export const row = 'three in a row';
export const fix =
  '`requestId` is another uuid at each call although nothing changed: make it once per intent, or name it in `volatile`.';

export function test(semel: Semel) {
  const provider = paymentProvider();
  const refund = semel.tool({
    name: 'refund',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: ({ payment, minor }: { payment: string; minor: number; requestId: string }) =>
      provider.refund({ payment, minor }),
  });
  const args = () => ({ payment: 'pay-1', minor: 4200, requestId: randomUUID() });
  return landsOnce(refund, args, { effects: () => provider.made.length });
}
