// Requests to a service by a token, where the user passes no client. JSON in, JSON out; anything but a 2xx is thrown. The
// token is sent only to the service's own address, and no error contains it.

import { limits } from '../../core/limits.ts';

/** Instead of a client: a token, and where it is to be used. */
export interface TokenAccess {
  readonly token: string;
  readonly client?: undefined;
  /** The address of a proxy, a region or a test. */
  readonly baseUrl?: string;
  readonly fetch?: typeof globalThis.fetch;
}

interface Terms {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export interface Asking {
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  /** Makes it a POST. */
  readonly body?: unknown;
}

export interface Reply<Body> {
  readonly body: Body;
  readonly headers: Headers;
  /** For the words of an error that came with a 200. */
  readonly hide: (words: string) => string;
}

export type Request = <Body>(path: string, asking?: Asking) => Promise<Reply<Body>>;

const timeoutMs = 30_000;

export function createRequest(
  { baseUrl, headers, fetch: send = globalThis.fetch }: Terms,
  signal: AbortSignal,
): Request {
  return async <Body>(path: string, { query = {}, body }: Asking = {}) => {
    checkHeaders(headers);
    const url = createUrl(baseUrl, path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const response = await follow(url, (at) =>
      send(at, {
        headers: { accept: 'application/json', 'user-agent': 'semel', ...json(body), ...headers },
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        redirect: 'manual',
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      }),
    );
    const text = await readText(response);
    const hide = (words: string) => hideSecrets(words, headers);
    if (!response.ok) {
      const { message, code, isJson } = readError(hide(text));
      // A proxy without a backend answers 404 too, with a page of its own: that is not the service's "there is none".
      if (response.status === 404 && !isJson) throw new Error(`it answered 404, not as JSON (${message})`);
      throw new RequestError(response.status, message, response.headers, code);
    }
    return { body: JSON.parse(text) as Body, headers: response.headers, hide };
  };
}

/** A path may come from the service: where its next page is. */
function createUrl(baseUrl: string, path: string): URL {
  const url = new URL(`${baseUrl.replace(/\/$/, '')}${path}`);
  // `fetch` would refuse it, and quote it in its error.
  if (url.username !== '' || url.password !== '')
    throw new Error('its address has a name or password in it: pass a token instead');
  if (url.origin !== new URL(baseUrl).origin) throw new Error(`it refers to another address, ${url.origin}`);
  return url;
}

const redirects = new Set([301, 302, 303, 307, 308]);
const maxRedirects = 5;

/** GitHub redirects to a renamed repository. `fetch` would take a token along to another address, in every header but one. */
async function follow(start: URL, send: (url: URL) => Promise<Response>): Promise<Response> {
  let url = start;
  for (let count = 0; ; count += 1) {
    const response = await send(url);
    const location = response.headers.get('location');
    if (!redirects.has(response.status) || location === null) return response;
    await response.body?.cancel();
    const next = new URL(location, url);
    if (next.origin !== start.origin || count === maxRedirects)
      throw new RequestError(response.status, `it redirects to ${next.origin}`);
    url = next;
  }
}

/** A service may never stop sending. */
async function readText(response: Response): Promise<string> {
  if (response.body == null) return response.text();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > limits.messageBytes) throw new Error(`it answered more than ${limits.messageBytes} bytes`);
    chunks.push(chunk);
  }
  return new Blob(chunks).text();
}

/** Error pages may show what was sent. */
function hideSecrets(text: string, headers: Terms['headers']): string {
  return Object.values(headers)
    .flatMap((value) => value.split(' '))
    .flatMap((word, at, words) => (words[at - 1] === 'Basic' ? [word, ...atob(word).split(':')] : [word]))
    .filter((secret) => secret.length >= 8)
    .flatMap((secret) => [secret, secret.replaceAll('/', '\\/')])
    .reduce((shown, secret) => shown.replaceAll(secret, '…'), text);
}

/** `fetch` would quote the value in its error, and with it the token. */
function checkHeaders(headers: Terms['headers']): void {
  for (const [name, value] of Object.entries(headers))
    if (!/^[\t\x20-\x7e]*$/.test(value.trim()))
      throw new Error(`the token has characters that the header ${name} cannot carry`);
}

function json(body: unknown): Record<string, string> {
  return body === undefined ? {} : { 'content-type': 'application/json' };
}

export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  readonly headers: Headers | undefined;
  /** The service's own error code, as its clients report it: Postmark's. */
  readonly code: unknown;

  constructor(status: number, message: string, headers?: Headers, code?: unknown) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.code = code;
  }
}

/** Where APIs put the words of an error; else the start of the body. */
function readError(text: string): {
  readonly message: string;
  readonly isJson: boolean;
  readonly code?: unknown;
} {
  const shown = text.slice(0, 200);
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const { message, Message, ErrorCode, error, errors, errorMessages } = body;
    const inner = (error as { message?: unknown } | undefined)?.message;
    const listed = [errors, errorMessages].find(Array.isArray)?.[0];
    const words = [message, Message, inner, error, (listed as { message?: unknown })?.message, listed];
    const said = words.find((each) => typeof each === 'string') ?? shown;
    return { message: String(said).slice(0, 200), isJson: true, code: ErrorCode };
  } catch {
    return { message: shown, isJson: false };
  }
}
