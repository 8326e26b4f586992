// What becomes of a message: one table from the outcome of its call to acknowledge, retry or dead letter. A message is
// acknowledged only if its effect is on record; what may have landed is never a dead letter, however often it was delivered.

import type { Receipt, Result } from '../call/index.ts';
import type { ErrorCode, SemelError } from '../core/errors.ts';

export type Decision<Value = unknown> =
  | {
      readonly is: 'ack';
      /** Undefined also where the value was not stored, so that a redelivery cannot return it. */
      readonly value: Value | undefined;
      readonly receipt: Receipt;
    }
  | {
      readonly is: 'retry';
      /** Deliver it again after this time. */
      readonly afterMs: number;
      readonly reason: string;
      readonly error: SemelError | undefined;
      readonly receipt: Receipt;
    }
  | {
      readonly is: 'dead letter';
      readonly reason: string;
      readonly error: SemelError;
      readonly receipt: Receipt;
    };

export interface RetryTerms {
  readonly maxTries: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
}

/**
 * `done`: acknowledge. `not landed`: retry, up to the maximum number of tries. `later`: another worker has it, or nothing was
 * run; retry. `undecided`: it may have landed; retry until `verify`, the provider's key or a person has decided. `not here`: it is the
 * program or its ledger that has to change; retry rarely. `never`: a dead letter, since another delivery would end the same way.
 */
type Meaning = 'done' | 'not landed' | 'later' | 'undecided' | 'not here' | 'never';

export const meanings = {
  RESULT_OMITTED: 'done',
  NOT_LANDED: 'not landed',
  IN_FLIGHT: 'later',
  LEASE_LOST: 'later',
  ABORTED: 'later',
  STORE_UNAVAILABLE: 'later',
  IN_DOUBT: 'undecided',
  PARTIAL_SUCCESS: 'undecided',
  UNRECORDED: 'undecided',
  NOT_PERMITTED: 'not here',
  VERSION_MISMATCH: 'not here',
  NO_IDENTITY: 'not here',
  CONTRACT_INVALID: 'not here',
  REENTRANT: 'not here',
  STEP_CHANGED: 'not here',
  RESOLVE_STALE: 'not here',
  STORE_UNSAFE: 'not here',
  STORE_MOVED: 'not here',
  INVALID_ARGS: 'never',
  NOT_CANONICAL: 'never',
  KEY_CONFLICT: 'never',
  FAILED: 'never',
  POISON: 'never',
  EXPIRED: 'never',
} as const satisfies Record<ErrorCode, Meaning>;

/** `deliveries`: how often the queue has delivered the message, this time included, if it says so. `jitter`: 0 to 1. */
export function decide<Value>(
  result: Result<Value>,
  { maxTries, backoffMs, maxBackoffMs }: RetryTerms,
  deliveries: number | undefined,
  jitter: number,
): Decision<Value> {
  const { receipt } = result;
  if (result.ok) {
    if (!receipt.skipped) return { is: 'ack', value: result.value, receipt };
    return retry(backoffMs, 'it is being executed elsewhere', undefined);
  }
  const { error } = result;
  const reason = error.happened;
  const meaning = explain(error);
  if (meaning === 'done') return { is: 'ack', value: undefined, receipt };
  if (meaning === 'never') return { is: 'dead letter', reason, error, receipt };
  const tries = countTries(error, receipt, deliveries);
  if (meaning === 'not landed' && tries >= maxTries)
    return { is: 'dead letter', reason: `${reason} It was tried ${maxTries} times.`, error, receipt };
  const needsPerson = meaning === 'undecided' && !error.retriable && error.code !== 'UNRECORDED';
  if (meaning === 'not here' || needsPerson) return retry(maxBackoffMs, reason, error);
  const longestMs = Math.min(maxBackoffMs, backoffMs * 2 ** (Math.max(1, tries) - 1));
  return retry(Math.max(error.retryAfterMs ?? 0, longestMs * (0.5 + jitter / 2)), reason, error);

  function retry(afterMs: number, because: string, why: SemelError | undefined): Decision<Value> {
    return { is: 'retry', afterMs: Math.ceil(afterMs), reason: because, error: why, receipt };
  }
}

/**
 * FAILED is retriable where a repetition is harmless: then it is one try of several. A conflict with an open record may be one with
 * an earlier delivery of the message, whose args were read in another way.
 */
function explain({ code, retriable, evidence }: SemelError): Meaning {
  if (code === 'KEY_CONFLICT' && evidence?.open !== undefined) return 'undecided';
  return code === 'FAILED' && retriable ? 'not landed' : meanings[code];
}

/**
 * Deliveries that found another worker or a doubt do not count as tries, nor do attempts made for an earlier message with the
 * same intent. An effect that is not recorded has only the queue's count.
 */
function countTries({ code }: SemelError, { attempt }: Receipt, deliveries: number | undefined): number {
  if (code === 'FAILED') return deliveries ?? 1;
  return code === 'NOT_LANDED' ? Math.min(attempt, deliveries ?? attempt) : (deliveries ?? 1);
}
