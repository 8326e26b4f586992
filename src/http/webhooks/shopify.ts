// Shopify: `X-Shopify-Hmac-Sha256`, base64, over the body. `X-Shopify-Event-Id` is the id; it is not signed, and topics that one
// action fires share it. Repeated for four hours, until 2024 for two days.

import {
  isSigned,
  noSignature,
  readSecrets,
  type Secrets,
  type WebhookSource,
  wrongSignature,
} from './source.ts';

export interface ShopifyEvent<Payload = unknown> {
  /** 'orders/create', … */
  readonly topic: string;
  /** 'example.myshopify.com' */
  readonly shop: string;
  readonly payload: Payload;
}

export function shopifyEvents<Payload = unknown>(options: {
  readonly secret: Secrets;
}): WebhookSource<ShopifyEvent<Payload>> {
  const secrets = readSecrets('shopifyEvents', options.secret);
  return {
    name: 'shopify',
    retriesFor: '2d',
    maxBytes: 8 * 1024 * 1024,
    verify({ headers, body }) {
      const signature = headers.get('x-shopify-hmac-sha256');
      if (signature === null) return noSignature;
      return isSigned([signature], 'base64', secrets, body) || wrongSignature;
    },
    id({ headers }) {
      const event = headers.get('x-shopify-event-id');
      if (!event) return headers.get('x-shopify-webhook-id');
      return `${event} ${headers.get('x-shopify-shop-domain') ?? ''} ${headers.get('x-shopify-topic') ?? ''}`.trim();
    },
    event: ({ headers, json }) => ({
      topic: headers.get('x-shopify-topic') ?? '',
      shop: headers.get('x-shopify-shop-domain') ?? '',
      payload: json as Payload,
    }),
  };
}
