// HTTP on both sides of the proxy: which headers pass, how bodies are read, who may call.

import { createHash, timingSafeEqual } from 'node:crypto';
import {
  type IncomingMessage,
  request as plainRequest,
  type RequestOptions,
  type ServerResponse,
} from 'node:http';
import { request as tlsRequest } from 'node:https';
import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { createByteCollector } from '../../core/byte-collector.ts';
import { limits } from '../../core/limits.ts';
import { createReservation, type Reservation } from '../../core/reservations.ts';
import { createEventReader } from '../protocol/events.ts';
import { isReply, parseJson } from '../protocol/messages.ts';

export type Headers = IncomingMessage['headers'];

export interface Sending {
  readonly method: string | undefined;
  readonly headers: Headers;
  readonly body?: Buffer | undefined;
  readonly signal?: AbortSignal;
}

/** Resolves when the response headers have arrived. */
export function send(target: URL, { method, headers, body, signal }: Sending): Promise<IncomingMessage> {
  const start = target.protocol === 'https:' ? tlsRequest : plainRequest;
  const sent: Headers = { ...headers };
  for (const name of [...hopByHopHeaders, 'host', 'content-length', tokenHeader]) delete sent[name];
  if (body !== undefined) sent['content-length'] = String(body.length);
  for (const name of Object.keys(sent)) if (sent[name] === undefined) delete sent[name];
  const options: RequestOptions = { headers: sent, ...(method === undefined ? {} : { method }) };
  return new Promise((resolve, reject) => {
    const outgoing = start(target, { ...options, ...(signal === undefined ? {} : { signal }) }, (answer) => {
      if ((answer.statusCode ?? 0) >= 200) return resolve(answer);
      answer.destroy();
      reject(new Error('The server did not answer with a response of HTTP.'));
    });
    outgoing.on('error', reject);
    // Without a listener Node.js closes the connection without an event, and nobody would ever hear of the request again.
    outgoing.on('upgrade', (_answer, socket) => {
      socket.destroy();
      reject(new Error('The server switched to another protocol.'));
    });
    outgoing.end(body);
  });
}

/** Request headers for an answer that the proxy has to read. */
export function withoutCompression(headers: Headers, more: Headers = {}): Headers {
  return { ...headers, 'accept-encoding': 'identity', ...more };
}

const unpackers: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Some servers compress unasked. Decompresses chunk by chunk, so that limits count the real size. */
export function decompress(answer: IncomingMessage): IncomingMessage {
  const { 'content-encoding': coding = '', 'content-length': _, ...headers } = answer.headers;
  const unpack = unpackers[coding.trim().toLowerCase()];
  if (unpack === undefined) return answer;
  const { statusCode } = answer;
  // Destroying either stream ends both.
  const plain = pipeline(answer, unpack(), () => undefined);
  // It may fail when nobody reads it any more.
  plain.on('error', () => undefined);
  return Object.assign(plain, { headers, statusCode }) as unknown as IncomingMessage;
}

export function isEventStream({ 'content-type': type = '' }: Headers): boolean {
  return /^text\/event-stream\b/i.test(type.trim());
}

/** Drops a byte order mark, as clients do: JSON has none. */
export function decodeBody(body: Buffer): string {
  return body.toString().replace(/^\ufeff/, '');
}

/** Where a redirect leads, without its query, which may hold secrets. */
export function redirectTarget({ statusCode = 0, headers }: IncomingMessage, from: URL): string | undefined {
  const { location } = headers;
  if (statusCode < 300 || statusCode > 399 || location === undefined) return undefined;
  if (!URL.canParse(location, from.href)) return 'an address that cannot be read';
  const { origin, pathname } = new URL(location, from);
  return `${origin}${pathname}`;
}

/** A compressed body could hide a call. */
export function isUncompressed(headers: Headers): boolean {
  const coding = headers['content-encoding'];
  return coding === undefined || coding === 'identity';
}

/** With another media type or character set, the server might read a different message. */
export function isJsonInUtf8({ 'content-type': type = '' }: Headers): boolean {
  const [media = '', ...parameters] = type.toLowerCase().split(';');
  if (!/^application\/([\w.-]+\+)?json$/.test(media.trim())) return false;
  const charsets = parameters.flatMap((each) => /^\s*charset\*?\d*\*?\s*=\s*(.*)$/.exec(each)?.[1] ?? []);
  return charsets.every((charset) => /^"?utf-?8"?$/.test(charset.trim()));
}

/** Authenticates a caller to the proxy. Never forwarded to the server. */
export const tokenHeader = 'semel-token';

/** Compares in constant time. */
export function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const shown = headers[tokenHeader];
  return typeof shown === 'string' && timingSafeEqual(digest(shown), digest(token));
}

