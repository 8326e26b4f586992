// What went wrong when a service was asked, in words: by the errors of our own requests and of the usual SDKs.

import { describeThrown } from '../../core/contract/classify.ts';

interface Failure {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly code?: unknown;
  readonly response?: { readonly status?: unknown; readonly headers?: unknown };
  readonly $metadata?: { readonly httpStatusCode?: unknown };
  readonly headers?: unknown;
  /** Slack's SDK, in seconds. */
  readonly retryAfter?: unknown;
}

/** The HTTP status that an error carries. */
export function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { status, statusCode, code, response, $metadata } = error as Failure;
  const known = [status, statusCode, response?.status, $metadata?.httpStatusCode, code];
  return known.find((each): each is number => typeof each === 'number' && each >= 100 && each < 600);
}

export function describeFailure(service: string, error: unknown): string {
  const status = statusOf(error);
  const message = describeThrown(error);
  const wait = readWait(error);
  if (
    status === 429 ||
    (status === 403 && wait !== undefined) ||
    (status === undefined && wait !== undefined)
  )
    return `${service} limits the rate of requests; ask again ${wait === undefined ? 'later' : `in ${wait} s`}`;
  if (status === 401 || status === 403)
    return `${service} answered ${status} (${message}); check what the verifier may read`;
  return status === undefined
    ? `${service} could not be asked: ${message}`
    : `${service} answered ${status} (${message})`;
}

/** Seconds, from `Retry-After`; GitHub names the instant at which a used-up limit ends. */
function readWait(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { retryAfter, headers, response } = error as Failure;
  if (typeof retryAfter === 'number') return retryAfter;
  const header = (name: string) => readHeader(headers, name) ?? readHeader(response?.headers, name);
  const seconds = Number(header('retry-after') ?? Number.NaN);
  if (Number.isFinite(seconds)) return seconds;
  if (header('x-ratelimit-remaining') !== '0') return undefined;
  const resetsAt = Number(header('x-ratelimit-reset') ?? Number.NaN);
  return Number.isFinite(resetsAt) ? Math.max(0, Math.ceil(resetsAt - Date.now() / 1000)) : 0;
}

function readHeader(headers: unknown, name: string): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const value = headers instanceof Headers ? headers.get(name) : (headers as Record<string, unknown>)[name];
  return value == null ? undefined : String(value);
}
