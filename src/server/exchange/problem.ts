// Errors as `application/problem+json` (RFC 9457). Clients are authenticated, so they are told what happened; but what a store
// or its driver says names places and users, which are the operator's.

import { type ErrorCode, SemelError } from '../../core/errors.ts';
import { redactSecrets } from '../../store/address.ts';

/** Every code has a row, so that a new one does not compile until somebody decides. */
export const statusOf: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGS: 400,
  NOT_CANONICAL: 400,
  NO_IDENTITY: 400,
  CONTRACT_INVALID: 400,
  NOT_PERMITTED: 403,
  KEY_CONFLICT: 422,
  VERSION_MISMATCH: 409,
  IN_FLIGHT: 409,
  REENTRANT: 409,
  IN_DOUBT: 409,
  PARTIAL_SUCCESS: 409,
  LEASE_LOST: 409,
  NOT_LANDED: 409,
  FAILED: 409,
  POISON: 409,
  UNRECORDED: 409,
  RESULT_OMITTED: 409,
  STEP_CHANGED: 409,
  RESOLVE_STALE: 409,
  EXPIRED: 410,
  STORE_UNAVAILABLE: 503,
  STORE_UNSAFE: 503,
  STORE_MOVED: 503,
  ABORTED: 503,
};

/** What clients are told instead of the store's own words. */
const aboutStore: Partial<Record<ErrorCode, { readonly happened: string; readonly next?: string }>> = {
  STORE_UNAVAILABLE: { happened: 'The store does not answer.' },
  STORE_UNSAFE: { happened: 'The ledger is not safe to use.', next: 'Ask the operator of this server.' },
  STORE_MOVED: { happened: 'The ledger has moved.', next: 'Ask the operator of this server.' },
};

/** The error as a client may read it. */
export function forClient(error: SemelError): SemelError {
  const instead = aboutStore[error.code];
  if (instead === undefined) return error;
  const { code, retriable, correctiveAction, receipt, evidence, retryAfterMs = 1_000 } = error;
  return new SemelError(code, instead.happened, {
    next: instead.next ?? redactSecrets(correctiveAction),
    retriable,
    retryAfterMs,
    ...(receipt === undefined ? {} : { receipt }),
    ...(evidence === undefined ? {} : { evidence }),
  });
}

/** For the operator's log; undefined if a client did something wrong. */
export function failureText(error: unknown): string | undefined {
  if (error instanceof SemelError && aboutStore[error.code] === undefined) return undefined;
  return redactSecrets(error instanceof Error ? error.message : String(error));
}

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly retriable: boolean;
  readonly correctiveAction: string;
  readonly retryAfterMs?: number;
  readonly path?: string;
  readonly ref?: string;
  readonly evidence?: Readonly<Record<string, unknown>>;
  readonly value?: unknown;
}

export function toProblem(error: SemelError, status: number = statusOf[error.code]): Problem {
  const { code, happened, correctiveAction, retriable, retryAfterMs, path, evidence, receipt, value } = error;
  const own = receipt === undefined || receipt.id === '' ? undefined : `${receipt.id}@${receipt.fence}`;
  // What is known names the record more exactly: an attempt may still dispatch under the same fence.
  const ref = typeof evidence?.record === 'string' ? evidence.record : own;
  return {
    type: `urn:semel:problem:${code}`,
    title: code,
    status,
    detail: happened,
    code,
    retriable,
    correctiveAction,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs: Math.ceil(retryAfterMs) }),
    ...(path === undefined ? {} : { path }),
    ...(ref === undefined ? {} : { ref }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(value === undefined ? {} : { value }),
  };
}
