// Puts the key into a request of `ctx.fetch`: a header, a field of the JSON body, or a query parameter. Only the provider's
// own hosts get it, since a key lets its holder replay a response. Refuses requests that would go without it.

import type { Provider } from '../../core/contract/provider.ts';
import { SemelError } from '../../core/errors.ts';

export const sdkKeyPrefix = 'sdk key: ';

/** The key that the provider's SDK generated; the SDK sends the same one when it retries by itself. */
export function findSdkKey(provider: Provider | undefined, request: Request): string | undefined {
  const given = provider && request.headers.get(keyHeader(provider));
  if (provider?.sdkKey === undefined || given == null) return undefined;
  return given.search(provider.sdkKey) === 0 ? `${sdkKeyPrefix}${given}` : undefined;
}

function keyHeader({ header = 'Idempotency-Key' }: Provider): string {
  return header;
}

/** What a request carries before `ctx.fetch` adds anything. */
export interface CarriedKey {
  /** Set by the tool or its SDK; undefined: none, or one that ours replaces. */
  readonly key: string | undefined;
  /** Where the key goes into the body. */
  readonly body?: JsonBody;
}

export async function readCarriedKey(provider: Provider | undefined, request: Request): Promise<CarriedKey> {
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
  return { key: isReplaced ? undefined : (headers.get(keyHeader(provider)) ?? undefined) };
}

/** No redirect is followed with the key: `fetch` would send it to any host. */
export function withKey(
  provider: Provider | undefined,
  request: Request,
  carried: CarriedKey,
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
    const body = insertField(carried.body.text, bodyField, key());
    return new Request(request, { headers, body, redirect: 'manual' });
  }
  if (queryField !== undefined) {
    const url = new URL(request.url);
    url.search += `${url.search === '' ? '?' : '&'}${queryField}=${encodeURIComponent(key())}`;
    return new Request(url, new Request(request, { redirect: 'manual' }));
  }
  const headers = new Headers(request.headers);
  headers.set(keyHeader(provider), key());
  return new Request(request, { headers, redirect: 'manual' });
}

interface JsonBody {
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Reads a copy: the request itself is still to be sent. */
async function jsonBody(provider: Provider, field: string, request: Request): Promise<JsonBody> {
  const text = await request.clone().text();
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields))
      return { text, fields: fields as JsonBody['fields'] };
  } catch {
    // Reported below.
  }
  throw new SemelError(
    'CONTRACT_INVALID',
    `${provider.name} takes the key as the field \`${field}\` of a JSON object, but the body of this request is not one.`,
    { path: 'provider.bodyField', next: 'Send a JSON object, or put `ctx.keyFor(…)` there yourself.' },
  );
}

/** Edits the text: parsing and serialising it would change numbers that JavaScript cannot hold. */
function insertField(text: string, field: string, key: string): string {
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

/** Without this refusal, a request without a key would be sent again as if it had one. */
function unknownHostError({ name }: Provider, url: string): SemelError {
  const { host } = new URL(url);
  return new SemelError(
    'CONTRACT_INVALID',
    `${host} is not in the \`hosts\` of ${name}, so this request would carry no key.`,
    {
      path: 'provider.hosts',
      next: 'Give that request a tool of its own, name the host, or send `ctx.keyFor(…)` yourself.',
    },
  );
}

/** Without this refusal, a request without a key would be sent again as if it had one. */
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
