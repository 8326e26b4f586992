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
    const url = new URL(`${baseUrl.replace(/\/$/, '')}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const response = await send(url, {
      headers: { accept: 'application/json', 'user-agent': 'semel', ...json(body), ...headers },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new RequestError(response.status, readMessage(text), response.headers);
    return { body: JSON.parse(text) as Body, headers: response.headers };
  };
}

function json(body: unknown): Record<string, string> {
  return body === undefined ? {} : { 'content-type': 'application/json' };
}

export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  readonly headers: Headers | undefined;
  /** The whole body's own code, where it has one. */
  readonly detail: string | undefined;

  constructor(status: number, message: string, headers?: Headers, detail?: string) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.detail = detail;
  }
}

/** Where APIs put the words of an error; else the start of the body. */
function readMessage(text: string): string {
  const shown = text.slice(0, 200);
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const { message, Message, error, errors, errorMessages } = body;
    const inner = (error as { message?: unknown } | undefined)?.message;
    const listed = [errors, errorMessages].find(Array.isArray)?.[0];
    const words = [message, Message, inner, error, (listed as { message?: unknown })?.message, listed];
    return String(words.find((each) => typeof each === 'string') ?? shown).slice(0, 200);
  } catch {
    return shown;
  }
}
