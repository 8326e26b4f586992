// GitHub: `X-Hub-Signature-256: sha256=…` over the body. `X-GitHub-Delivery` is the id; it is not signed. GitHub repeats nothing
// by itself; a redelivery by hand (3 days; 7 on an Enterprise Server) has the same id.

import {
  createDelivery,
  type Delivery,
  isSigned,
  noSignature,
  readSecrets,
  type Secrets,
  type WebhookSource,
  wrongSignature,
} from './source.ts';

export interface GitHubEvent<Payload = unknown> {
  /** `X-GitHub-Event`: 'push', 'issues', … */
  readonly name: string;
  readonly payload: Payload;
}

export function githubEvents<Payload = unknown>(options: {
  readonly secret: Secrets;
}): WebhookSource<GitHubEvent<Payload>> {
  const secrets = readSecrets('githubEvents', options.secret);
  return {
    name: 'github',
    retriesFor: '7d',
    // GitHub drops larger ones.
    maxBytes: 25 * 1024 * 1024,
    verify({ headers, body }) {
      const signature = /^sha256=([0-9a-f]{64})$/.exec(headers.get('x-hub-signature-256') ?? '')?.[1];
      if (signature === undefined) return noSignature;
      return isSigned([signature], 'hex', secrets, body) || wrongSignature;
    },
    id: ({ headers }) => headers.get('x-github-delivery'),
    event: (delivery) => ({
      name: delivery.headers.get('x-github-event') ?? '',
      payload: readPayload(delivery) as Payload,
    }),
  };
}

/** GitHub sends a form unless the webhook asks for JSON. */
function readPayload(delivery: Delivery): unknown {
  if (!/^application\/x-www-form-urlencoded\b/i.test(delivery.headers.get('content-type') ?? ''))
    return delivery.json;
  const text = new URLSearchParams(delivery.text).get('payload') ?? '';
  return createDelivery(delivery.headers, Buffer.from(text), delivery.now).json;
}
