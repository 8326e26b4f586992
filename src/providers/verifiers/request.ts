// Requests to a service by a token, where the user passes no client. JSON in, JSON out; anything but a 2xx is thrown.

/** Instead of a client: a token, and where it is to be used. */
export interface TokenAccess {
  readonly token: string;
  readonly client?: undefined;
  /** Of a proxy, a region or a test. */
  readonly baseUrl?: string;
  readonly fetch?: typeof globalThis.fetch;
}

interface Terms {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch?: typeof globalThis.fetch | undefined;
}

interface Asking {
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  /** Makes it a POST. */
  readonly body?: unknown;
}

export interface Reply<Body> {
  readonly body: Body;
  readonly headers: Headers;
}

export type Request = <Body>(path: string, asking?: Asking) => Promise<Reply<Body>>;

const timeoutMs = 30_000;

export function createRequest(
  { baseUrl, headers, fetch: send = globalThis.fetch }: Terms,
  signal: AbortSignal,
): Request {
  return async <Body>(path: string, { query = {}, body }: Asking = {}) => {
    checkHeaders(headers);
    const url = new URL(`${baseUrl.replace(/\/$/, '')}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const response = await send(url, {
      headers: { accept: 'application/json', 'user-agent': 'semel', ...json(body), ...headers },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) {
      const { message, code } = readError(text);
      throw new RequestError(response.status, message, response.headers, code);
    }
    return { body: JSON.parse(text) as Body, headers: response.headers };
  };
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
  /** The service's own, where its clients have it too: Postmark's. */
  readonly code: unknown;

  constructor(status: number, message: string, headers?: Headers, code?: unknown) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.code = code;
  }
}

/** Where APIs put the words of an error; else the start of the body. */
function readError(text: string): { readonly message: string; readonly code?: unknown } {
  const shown = text.slice(0, 200);
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const { message, Message, ErrorCode, error, errors, errorMessages } = body;
    const inner = (error as { message?: unknown } | undefined)?.message;
    const listed = [errors, errorMessages].find(Array.isArray)?.[0];
    const words = [message, Message, inner, error, (listed as { message?: unknown })?.message, listed];
    const said = words.find((each) => typeof each === 'string') ?? shown;
    return { message: String(said).slice(0, 200), code: ErrorCode };
  } catch {
    return { message: shown };
  }
}
