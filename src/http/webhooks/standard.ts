// Standard Webhooks 1.0.0 (Svix, Clerk, Resend and many others): `webhook-signature` has several `v1,<base64>` over
// `id.time.body`, so the id is signed. Its schedule ends after about three days.

import { type Duration, durationMs } from '../../core/contract/duration.ts';
import { refuse } from '../receiver.ts';
import {
  defaultTolerance,
  findWrongTime,
  isSigned,
  noSignature,
  readSecrets,
  type Secrets,
  type WebhookSource,
  wrongSignature,
} from './source.ts';

export interface StandardWebhooksOptions {
  /** Who sends them: two senders must not share their records. */
  readonly name: string;
  /** `whsec_…`; several while they are rotated. */
  readonly secret: Secrets;
  /** @default '5m' */
  readonly tolerance?: Duration;
  /** For how long this sender repeats a delivery. @default '4d' */
  readonly retriesFor?: Duration;
}

export function standardWebhooks<Event = unknown>(options: StandardWebhooksOptions): WebhookSource<Event> {
  const { name, retriesFor = '4d', tolerance = defaultTolerance } = options;
  const secrets = readSecrets(`standardWebhooks ${name}`, options.secret).map(decodeSecret);
  const toleranceMs = durationMs(tolerance, 'tolerance');
  return {
    name,
    retriesFor,
    verify({ headers, body, now }) {
      const prefix = prefixOf(headers);
      const signature = headers.get(`${prefix}-signature`);
      if (signature === null) return noSignature;
      const time = headers.get(`${prefix}-timestamp`);
      const wrongTime = findWrongTime(time, now, toleranceMs);
      if (wrongTime !== undefined) return wrongTime;
      const signatures = signature
        .split(' ')
        .flatMap((each) => (each.startsWith('v1,') ? [each.slice(3)] : []));
      const id = headers.get(`${prefix}-id`);
      return isSigned(signatures, 'base64', secrets, `${id}.${time}.`, body) || wrongSignature;
    },
    id: ({ headers }) => headers.get(`${prefixOf(headers)}-id`),
  };
}

/** Svix has its own names for the same headers. All three must come from one set, so that the id in use is the signed one. */
function prefixOf(headers: Headers): 'webhook' | 'svix' {
  return headers.has('webhook-id') ? 'webhook' : 'svix';
}

function decodeSecret(secret: string): Uint8Array {
  const text = secret.replace(/^whsec_/, '');
  const bytes = Buffer.from(text, 'base64');
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(text);
  if (isBase64 && bytes.length >= 16) return bytes;
  return refuse(
    'secret',
    'standardWebhooks: the secret is not base64 of at least 16 bytes.',
    "Pass it as the sender shows it: 'whsec_…'.",
  );
}
