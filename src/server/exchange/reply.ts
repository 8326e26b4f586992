// What a request is answered with: a value, a problem or a file, and how it is written.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { LimitExceeded } from '../../mcp/index.ts';
import type { Stream } from '../views/live.ts';
import { writeJson } from './json.ts';
import type { PageFile } from './pages.ts';
import { forClient, type Problem, toProblem } from './problem.ts';
import type { Unread } from './unread.ts';

export interface Reply {
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent after the headers, instead of the body. */
  readonly stream?: Stream['stream'];
}

export const safeHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
} as const;

/** Before anything is looked up: neither a code of semel's nor a record. */
export class Refusal extends Error {
  readonly status: number;
  readonly next: string;
  constructor(status: number, message: string, next = 'Correct the request.') {
    super(message);
    this.status = status;
    this.next = next;
  }
}

/** The code says what a program does about it; the type, which of these it was. */
export const problemKinds: Readonly<Record<number, { readonly type: string; readonly title: string }>> =
  Object.fromEntries(
    Object.entries({
      400: 'BAD_REQUEST',
      401: 'NOT_AUTHENTICATED',
      403: 'NOT_ALLOWED_FROM_THERE',
      404: 'NOT_FOUND',
      405: 'METHOD_NOT_ALLOWED',
      413: 'TOO_LARGE',
      415: 'NOT_JSON',
      421: 'OTHER_HOST',
      500: 'SERVER_FAILED',
      503: 'BUSY',
    }).map(([status, title]) => [status, { type: `urn:semel:problem:${title}`, title }]),
  );

export function isClientsMistake(error: unknown): error is Refusal | LimitExceeded {
  return error instanceof Refusal || error instanceof LimitExceeded;
}

export function toReply(error: unknown): Reply {
  if (isSemelError(error)) {
    const problem = toProblem(forClient(error));
    return problemReply(problem, problem.retryAfterMs);
  }
  if (isClientsMistake(error)) {
    const next = error instanceof Refusal ? error.next : 'Send less, or try again later.';
    const refused = new SemelError('INVALID_ARGS', error.message, { next, retriable: error.status === 503 });
    const problem = { ...toProblem(refused, error.status), ...problemKinds[error.status] };
    return problemReply(problem, error.status === 503 ? 1_000 : undefined);
  }
  // A mistake of the server: its words may hold anything.
  const unknown = new SemelError('STORE_UNAVAILABLE', 'The server failed.', {
    next: 'Ask its operator to look into its log.',
    retriable: false,
  });
  return {
    ...problemReply({ ...toProblem(unknown, 500), ...problemKinds[500] }),
    headers: { ...problemHeaders },
  };
}

const problemHeaders = { 'content-type': 'application/problem+json' } as const;

function problemReply(problem: Problem, retryAfterMs?: number): Reply {
  const delay = problem.retriable || problem.status === 503 ? retryAfterMs : undefined;
  return {
    status: problem.status,
    body: problem,
    headers: {
      ...problemHeaders,
      ...(delay === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(delay / 1_000))) }),
      ...(problem.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    },
  };
}

export interface Written extends Omit<Reply, 'body'> {
  readonly text: string | Buffer;
}

/** Throws where the text would be too long for JavaScript. */
export function write({ body, ...reply }: Reply): Written {
  return { ...reply, text: typeof body === 'string' || Buffer.isBuffer(body) ? body : writeJson(body) };
}

export function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, text, headers }: Written,
  unread: Unread,
): void {
  if (response.destroyed) return;
  const bytes = Buffer.byteLength(text);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes,
    ...safeHeaders,
    ...headers,
    // What was not read would be taken for the next request.
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
  unread.count(response, request.socket, bytes);
}

/** Ends the stream of a client that does not read: it must not fill the memory. */
export function writerOf(response: ServerResponse): (text: string) => void {
  return (text) => {
    // Ending it would keep what it has not read, for as long as it stays.
    if (response.writableLength > limits.unreadBytes / 64) response.destroy();
    else if (!response.destroyed) response.write(text);
  };
}

export function pageReply(
  { headers: { 'accept-encoding': accepted = '' } }: IncomingMessage,
  page: PageFile,
): Reply {
  if (!/\bgzip\b/.test(String(accepted))) return { status: 200, body: page.bytes, headers: page.headers };
  return {
    status: 200,
    body: page.zipped,
    headers: { ...page.headers, 'content-encoding': 'gzip', vary: 'accept-encoding' },
  };
}
