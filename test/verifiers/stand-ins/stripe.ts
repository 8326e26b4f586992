// Stripe's lists: newest first, `has_more`, `starting_after`, `created[gte]`, metadata.

import {
  type TokenAccess,
  verifyStripeInvoice,
  verifyStripePaymentIntent,
  verifyStripeRefund,
} from '../../../src/providers/verifiers/index.ts';
import { type Answer, after, bearer, post, type Shape, type VerifierCase } from './stand-in.ts';

const missing: Answer = {
  status: 404,
  body: { error: { type: 'invalid_request_error', code: 'resource_missing', message: 'No such object' } },
};

function shape(path: string, prefix: string): Shape {
  return {
    isAllowed: bearer,
    refused: { status: 401, body: { error: { type: 'invalid_request_error', message: 'Invalid API Key' } } },
    isCreate: (asked) => asked.method === 'POST',
    create: ({ body }, nth, at) => ({
      id: `${prefix}_${nth}`,
      created: Math.floor(at / 1000),
      metadata: {},
      ...(JSON.parse(body || '{}') as object),
    }),
    idOf: ({ id }) => String(id),
    read({ path: asked, query }, things, all) {
      if (asked !== path) {
        const one = all.find(({ id }) => asked === `${path}/${id}`);
        return one === undefined ? missing : { body: one.shown };
      }
      const since = Number(query.get('created[gte]') ?? 0);
      const charge = query.get('charge');
      const listed = things.filter(
        ({ shown }) => Number(shown.created) >= since && (charge === null || shown.charge === charge),
      );
      const { page, hasMore } = after(
        listed,
        query.get('starting_after'),
        Math.min(100, Number(query.get('limit') ?? 10)),
      );
      return { body: { object: 'list', data: page, has_more: hasMore } };
    },
  };
}

const kinds = [
  ['Stripe refund', '/v1/refunds', 're', verifyStripeRefund],
  ['Stripe payment intent', '/v1/payment_intents', 'pi', verifyStripePaymentIntent],
  ['Stripe invoice', '/v1/invoices', 'in', verifyStripeInvoice],
] as const;

type Verify = (
  options: TokenAccess & { list: () => { charge: string } },
) => ReturnType<VerifierCase['verifier']>;

export const stripeCases: readonly VerifierCase[] = kinds.map(([name, path, prefix, verify]) => ({
  name,
  shape: shape(path, prefix),
  lagMs: 0,
  isPaged: true,
  request: (mark) => post(path, { charge: 'ch_1', metadata: { semel: mark } }),
  verifier: ({ url }, { token = '', ...more }) =>
    (verify as Verify)({ token, baseUrl: url, list: () => ({ charge: 'ch_1' }), ...more }),
}));
