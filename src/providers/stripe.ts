// Stripe. Its SDK makes up a key for every POST, and tries again by itself under it.

import { type Answer, inCauses } from './answer.ts';
import { defineRow } from './row.ts';

const shared = {
  key: { header: 'Idempotency-Key' },
  fits: /^.{1,255}$/,
  verify: '`verifyStripeRefund` and others, by `metadata`; or the webhooks.',
  hosts: ['api.stripe.com'],
  sdkKey: /^stripe-node-retry-/,
  sdk: stripeError,
  inFlight: { status: 409, code: 'idempotency_key_in_use' },
  mismatch: { status: 400, code: 'idempotency_error' },
  checkedAt: '2026-11-16',
} as const;

export const stripeRow = defineRow({
  ...shared,
  name: 'stripe',
  covers: 'API v1, every POST',
  window: '24h',
  errors: 'replayed',
  note: 'A stored 500 comes back as long as the key is known.',
  source: 'https://docs.stripe.com/api/idempotent_requests',
  verified: true,
});

export const stripeV2Row = defineRow({
  ...shared,
  name: 'stripe.v2',
  covers: 'API v2, POST and DELETE',
  window: '30d',
  errors: 'tried again',
  source: 'https://docs.stripe.com/api-v2-overview',
  verified: false,
});

/** `StripeError` and what is derived from it, in v1 and v2. */
function stripeError(error: object): Answer | undefined {
  return inCauses(error, (each) => {
    if (!('rawType' in each && 'statusCode' in each && 'requestId' in each)) return undefined;
    const { statusCode, rawType, code, type, detail } = each as Record<string, unknown>;
    return {
      status: typeof statusCode === 'number' ? statusCode : undefined,
      words: [code, rawType, type],
      cause: detail,
    };
  });
}
