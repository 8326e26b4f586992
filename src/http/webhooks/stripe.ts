// Stripe: `Stripe-Signature: t=…,v1=…`, an HMAC over `t.body`; several v1 while its secret is rolled. The event's id is in the
// signed body. Repeated for three days; by hand for up to 30.

import { type Duration, durationMs } from '../../core/contract/duration.ts';
import {
  defaultTolerance,
  findWrongTime,
  isSigned,
  noSignature,
  readField,
  readSecrets,
  type Secrets,
  type WebhookSource,
  wrongSignature,
} from './source.ts';

export interface StripeOptions {
  /** The endpoint's signing secret, `whsec_…`. */
  readonly secret: Secrets;
  /** How old, or how far ahead, a signature may be. @default '5m' */
  readonly tolerance?: Duration;
}

/** `stripeEvents<Stripe.Event>({ secret })` types the handler's event. */
export function stripeEvents<Event = unknown>(options: StripeOptions): WebhookSource<Event> {
  const secrets = readSecrets('stripeEvents', options.secret);
  const toleranceMs = durationMs(options.tolerance ?? defaultTolerance, 'tolerance');
  return {
    name: 'stripe',
    // By hand, also what was handled: `stripe events resend`.
    retriesFor: '30d',
    verify({ headers, body, now }) {
      const header = headers.get('stripe-signature');
      if (header === null) return noSignature;
      const parts = header.split(',').map((part) => part.trim().split('='));
      const valuesOf = (name: string) =>
        parts.flatMap(([key, value]) => (key === name && value ? [value] : []));
      // Of two headers that were joined, the first: the signature covers the time that is judged.
      const [time] = valuesOf('t');
      const wrongTime = findWrongTime(time, now, toleranceMs);
      if (wrongTime !== undefined) return wrongTime;
      return isSigned(valuesOf('v1'), 'hex', secrets, `${time}.`, body) || wrongSignature;
    },
    id: (delivery) => readField(delivery, 'id') as string,
  };
}
