// Responses of Node.js: sends an answer, and holds back what a handler writes until its outcome is durable.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { deferred, groupBy } from '../core/older-node.ts';
import type { Captured } from './api/stored-response.ts';
import type { Answer } from './problem.ts';

export function sendAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  setHead(response, status, headers);
  const isEmpty = status === 204 || status === 205 || status === 304;
  if (!isEmpty) response.setHeader('content-length', body.byteLength);
  response.end(isEmpty ? undefined : body);
}

export async function sendResponse(
  response: ServerResponse,
  { status, headers, body }: Response,
): Promise<void> {
  setHead(response, status, [...headers]);
  if (body === null) response.end();
  else await pipeline(Readable.fromWeb(body as never), response);
}

function setHead(response: ServerResponse, status: number, headers: Answer['headers']): void {
  response.statusCode = status;
  // One name may have several values: cookies.
  for (const [name, values] of groupBy(headers, ([each]) => each))
    response.setHeader(
      name,
      values.map(([, value]) => value),
    );
  // The rest of a body that was refused would be taken for the next request.
  if (!response.req.complete) response.setHeader('connection', 'close');
}

export function listHeaders(headers: OutgoingHttpHeaders): (readonly [string, string])[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().flatMap((each) => (each === undefined ? [] : [[name, String(each)] as const])),
  );
}

export interface HeldResponse {
  /** Resolves when the handler has ended its response, or has written more than is kept. */
  readonly captured: Promise<Captured>;
  /** Sends what the handler wrote. */
  release(): void;
  /** Drops what the handler wrote, before it runs again. */
  undo(): void;
  /** Sends this instead, with the headers from before the handler. What the handler writes from now on is dropped. */
  replace(answer: Answer): void;
}

/** From now on, what is written to the response waits. */
export function holdResponse(response: ServerResponse, maxBytes: number): HeldResponse {
  const { promise: captured, resolve } = deferred<Captured>();
  const { write, end, writeHead, flushHeaders } = response;
  const before = response.getHeaders();
  const statusBefore = response.statusCode;
  const chunks: Buffer[] = [];
  let size = 0;
  let ending: { readonly callback: (() => void) | undefined } | undefined;
  let isGone = false;

  const about = () => ({ status: response.statusCode, headers: listHeaders(response.getHeaders()) });

  function take(chunk: unknown, encoding: unknown): boolean {
    if (chunk == null || isGone) return true;
    const bytes =
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Buffer.from(chunk as Uint8Array);
    chunks.push(bytes);
    size += bytes.byteLength;
    if (size > maxBytes) resolve({ ...about(), body: undefined });
    return size <= maxBytes;
  }

  Object.assign(response, {
    write(chunk: unknown, ...rest: unknown[]): boolean {
      const hasRoom = take(chunk, rest[0]);
      const callback = rest.find((each) => typeof each === 'function') as (() => void) | undefined;
      if (callback !== undefined) queueMicrotask(callback);
      return hasRoom;
    },
    end(...given: unknown[]): ServerResponse {
      const callback = given.find((each) => typeof each === 'function') as (() => void) | undefined;
      const [chunk, encoding] = given.filter((each) => typeof each !== 'function');
      take(chunk, encoding);
      if (ending === undefined) {
        ending = { callback };
        resolve({ ...about(), body: Buffer.concat(chunks) });
      }
      return response;
    },
    writeHead(status: number, ...rest: unknown[]): ServerResponse {
      response.statusCode = status;
      const headers = rest.find((each) => typeof each === 'object' && each !== null);
      if (!isGone) setHeaders(response, headers as OutgoingHttpHeaders | unknown[] | undefined);
      return response;
    },
    flushHeaders: () => undefined,
  });

  function undo(): void {
    Object.assign(response, { write, end, writeHead, flushHeaders });
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    for (const [name, value] of Object.entries(before))
      if (value !== undefined) response.setHeader(name, value);
    response.statusCode = statusBefore;
  }

  return {
    captured,
    undo,
    release() {
      Object.assign(response, { write, end, writeHead, flushHeaders });
      // A body that is only partly held back streams on as it is written.
      if (ending === undefined) {
        for (const chunk of chunks) response.write(chunk);
        response.emit('drain');
      } else response.end(Buffer.concat(chunks), ending.callback);
    },
    replace(answer) {
      isGone = true;
      const held = { write: response.write, end: response.end, writeHead: response.writeHead };
      undo();
      sendAnswer(response, answer);
      Object.assign(response, held);
    },
  };
}

/** As an object, or as a flat list of names and values. */
function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders | unknown[] | undefined): void {
  if (headers === undefined) return;
  const entries = Array.isArray(headers)
    ? Array.from({ length: headers.length / 2 }, (_, at) => [headers[2 * at], headers[2 * at + 1]])
    : Object.entries(headers);
  for (const [name, value] of entries)
    if (value !== undefined) response.setHeader(name as string, value as string);
}
