// Services that move money.

import { defineRow } from './row.ts';

const month = '2026-11';
const upTo = (longest: number) => new RegExp(`^.{1,${longest}}$`);

export const squareRow = defineRow({
  name: 'square',
  covers: 'Payments, orders, catalog, invoices and more',
  key: { bodyField: 'idempotency_key' },
  fits: upTo(45),
  mismatch: { status: 400, code: 'IDEMPOTENCY_KEY_REUSED' },
  verify: 'Search by `reference_id`; a payment can be cancelled by its key.',
  note: '45 characters for payments, more elsewhere.',
  hosts: ['connect.squareup.com', 'connect.squareupsandbox.com'],
  source: 'https://github.com/square/connect-api-specification',
  checkedAt: month,
  verified: true,
});

const paypal = {
  key: { header: 'PayPal-Request-Id' },
  inFlight: { status: 409, code: 'PREVIOUS_REQUEST_IN_PROGRESS' },
  errors: 'current state',
  hosts: ['api-m.paypal.com', 'api-m.sandbox.paypal.com', 'api.paypal.com', 'api.sandbox.paypal.com'],
  source: 'https://github.com/paypal/paypal-rest-api-specifications',
  checkedAt: month,
  verified: true,
} as const;

export const paypalOrdersRow = defineRow({
  ...paypal,
  name: 'paypal.orders',
  covers: 'Orders v2',
  fits: upTo(108),
  window: '6h',
  verify: 'Get the order, by `custom_id` or `invoice_id`.',
});

export const paypalPaymentsRow = defineRow({
  ...paypal,
  name: 'paypal.payments',
  covers: 'Payments v2: captures, refunds, voids',
  fits: upTo(108),
  window: '45d',
  verify: 'Get the capture or refund, by `invoice_id`.',
});

export const paypalPayoutsRow = defineRow({
  ...paypal,
  name: 'paypal.payouts',
  covers: 'Payouts v1',
  fits: upTo(1_000),
  window: '30d',
  verify: 'Get the batch by `sender_batch_id`.',
});

export const adyenRow = defineRow({
  name: 'adyen',
  covers: 'Every POST; per company account and region',
  key: { header: 'Idempotency-Key' },
  fits: upTo(64),
  window: '7d',
  inFlight: { code: '704' },
  verify: 'Webhooks, by `reference`.',
  note: 'Sources differ: 7 to 31 days.',
  hosts: ['adyen.com', 'adyenpayments.com'],
  source: 'https://docs.adyen.com/development-resources/api-idempotency',
  checkedAt: '2026-11-16',
  verified: false,
});

export const braintreeRow = defineRow({
  name: 'braintree',
  covers: 'GraphQL, where switched on for the account',
  key: { tool: '`ApiRequestKey`' },
  window: '30d',
  errors: 'current state',
  verify: 'Search transactions by `orderId`.',
  hosts: ['payments.braintree-api.com', 'payments.sandbox.braintree-api.com'],
  source: 'https://developer.paypal.com/braintree/graphql/integration_guides/idempotency',
  checkedAt: month,
  verified: false,
});

export const checkoutRow = defineRow({
  name: 'checkout',
  covers: 'Payments, captures, refunds, voids, transfers',
  key: { header: 'Cko-Idempotency-Key' },
  window: '24h',
  errors: 'tried again',
  verify: 'List payments by `reference`.',
  hosts: ['api.checkout.com', 'api.sandbox.checkout.com'],
  source: 'https://www.checkout.com/docs/payments/manage-payments/retry-a-payment',
  checkedAt: '2026-11-16',
  verified: true,
});

export const coinbaseRow = defineRow({
  name: 'coinbase',
  covers: 'CDP API v2',
  key: { header: 'X-Idempotency-Key' },
  fits: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  window: '24h',
  mismatch: { status: 409, code: 'idempotency_error' },
  verify: 'Get the account or the transfer.',
  hosts: ['api.cdp.coinbase.com'],
  source: 'https://docs.cdp.coinbase.com/api-reference/v2/idempotency',
  checkedAt: month,
  verified: true,
});

const plaid = {
  key: { bodyField: 'idempotency_key' },
  hosts: ['production.plaid.com', 'sandbox.plaid.com'],
  source: 'https://github.com/plaid/plaid-openapi',
  checkedAt: month,
  verified: true,
} as const;

export const plaidWalletRow = defineRow({
  ...plaid,
  name: 'plaid.wallet',
  covers: '/wallet/transaction/execute',
  fits: upTo(128),
  window: '24h',
  verify: "List the wallet's transactions.",
  note: 'Wait a minute before sending a key again.',
});

export const plaidTransferRow = defineRow({
  ...plaid,
  name: 'plaid.transfer',
  covers: '/transfer/authorization/create',
  fits: upTo(50),
  window: '48h',
  verify: 'Read the transfer events.',
  note: '/transfer/create goes by `authorization_id`, not a key.',
});

export const wiseRow = defineRow({
  name: 'wise',
  covers: 'Transfers',
  key: { bodyField: 'customerTransactionId' },
  fits: /^[0-9a-f-]{36}$/,
  verify: 'List transfers, and compare `customerTransactionId`.',
  hosts: ['api.wise.com', 'api.transferwise.com', 'api.sandbox.transferwise.tech'],
  source: 'https://docs.wise.com/guides/product/send-money/standard-api-transfers',
  checkedAt: '2026-11-16',
  verified: true,
});

export const shopifyRow = defineRow({
  name: 'shopify',
  covers: 'Admin GraphQL, mutations that take `@idempotent`',
  key: { tool: '`@idempotent(key: …)`' },
  window: '24h',
  inFlight: { status: 200, code: 'IDEMPOTENCY_CONCURRENT_REQUEST' },
  mismatch: { status: 200, code: 'IDEMPOTENCY_KEY_PARAMETER_MISMATCH' },
  errors: 'current state',
  verify: 'Query the object.',
  note: 'Errors come with status 200: throw `Rejected` for `userErrors`.',
  hosts: ['myshopify.com'],
  source: 'https://shopify.dev/docs/api/usage/implementing-idempotency',
  checkedAt: '2026-11-16',
  verified: false,
});
