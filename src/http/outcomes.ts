// The one table: what each outcome answers to the sender of a webhook, and to a client of one's own API. Its texts are for
// strangers: nothing of what was thrown, no keys, no hosts.

import type { ErrorCode } from '../core/errors.ts';

export interface PublicOutcome {
  /** To the sender of a webhook. Every sender repeats what was not answered with 2xx. */
  readonly webhook: number;
  /** To a client of an API with Idempotency-Key. */
  readonly api: number;
  readonly title: string;
  /** What the client should do. */
  readonly next: string;
}

const sameKey = 'Send the same request again later, with the same key.';
const busy = {
  webhook: 503,
  api: 409,
  next: 'Send the same request again after the delay, with the same key.',
};
const doubt = {
  webhook: 503,
  api: 409,
  next: 'Ask again later with the same key. A new key could do it twice.',
};
const down = { webhook: 503, api: 503, next: sameKey };
const broken = { webhook: 500, api: 500, next: 'Contact the operator of this service.' };

/** Every code has a row, so that a new code does not compile until somebody decides. */
export const outcomes: Readonly<Record<ErrorCode, PublicOutcome>> = {
  // The request itself is wrong; nothing was recorded.
  INVALID_ARGS: { webhook: 400, api: 400, title: 'Invalid request', next: 'Correct the request.' },
  NOT_CANONICAL: { webhook: 400, api: 400, title: 'The body cannot be compared', next: 'Send plain data.' },
  NOT_PERMITTED: { webhook: 401, api: 401, title: 'Not authenticated', next: 'Send valid credentials.' },
  KEY_CONFLICT: {
    webhook: 422,
    api: 422,
    title: 'The key was used for another request',
    next: 'Use a new key for a new request.',
  },
  // Somebody is working on it.
  IN_FLIGHT: { ...busy, title: 'The same request is being processed' },
  LEASE_LOST: { ...busy, title: 'The same request is being processed elsewhere' },
  // It may have landed: a retry does not repeat it, and gets an answer once it is decided.
  IN_DOUBT: { ...doubt, title: 'It may have taken effect, and was not repeated' },
  PARTIAL_SUCCESS: { ...doubt, title: 'Part of it has taken effect, and was not repeated' },
  // It is done. Not 2xx before the record is durable: the next request is answered from it.
  UNRECORDED: { ...down, title: 'It is done, but not recorded yet' },
  RESULT_OMITTED: {
    webhook: 200,
    api: 409,
    title: 'It is done, but its response was not kept',
    next: 'Do not repeat it. Fetch its result in another way.',
  },
  // It certainly did not land, or nothing was started: the next request runs it.
  NOT_LANDED: { ...down, title: 'It had no effect' },
  STORE_UNAVAILABLE: { ...down, title: 'Temporarily unavailable' },
  STORE_UNSAFE: { ...down, title: 'Temporarily unavailable' },
  STORE_MOVED: { ...down, title: 'Temporarily unavailable' },
  ABORTED: { ...down, title: 'Temporarily unavailable' },
  // Still a 5xx: the sender shows it as failed and retries, and the record answers.
  // Refused by the target, or given up by a person, who may not know whether it landed.
  FAILED: { ...broken, title: 'It failed, and is not tried again' },
  EXPIRED: { ...broken, title: 'It is too late for this request' },
  POISON: { ...broken, title: 'It was given up after too many attempts' },
  REENTRANT: { ...broken, title: 'Internal error' },
  VERSION_MISMATCH: { ...broken, title: 'Internal error' },
  NO_IDENTITY: { ...broken, title: 'Internal error' },
  STEP_CHANGED: { ...broken, title: 'Internal error' },
  RESOLVE_STALE: { ...broken, title: 'Internal error' },
  CONTRACT_INVALID: { ...broken, title: 'Internal error' },
};