/** Refuses web pages of other origins, and host names that were rebound to this machine. */
export function isAllowed({ headers, socket }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, host = '', 'sec-fetch-site': site } = headers;
  if (isLocalAddress(socket.localAddress) && !isLocalHost(host)) return false;
  // For an image or a script a browser sends no Origin, but it does send Sec-Fetch-Site.
  if (origin === undefined) return site === undefined || site === 'same-origin' || site === 'none';
  if (origins.includes(origin)) return true;
  const [, scheme, place = ''] = /^(https?):\/\/(.*)$/.exec(origin) ?? [];
  return scheme !== undefined && isLocalHost(place);
}

/** Compared as text: a URL parser would also accept it behind a user name or in other digits. */
function isLocalHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host);
}

function isLocalAddress(host: string | undefined): boolean {
  return host !== undefined && /^(localhost|127(\.\d+){3}|(::ffff:)?127(\.\d+){3}|\[?::1\]?)$/.test(host);
}

const hopByHopHeaders: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** For an answer that passes through. */
export function forwardedHeaders(headers: Headers): Record<string, string | string[]> {
  const others = Object.entries(headers).filter(([name]) => !hopByHopHeaders.includes(name));
  return Object.fromEntries(others) as Record<string, string | string[]>;
}

/** For an answer whose body the proxy writes. */
export function rewrittenHeaders(headers: Headers): Record<string, string | string[]> {
  const { 'content-length': _l, 'content-encoding': _e, etag: _t, ...others } = forwardedHeaders(headers);
  return others;
}

/** A message exceeds a limit, so the rest is not read. `status` is the HTTP status. */
export class LimitExceeded extends Error {
  readonly status: 413 | 503;
  constructor(status: 413 | 503, maxBytes: number = limits.messageBytes) {
    super(
      status === 413
        ? `The message is longer than ${maxBytes} bytes.`
        : `More than ${limits.unfinishedBytes} bytes of messages are being received at once. Try again later.`,
    );
    this.status = status;
  }
}

/** Throws LimitExceeded. The bytes count against the process's budget until `held.end()`. */
export async function readBody(
  message: IncomingMessage,
  held: Reservation,
  maxBytes: number = limits.messageBytes,
): Promise<Buffer> {
  if (Number(message.headers['content-length'] ?? 0) > maxBytes) throw new LimitExceeded(413, maxBytes);
  // A short body arrives with its headers: once the parser has read all of that, nothing is left to wait for.
  await undefined;
  if (message.complete) return takeWhole(message, held, maxBytes);
  return receiveParts(message, held, maxBytes);
}

function takeWhole(message: IncomingMessage, held: Reservation, maxBytes: number): Buffer {
  if (message.readableLength > maxBytes) throw new LimitExceeded(413, maxBytes);
  if (!held.take(message.readableLength)) throw new LimitExceeded(503, maxBytes);
  return message.read() ?? Buffer.alloc(0);
}

function receiveParts(message: IncomingMessage, held: Reservation, maxBytes: number): Promise<Buffer> {
  const body = createByteCollector();
  let received = () => {};
  // Not `for await`: leaving the loop would destroy the connection that the answer needs.
  const whole = new Promise<Buffer>((resolve, reject) => {
    const stop = (status: 413 | 503) => {
      message.pause();
      body.take();
      reject(new LimitExceeded(status, maxBytes));
    };
    received = held.receive(() => stop(503));
    message.on('data', (part: Buffer) => {
      const isShort = body.size + part.length <= maxBytes;
      if (isShort && held.take(part.length)) body.add(part);
      else stop(isShort ? 503 : 413);
    });
    let isWhole = false;
    message.once('end', () => {
      isWhole = true;
      resolve(body.take());
    });
    message.once('error', reject);
    message.once('close', () => {
      if (!isWhole) reject(new Error('The connection broke off.'));
    });
  });
  return whole.finally(received);
}

/** The reply in an HTTP answer, as JSON or among events. Does not wait for the end of the stream: not every server closes it. */
export async function readReply(answer: IncomingMessage): Promise<unknown> {
  const held = createReservation('servers');
  if (!isEventStream(answer.headers))
    return readBody(answer, held)
      .then((body) => parseJson(decodeBody(body)))
      .finally(() => {
        held.end();
        answer.destroy();
      });
  let found: unknown;
  const events = createEventReader((_event, { data }) => {
    const message = data === undefined ? undefined : parseJson(data);
    if (isReply(message)) found = message;
  });
  try {
    for await (const chunk of answer) {
      events.read(chunk as Buffer);
      if (found !== undefined) break;
    }
    return found;
  } finally {
    events.end();
  }
}

export function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  if (response.headersSent) return void response.end();
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  // The rest of a refused body is not read.
  if (status === 413 || status === 503) response.setHeader('connection', 'close');
  response.end(JSON.stringify(body));
}
