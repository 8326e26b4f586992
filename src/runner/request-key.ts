// Puts the key into a request of `ctx.fetch`: a header, a field of the JSON body, or a parameter of the query. It goes
// to the provider's own hosts only, since a key is a capability to replay an answer. Refuses what would go without.

import { SemelError } from '../core/errors.ts';
import type { Provider } from '../core/provider.ts';

export const madeUp = 'made up: ';

/** The key that the provider's SDK made up for this call; it sends the same one when it tries again by itself. */
export function keyMadeUp(provider: Provider | undefined, request: Request): string | undefined {
  const given = provider && request.headers.get(headerOf(provider));
  if (provider?.sdkKey === undefined || given == null) return undefined;
  return given.search(provider.sdkKey) === 0 ? `${madeUp}${given}` : undefined;
}

function headerOf({ header = 'Idempotency-Key' }: Provider): string {
  return header;
}

/** `fetch` would carry the key along to wherever it is sent, so no redirect is followed with it. */
export async function withKey(
  provider: Provider | undefined,
  request: Request,
  key: () => string,
): Promise<Request> {
  const { bodyField, queryField, sentBy = 'fetch' } = provider ?? {};
  if (provider === undefined || sentBy !== 'fetch') return request;
  const body = bodyField === undefined ? undefined : await jsonBody(provider, bodyField, request);
  if (isNamed(provider, request, body)) return new Request(request, { redirect: 'manual' });
  if (provider.hosts === undefined) throw hostsMissing(provider);
  if (!mayKnowKey(provider.hosts, request.url)) throw strangeHost(provider, request.url);
  if (bodyField !== undefined && body !== undefined) {
    const headers = new Headers(request.headers);
    headers.delete('content-length');
    return new Request(request, { headers, body: inserted(body.text, bodyField, key()), redirect: 'manual' });
  }
  if (queryField !== undefined) {
    const url = new URL(request.url);
    url.search += `${url.search === '' ? '?' : '&'}${queryField}=${encodeURIComponent(key())}`;
    return new Request(url, new Request(request, { redirect: 'manual' }));
  }
  const headers = new Headers(request.headers);
  headers.set(headerOf(provider), key());
  return new Request(request, { headers, redirect: 'manual' });
}

interface JsonBody {
  readonly text: string;
  readonly fields: object;
}

/** The tool has put a key there itself. */
function isNamed(provider: Provider, request: Request, body: JsonBody | undefined): boolean {
  const { bodyField, queryField } = provider;
  if (bodyField !== undefined) return body !== undefined && Object.hasOwn(body.fields, bodyField);
  if (queryField !== undefined) return new URL(request.url).searchParams.has(queryField);
  return request.headers.has(headerOf(provider)) && keyMadeUp(provider, request) === undefined;
}

/** Of a copy: the request goes on to be sent. */
async function jsonBody(provider: Provider, field: string, request: Request): Promise<JsonBody> {
  const text = await request.clone().text();
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return { text, fields };
  } catch {
    // Told below.
  }
  throw new SemelError(
    'CONTRACT_INVALID',
    `${provider.name} takes the key as the field \`${field}\` of a JSON object, and this request has none.`,
    { path: 'provider.bodyField', next: 'Send a JSON object, or put `ctx.keyFor(…)` there yourself.' },
  );
}

/** Into the text as it is: to parse and write it again would change numbers that JavaScript cannot hold. */
function inserted(text: string, field: string, key: string): string {
  const start = text.indexOf('{') + 1;
  const rest = text.slice(start);
  const comma = rest.trimStart().startsWith('}') ? '' : ',';
  return `${text.slice(0, start)}${JSON.stringify(field)}:${JSON.stringify(key)}${comma}${rest}`;
}

function mayKnowKey(hosts: readonly string[], url: string): boolean {
  const { host, hostname } = new URL(url);
  return hosts.some(
    (allowed) => allowed === host || allowed === hostname || hostname.endsWith(`.${allowed}`),
  );
}

/** Sent without a key, it would be sent again as if it had one. */
function strangeHost({ name }: Provider, url: string): SemelError {
  const { host } = new URL(url);
  return new SemelError(
    'CONTRACT_INVALID',
    `${host} is no host of the provider ${name}, so it would get no key.`,
    {
      path: 'provider.hosts',
      next: 'Give that request a tool of its own, name the host, or send `ctx.keyFor(…)` yourself.',
    },
  );
}

/** Sent without a key, it would be sent again as if it had one. */
function hostsMissing({ name }: Provider): SemelError {
  return new SemelError(
    'CONTRACT_INVALID',
    `The provider ${name} does not say which hosts may get its key.`,
    {
      path: 'provider.hosts',
      next: "Name them, like hosts: ['api.example.com']; or send `ctx.key` yourself.",
    },
  );
}
