// Puts the key into a request of `ctx.fetch`: a header, a field of the JSON body, or a parameter of the query. It goes
// to the provider's own hosts only, since a key is a capability to replay an answer. Refuses what would go without.

import type { Provider } from '../../core/contract/provider.ts';
import { SemelError } from '../../core/errors.ts';

export const sdkKeyPrefix = 'made up: ';

/** The key that the provider's SDK made up for this call; it sends the same one when it tries again by itself. */
export function findSdkKey(provider: Provider | undefined, request: Request): string | undefined {
  const given = provider && request.headers.get(headerOf(provider));
  if (provider?.sdkKey === undefined || given == null) return undefined;
  return given.search(provider.sdkKey) === 0 ? `${sdkKeyPrefix}${given}` : undefined;
}

function headerOf({ header = 'Idempotency-Key' }: Provider): string {
  return header;
}

/** What a request carries before `ctx.fetch` adds anything. */
export interface Carried {
  /** The key that the tool or its SDK has put there; undefined: none, or one that ours replaces. */
  readonly key: string | undefined;
  /** Where the key goes into the body. */
  readonly body?: JsonBody;
}

export async function readCarriedKey(provider: Provider | undefined, request: Request): Promise<Carried> {
  const { headers, url } = request;
  const { bodyField, queryField, sentBy = 'fetch' } = provider ?? {};
  if (provider === undefined || sentBy !== 'fetch')
    return { key: headers.get('idempotency-key') ?? headers.get('x-idempotency-key') ?? undefined };
  if (bodyField !== undefined) {
    const body = await jsonBody(provider, bodyField, request);
    const isNamed = Object.hasOwn(body.fields, bodyField);
    return { key: isNamed ? String(body.fields[bodyField]) : undefined, body };
  }
  if (queryField !== undefined) {
    const named = new URL(url).searchParams.getAll(queryField);
    return { key: named.length === 0 ? undefined : named.join(', ') };
  }
  const isReplaced = findSdkKey(provider, request) !== undefined;
  return { key: isReplaced ? undefined : (headers.get(headerOf(provider)) ?? undefined) };
}

/** `fetch` would carry the key along to wherever it is sent, so no redirect is followed with it. */
export function withKey(
  provider: Provider | undefined,
  request: Request,
  carried: Carried,
  key: () => string,
): Request {
  const { bodyField, queryField, sentBy = 'fetch' } = provider ?? {};
  if (provider === undefined || sentBy !== 'fetch') return request;
  if (carried.key !== undefined) return new Request(request, { redirect: 'manual' });
  if (provider.hosts === undefined) throw missingHostsError(provider);
  if (!isProviderHost(provider.hosts, request.url)) throw unknownHostError(provider, request.url);
  if (bodyField !== undefined && carried.body !== undefined) {
    const headers = new Headers(request.headers);
    headers.delete('content-length');
    const body = inserted(carried.body.text, bodyField, key());
    return new Request(request, { headers, body, redirect: 'manual' });
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
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Of a copy: the request goes on to be sent. */
async function jsonBody(provider: Provider, field: string, request: Request): Promise<JsonBody> {
  const text = await request.clone().text();
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields))
      return { text, fields: fields as JsonBody['fields'] };
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

function isProviderHost(hosts: readonly string[], url: string): boolean {
  const { host, hostname } = new URL(url);
  return hosts.some(
    (allowed) => allowed === host || allowed === hostname || hostname.endsWith(`.${allowed}`),
  );
}

/** Sent without a key, it would be sent again as if it had one. */
function unknownHostError({ name }: Provider, url: string): SemelError {
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
function missingHostsError({ name }: Provider): SemelError {
  return new SemelError(
    'CONTRACT_INVALID',
    `The provider ${name} does not say which hosts may get its key.`,
    {
      path: 'provider.hosts',
      next: "Name them, like hosts: ['api.example.com']; or send `ctx.key` yourself.",
    },
  );
}
