// Whose call it is: one digest over the credentials that a call came with. Only the same credentials, or the same
// verified subject, give the same digest. A record answers no other caller.

import { digest } from './key.ts';

/** An id that the program vouches for, such as that of the user it has signed in. */
export function callerOfId(id: string): string {
  return digest('semel/caller', 'id', id);
}

export type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What a request shows. Nobody has checked it, so only the credential itself proves whose it is. */
export interface Shown {
  /** Names in lower case. */
  readonly headers: HeaderValues;
  /** The query of the request's URL: many servers take their key there. */
  readonly query: string;
}

/** Two requests have one caller iff they show the same credentials. Requests that show none have one caller. */
export function callerOfRequest({ headers, query }: Shown): string {
  const shown = Object.entries(headers)
    .filter(([name, value]) => value !== undefined && isCredential(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => [name, JSON.stringify(value)]);
  return digest('semel/caller', 'request', query.replace(/^\?/, ''), ...shown);
}

const credentialWords =
  /^(auth|authorization|authentication|cookie|token|key|apikey|secret|credentials?|password|passwd|jwt|oidc|user|userid|username|principal|subject|identity|account|tenant|email)$/;
/** Differ from one request to the next, or say nothing of who asks. */
const otherNames =
  /^(sec-.*|mcp-.*|semel-.*|user-agent|x-user-agent|(x-)?idempotency-(key|token)|.*(csrf|xsrf).*|(x-)?(cache|surrogate)-key)$/;

/** By the words of its name: a header that is taken for a credential by mistake only keeps two callers apart. */
export function isCredential(name: string): boolean {
  return !otherNames.test(name) && name.split(/[-_]/).some((word) => credentialWords.test(word));
}

/** What a server's own check of a token found. It is believed. */
export interface Verified {
  readonly token?: unknown;
  readonly clientId?: unknown;
  readonly extra?: unknown;
}

/**
 * The subject, where the token tells one: it stays the same when the token is renewed. Without one, client and token
 * together: all users of an app may come as one client. Undefined: nothing was found.
 */
export function callerOfVerified({ token, clientId, extra }: Verified): string | undefined {
  const claims = { ...claimsIn(token), ...fieldsIn(extra) };
  const subject = [claims.sub, claims.subject, claims.userId, claims.user_id].find(isId);
  const issuer = [claims.iss, claims.issuer].find(isId);
  if (subject !== undefined)
    return digest('semel/caller', 'subject', issuer === undefined ? '' : `=${issuer}`, String(subject));
  if (!isId(clientId) && !isId(token)) return undefined;
  const parts = [clientId, token].map((part) => (isId(part) ? `=${part}` : ''));
  return digest('semel/caller', 'token', ...parts);
}

function isId(value: unknown): value is string | number {
  return (typeof value === 'string' && value !== '') || Number.isSafeInteger(value);
}

/** The claims of a JWT; none where the token is something else. */
function claimsIn(token: unknown): Readonly<Record<string, unknown>> {
  const body = typeof token === 'string' ? /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(token)?.[1] : undefined;
  if (body === undefined) return {};
  try {
    return fieldsIn(JSON.parse(Buffer.from(body, 'base64url').toString()));
  } catch {
    return {};
  }
}

function fieldsIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
