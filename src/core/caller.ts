// Whose call it is: one digest over all that a call shows of its caller. Only the same credentials, or the same verified
// subject, give the same digest. A record answers no other caller.

import { digest } from './key/key.ts';

interface Credentials {
  /** An id that the program vouches for, such as that of the user it has signed in. */
  readonly id?: string;
  /** What a server's own check of a token found. It is believed. */
  readonly verified?: Verified;
  /** Of the request, names in lower case. Nobody has checked them: only the credential itself proves whose it is. */
  readonly headers?: HeaderValues;
  /** The query of the request's URL: many servers take their key there. */
  readonly query?: string;
}

export type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

interface Verified {
  readonly token?: unknown;
  readonly clientId?: unknown;
  readonly extra?: unknown;
}

/**
 * The program's word first, then the subject, which stays the same when a token is renewed, with the person or place that the
 * request names beside it. Else all credentials together: a client id alone may be that of an app with many users. Requests
 * that show nothing have one caller.
 */
export function digestCaller({ id, verified = {}, headers = {}, query = '' }: Credentials): string {
  if (id !== undefined) return digest('semel/caller', 'id', id);
  const { subject, issuer, tenant = [] } = findSubject(verified);
  if (subject !== undefined) {
    const named = [...shown(headers, isLasting), ...listLasting(query)];
    return digest(
      'semel/caller',
      'subject',
      ...given(issuer),
      String(subject),
      ...tenant,
      'beside',
      ...named,
    );
  }
  const parts = [...given(verified.clientId), ...given(verified.token), query.replace(/^\?/, '')];
  return digest('semel/caller', 'shown', ...parts, ...shown(headers, isCredential));
}

function shown(headers: HeaderValues, isMeant: (name: string) => boolean): readonly string[] {
  return Object.entries(headers)
    .filter(([name, value]) => value !== undefined && isMeant(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => [name, JSON.stringify(value)]);
}

/** Of a query, what is not a credential that may be renewed. */
function listLasting(query: string): readonly string[] {
  return [...new URLSearchParams(query)].filter(([name]) => !renewed.test(name.toLowerCase())).flat();
}

/** Absent and empty are two things. */
function given(part: unknown): readonly [string, string] {
  return isId(part) ? ['given', String(part)] : ['absent', ''];
}

/** Anywhere in a word of a header's name: `apitoken`, `userid`. What names a credential, a person, or the place of an effect. */
const credentialStems =
  /auth|cookie|token|key|secret|cred|passw|pwd|jwt|oidc|saml|bearer|cert|login|user|principal|subject|identity|account|tenant|email|organi[sz]ation|workspace|customer|behalf|impersonat|delegat|member|company|merchant|caller|consumer|namespace|assertion|fingerprint|thumbprint/;
/** Too short to be looked for inside of words. */
const credentialWords =
  /^(pass|pat|sso|org|orgid|team|teamid|project|projectid|uid|dn|realm|profile|instance|site|endpoint|database|url|clientid|sudo|actor|actas|runas|role|sub|claim|claims|cn|serial|shop|shopid|store|storeid|domain|subdomain|cloudid|hostname|environment|env)$/;
/** By several words: each alone is in names that say nothing of the caller (`x-cloud-trace-context`, `x-forwarded-host`). */
const joinedNames =
  /(^|[-_])((client|cloud|app|application)[-_]?id|(act|run)[-_]as([-_].*)?|(?<!(ssl|tls|mcp)[-_])session|(?<!(forwarded|original)[-_])(?<=[-_])host)$/;
/** What a gateway or client writes anew with each token. */
const renewed =
  /authorization|cookie|token|key|secret|cred|passw|pwd|jwt|bearer|cert|session|signature|assertion|claims|userinfo|oidc-data|client-principal$|^(code|state|sig|nonce|pass|pat)$/;
/** Headers that differ from one request to the next, or say nothing of the caller. */
const otherNames =
  /^(sec-.*|mcp-param-.*|semel-.*|(.*-)?user-agent|.*idempoten.*|.*(csrf|xsrf).*|(x-)?(cache|surrogate)-key)$/;

/** By the words of its name: a header that is taken for a credential by mistake only keeps two callers apart. */
function isCredential(name: string): boolean {
  if (otherNames.test(name)) return false;
  if (joinedNames.test(name)) return true;
  return name.split(/[-_]/).some((word) => credentialStems.test(word) || credentialWords.test(word));
}

/** Names a person or a place, and stays the same under a new token. */
function isLasting(name: string): boolean {
  return isCredential(name) && !renewed.test(name);
}

/** What the check of the token says, else what the token itself says. */
export function findSubject({ token, extra }: Verified): {
  subject?: string | number;
  issuer?: string | number;
  /** Claims that name it, each with its value: a subject may be known to its tenant only. */
  tenant?: readonly string[];
} {
  const checked = readFields(extra);
  const ofToken = readClaims(token);
  const claims = { ...ofToken, ...checked };
  // One token may serve all users of an app: whom the check has found stands before what the token says.
  const subject = [checked, ofToken].flatMap((each) => subjectNames.map((name) => each[name])).find(isId);
  const issuer = [claims.iss, claims.issuer].find(isId);
  const tenant = Object.keys(claims)
    .filter((name) => isTenant(name) && isId(claims[name]))
    .sort()
    .flatMap((name) => [name, String(claims[name])]);
  return {
    ...(subject === undefined ? {} : { subject }),
    ...(issuer === undefined ? {} : { issuer }),
    tenant,
  };
}

const subjectNames = ['sub', 'subject', 'userId', 'user_id'];

/** By all words of its name: `orgId`, `https://example.com/tenant_id`, and not `account_type`. */
function isTenant(claim: string): boolean {
  const [name = ''] = claim.split(/[/:]/).slice(-1);
  const words = name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[-_.]/);
  return (
    words.some((word) => tenantWords.has(word)) &&
    words.every((word) => tenantWords.has(word) || idWords.has(word))
  );
}

const tenantWords = new Set(
  'tid hd tenant tenantid org orgid organization organisation workspace account accountid team company customer merchant realm project'.split(
    ' ',
  ),
);
const idWords = new Set(['id', 'sid', 'uuid', 'key', 'slug', 'name', 'number', 'domain']);

function isId(value: unknown): value is string | number {
  return (typeof value === 'string' && value !== '') || Number.isSafeInteger(value);
}

/** The claims of a JWT; none where the token is something else. */
function readClaims(token: unknown): Readonly<Record<string, unknown>> {
  const body = typeof token === 'string' ? /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(token)?.[1] : undefined;
  if (body === undefined) return {};
  try {
    return readFields(JSON.parse(Buffer.from(body, 'base64url').toString()));
  } catch {
    return {};
  }
}

function readFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
