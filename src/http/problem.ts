// Refusals as `application/problem+json` (RFC 9457), by the table of outcomes.

import type { SemelError } from '../core/errors.ts';
import { outcomes } from './outcomes.ts';

/** A response before it has the form of a framework. */
export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
}

export interface ProblemOptions {
  readonly to: 'webhook' | 'api';
  /** Instead of the table's. */
  readonly status?: number;
  /** Only our own words: strangers read it. */
  readonly detail?: string;
}

export function toProblem(error: SemelError, { to, detail, ...options }: ProblemOptions): Answer {
  const { code, retriable, receipt } = error;
  const { title, next, [to]: usual } = outcomes[code];
  const status = options.status ?? usual;
  const retryAfterMs = status === 503 || (status === 409 && retriable) ? delayOf(error) : undefined;
  const problem = {
    type: `urn:semel:problem:${code}`,
    title,
    status,
    ...(detail === undefined ? {} : { detail }),
    code,
    retriable: retryAfterMs !== undefined,
    correctiveAction: next,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    // The record's short id, so that support can find it.
    ...(receipt === undefined || receipt.id === '' ? {} : { ref: `${receipt.id}@${receipt.fence}` }),
  };
  return {
    status,
    headers: [
      ['content-type', 'application/problem+json'],
      ['cache-control', 'no-store'],
      ...(retryAfterMs === undefined
        ? []
        : [['retry-after', String(Math.ceil(retryAfterMs / 1_000))] as const]),
    ],
    body: Buffer.from(JSON.stringify(problem)),
  };
}

/** At least a second: the header has no smaller unit. */
function delayOf({ code, retryAfterMs }: SemelError): number {
  // Most doubts are decided by a person.
  const usualMs = code === 'IN_DOUBT' || code === 'PARTIAL_SUCCESS' ? 60_000 : 1_000;
  return Math.max(1_000, Math.ceil(retryAfterMs ?? usualMs));
}

export function toResponse({ status, headers, body }: Answer): Response {
  const isEmpty = status === 204 || status === 205 || status === 304;
  return new Response(isEmpty ? null : (body as Uint8Array<ArrayBuffer>), {
    status,
    headers: headers.map(([name, value]) => [name, value] as [string, string]),
  });
}
