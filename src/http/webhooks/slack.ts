// Slack's Events API: `X-Slack-Signature: v0=…` over `v0:time:body`. `event_id` is in the signed body, and the same on every retry;
// X-Slack-Retry-Num only counts them. Three retries within about six minutes; with delayed events, hourly for a day.

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

export interface SlackOptions {
  /** The app's signing secret. */
  readonly secret: Secrets;
  /** @default '5m' */
  readonly tolerance?: Duration;
}

export function slackEvents<Event = unknown>(options: SlackOptions): WebhookSource<Event> {
  const secrets = readSecrets('slackEvents', options.secret);
  const toleranceMs = durationMs(options.tolerance ?? defaultTolerance, 'tolerance');
  return {
    name: 'slack',
    retriesFor: '1d',
    verify({ headers, body, now }) {
      const signature = /^v0=([0-9a-f]{64})$/.exec(headers.get('x-slack-signature') ?? '')?.[1];
      if (signature === undefined) return noSignature;
      const time = headers.get('x-slack-request-timestamp');
      const wrongTime = findWrongTime(time, now, toleranceMs);
      if (wrongTime !== undefined) return wrongTime;
      return isSigned([signature], 'hex', secrets, `v0:${time}:`, body) || wrongSignature;
    },
    id: (delivery) => readField(delivery, 'event_id') as string,
    /** Slack checks a new address. */
    reply(delivery) {
      if (readField(delivery, 'type') !== 'url_verification') return undefined;
      return Response.json({ challenge: String(readField(delivery, 'challenge')) });
    },
  };
}
