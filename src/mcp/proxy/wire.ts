// HTTP between the proxy and both sides: which headers pass, how bodies are read, who may call at all.

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
import { limits } from '../../core/limits.ts';
import { gathering } from '../protocol/gather.ts';
import type { Holding } from '../protocol/held.ts';

export type Headers = IncomingMessage['headers'];

export interface Sending {
  readonly method: string | undefined;
  readonly headers: Headers;
  readonly body?: Buffer | undefined;
  readonly signal?: AbortSignal;
}

/** Answers as soon as the headers are there. */
export function send(target: URL, { method, headers, body, signal }: Sending): Promise<IncomingMessage> {
  const start = target.protocol === 'https:' ? tlsRequest : plainRequest;
  const sent: Headers = { ...headers };
  for (const name of [...hopByHop, 'host', 'content-length', tokenHeader]) delete sent[name];
  if (body !== undefined) sent['content-length'] = String(body.length);
  for (const name of Object.keys(sent)) if (sent[name] === undefined) delete sent[name];
  const options: RequestOptions = { headers: sent, ...(method === undefined ? {} : { method }) };
  return new Promise((resolve, reject) => {
    const outgoing = start(target, { ...options, ...(signal === undefined ? {} : { signal }) }, resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Of the proxy's own request, whose answer it has to read. */
export function readable(headers: Headers, over: Headers = {}): Headers {
  return { ...headers, 'accept-encoding': 'identity', ...over };
}

const unpackers: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** An answer that is compressed though nobody asked for it, as clients read it: unpacked piece by piece, each counted. */
export function unpacked(answer: IncomingMessage): IncomingMessage {
  const { 'content-encoding': coding = '', 'content-length': _, ...headers } = answer.headers;
  const unpack = unpackers[coding.trim().toLowerCase()];
  if (unpack === undefined) return answer;
  const { statusCode } = answer;
  // Who destroys the one ends the other.
  const plain = pipeline(answer, unpack(), () => undefined);
  // One that nobody reads to its end may be broken all the same.
  plain.on('error', () => undefined);
  return Object.assign(plain, { headers, statusCode }) as unknown as IncomingMessage;
}

export function isEventStream({ 'content-type': type = '' }: Headers): boolean {
  return /^text\/event-stream\b/i.test(type.trim());
}

/** Of an answer: clients leave a mark at its beginning out, and JSON has none. */
export function textIn(body: Buffer): string {
  return body.toString().replace(/^\ufeff/, '');
}

/** Where the server wants to be asked instead, if it says so; without what only it may know. */
export function elsewhere({ statusCode = 0, headers }: IncomingMessage, asked: URL): string | undefined {
  const { location } = headers;
  if (statusCode < 300 || statusCode > 399 || location === undefined) return undefined;
  if (!URL.canParse(location, asked.href)) return 'an address that cannot be read';
  const { origin, pathname } = new URL(location, asked);
  return `${origin}${pathname}`;
}

/** A compressed body could hide a call. */
export function isPlain(headers: Headers): boolean {
  const coding = headers['content-encoding'];
  return coding === undefined || coding === 'identity';
}

/** A server might read other bytes than these in another character set, or in no JSON at all. */
export function isJsonInUtf8({ 'content-type': type = '' }: Headers): boolean {
  const [media = '', ...parameters] = type.toLowerCase().split(';');
  if (!/^application\/([\w.-]+\+)?json$/.test(media.trim())) return false;
  const charsets = parameters.flatMap((each) => /^\s*charset\*?\d*\*?\s*=\s*(.*)$/.exec(each)?.[1] ?? []);
  return charsets.every((charset) => /^"?utf-?8"?$/.test(charset.trim()));
}

/** What a caller shows to the proxy; the server is not shown it. */
export const tokenHeader = 'semel-token';

/** In a time that tells nothing of how much of it is right. */
export function isKnown({ headers }: IncomingMessage, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const shown = headers[tokenHeader];
  return typeof shown === 'string' && timingSafeEqual(digest(shown), digest(token));
}

/** A page in a browser must not reach what is meant for this machine: neither as itself nor under a borrowed name. */
export function isWelcome({ headers, socket }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, host = '', 'sec-fetch-site': site } = headers;
  if (isLocal(socket.localAddress) && !isLocalHost(host)) return false;
  // A page that asks for an image or a script sends no origin; its browser says all the same that it is a page.
  if (origin === undefined) return site === undefined || site === 'same-origin' || site === 'none';
  if (origins.includes(origin)) return true;
  const [, scheme, place = ''] = /^(https?):\/\/(.*)$/.exec(origin) ?? [];
  return scheme !== undefined && isLocalHost(place);
}

/** As it is written: a parser would also find it behind a user name, or in other digits. */
function isLocalHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host);
}

function isLocal(host: string | undefined): boolean {
  return host !== undefined && /^(localhost|127(\.\d+){3}|(::ffff:)?127(\.\d+){3}|\[?::1\]?)$/.test(host);
}

const hopByHop: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Of an answer that is passed on. */
export function passed(headers: Headers): Record<string, string | string[]> {
  const others = Object.entries(headers).filter(([name]) => !hopByHop.includes(name));
  return Object.fromEntries(others) as Record<string, string | string[]>;
}

/** Of an answer whose body is written anew. */
export function kept(headers: Headers): Record<string, string | string[]> {
  const { 'content-length': _l, 'content-encoding': _e, etag: _t, ...others } = passed(headers);
  return others;
}

/** Beyond a limit: it is not read on. `status` is what HTTP calls it. */
export class BeyondLimit extends Error {
  readonly status: 413 | 503;
  constructor(status: 413 | 503) {
    super(
      status === 413
        ? `The message is longer than ${limits.messageBytes} bytes.`
        : `More than ${limits.unfinishedBytes} bytes of messages are being received at once. Try again later.`,
    );
    this.status = status;
  }
}

/** Throws BeyondLimit. What it holds counts against the whole process until `held` is ended. */
export async function bodyOf(message: IncomingMessage, held: Holding): Promise<Buffer> {
  if (Number(message.headers['content-length'] ?? 0) > limits.messageBytes) throw new BeyondLimit(413);
  const body = gathering();
  let received = () => {};
  // Not by `for await`: leaving it would cut the connection that the answer has to go out on.
  const whole = new Promise<Buffer>((resolve, reject) => {
    const stop = (status: 413 | 503) => {
      message.pause();
      body.take();
      reject(new BeyondLimit(status));
    };
    received = held.receive(() => stop(503));
    message.on('data', (part: Buffer) => {
      const isShort = body.size + part.length <= limits.messageBytes;
      if (isShort && held.take(part.length)) body.add(part);
      else stop(isShort ? 503 : 413);
    });
    message.once('end', () => resolve(body.take()));
    message.once('error', reject);
    message.once('close', () => reject(new Error('The connection broke off.')));
  });
  return whole.finally(received);
}

export function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  if (response.headersSent) return void response.end();
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  // What is left of a refused body is not read.
  if (status === 413 || status === 503) response.setHeader('connection', 'close');
  response.end(JSON.stringify(body));
}
