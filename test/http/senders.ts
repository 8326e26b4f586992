// Senders of webhooks as they sign. Stripe's own library signs for Stripe; the others sign as their documentation shows.

import { createHmac } from 'node:crypto';
import Stripe from 'stripe';

export const secrets = {
  stripe: 'whsec_test_secret',
  github: "It's a Secret to Everybody",
  shopify: 'hush',
  slack: '8f742231b10e8888abcd99yyyzzz85a5',
  standard: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
} as const;

const stripe = new Stripe('sk_test_unused');
const address = 'https://shop.example/hooks';

export interface Sent {
  readonly at?: number;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function post(body: string | Uint8Array, headers: Readonly<Record<string, string>>): Request {
  return new Request(address, {
    method: 'POST',
    body: body as string,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

/** Pretty-printed, as Stripe does: parsed and written again it would be another text. */
export function stripeBody(id: string, more: object = {}): string {
  return JSON.stringify({ id, object: 'event', type: 'payment_intent.succeeded', ...more }, null, 2);
}

export function stripeSignature(
  body: string,
  { at = Date.now(), secret = secrets.stripe }: Sent = {},
): string {
  return stripe.webhooks.generateTestHeaderString({
    payload: body,
    secret,
    timestamp: Math.floor(at / 1_000),
  });
}

export function fromStripe(id: string, sent: Sent & { readonly more?: object } = {}): Request {
  const body = stripeBody(id, sent.more);
  return post(body, { 'stripe-signature': stripeSignature(body, sent), ...sent.headers });
}

export function fromGitHub(id: string, sent: Sent & { readonly body?: string } = {}): Request {
  const { body = '{"action":"opened"}', secret = secrets.github } = sent;
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return post(body, {
    'x-hub-signature-256': `sha256=${signature}`,
    'x-github-delivery': id,
    'x-github-event': 'issues',
    ...sent.headers,
  });
}

export function fromShopify(id: string, sent: Sent = {}): Request {
  const body = '{"id":820982911946154508}';
  const signature = createHmac('sha256', sent.secret ?? secrets.shopify)
    .update(body)
    .digest('base64');
  return post(body, {
    'x-shopify-hmac-sha256': signature,
    'x-shopify-event-id': id,
    'x-shopify-topic': 'orders/create',
    'x-shopify-shop-domain': 'lamps.myshopify.com',
    ...sent.headers,
  });
}

export function fromSlack(id: string, sent: Sent & { readonly body?: string } = {}): Request {
  const { at = Date.now(), secret = secrets.slack } = sent;
  const body = sent.body ?? JSON.stringify({ type: 'event_callback', event_id: id });
  const time = Math.floor(at / 1_000);
  const signature = createHmac('sha256', secret).update(`v0:${time}:${body}`).digest('hex');
  return post(body, {
    'x-slack-signature': `v0=${signature}`,
    'x-slack-request-timestamp': String(time),
    ...sent.headers,
  });
}

export function fromStandard(
  id: string,
  sent: Sent & { readonly prefix?: string; readonly body?: string } = {},
): Request {
  const { at = Date.now(), secret = secrets.standard, prefix = 'webhook' } = sent;
  const body = sent.body ?? '{"type":"user.created"}';
  const time = Math.floor(at / 1_000);
  const hmac = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'));
  const signature = `v1,${hmac.update(`${id}.${time}.${body}`).digest('base64')}`;
  return post(body, {
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: String(time),
    [`${prefix}-signature`]: signature,
    ...sent.headers,
  });
}
