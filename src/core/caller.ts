// Identifies the caller: one digest over everything a call reveals about it. Only the same credentials, or the same
// verified subject, give the same digest. A record answers no other caller.

import { digest } from './key/key.ts';

interface Credentials {
  /** An id that the program vouches for, such as that of the signed-in user. */
  readonly id?: string;
  /** The result of the server's own token check. Trusted. */
  readonly verified?: Verified;
  /** Headers of the request, names in lower case. Not checked: only the credential itself proves whose it is. */
  readonly headers?: HeaderValues;
  /** The query of the request's URL: many servers accept their key there. */
  readonly query?: string;
}

export type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

interface Verified {
  readonly token?: unknown;
  readonly clientId?: unknown;
  readonly extra?: unknown;
}

/**
 * The program's id takes precedence, then the subject, which survives the renewal of a token, together with other people
 * or places that the request names. Otherwise all credentials together: a client id alone may belong to an app with many
 * users. Requests without any credentials share one caller.
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

/**
 * For a server that was started as a process: it takes its credentials from its environment, so two environments may be two
 * accounts. Undefined if it names none.
 */
export function digestEnvironment(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const named = Object.entries(env)
    .filter(([name, value]) => value && isAccountVariable(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => [name, String(value)]);
  return named.length === 0 ? undefined : digest('semel/caller', 'environment', ...named);
}

function shown(headers: HeaderValues, isMeant: (name: string) => boolean): readonly string[] {
  return Object.entries(headers)
    .filter(([name, value]) => value !== undefined && isMeant(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => [name, JSON.stringify(value)]);
}

/** Query parameters that are not renewable credentials. */
function listLasting(query: string): readonly string[] {
  return [...new URLSearchParams(query)].filter(([name]) => !renewed.test(name.toLowerCase())).flat();
}

/** Distinguishes absent from empty. */
function given(part: unknown): readonly [string, string] {
  return isId(part) ? ['given', String(part)] : ['absent', ''];
}

/** Match inside a word of a header's name: `apitoken`, `userid`. They name a credential, a person, or a place. */
const credentialStems =
  /auth|cookie|token|key|secret|cred|passw|pwd|jwt|oidc|saml|bearer|cert|login|user|principal|subject|identity|account|tenant|email|organi[sz]ation|workspace|customer|behalf|impersonat|delegat|member|company|merchant|caller|consumer|namespace|assertion|fingerprint|thumbprint/;
/** Match a whole word of the name: too short to match inside. */
const credentialWords =
  /^(pass|pat|sso|org|orgid|team|teamid|project|projectid|uid|dn|realm|profile|instance|site|endpoint|database|url|clientid|sudo|actor|actas|runas|role|sub|claim|claims|cn|serial|shop|shopid|store|storeid|domain|subdomain|cloudid|hostname|environment|env)$/;
/** Match several words: each alone also occurs in unrelated names (`x-cloud-trace-context`, `x-forwarded-host`). */
const joinedNames =
  /(^|[-_])((client|cloud|app|application)[-_]?id|(act|run)[-_]as([-_].*)?|(?<!(ssl|tls|mcp)[-_])session|(?<!(forwarded|original)[-_])(?<=[-_])host)$/;
/** Changes with each new token. */
const renewed =
  /authorization|cookie|token|key|secret|cred|passw|pwd|jwt|bearer|cert|session|signature|assertion|claims|userinfo|oidc-data|client-principal$|^(code|state|sig|nonce|pass|pat)$/;
/** Headers that change from request to request, or do not identify the caller. */
const otherNames =
  /^(sec-.*|mcp-param-.*|semel-.*|(.*-)?user-agent|.*idempoten.*|.*(csrf|xsrf).*|(x-)?(cache|surrogate)-key)$/;

/** Judged by the words of its name. A false positive only separates two callers. */
function isCredential(name: string): boolean {
  if (otherNames.test(name)) return false;
  if (joinedNames.test(name)) return true;
  return name.split(/[-_]/).some((word) => credentialStems.test(word) || credentialWords.test(word));
}

/** Names of variables that hold a credential, or name whose it is. */
const accountStems =
  /token|key|secret|passw|passphrase|cred|jwt|bearer|cookie|account|tenant|email|organi[sz]ation|workspace|customer|merchant/;
const accountWords =
  /^(pass|pat|auth|authorization|dsn|org|team|profile|login|subdomain|shop|pg(user|host|database|service))$/;
const accountEnds =
  /(_(user|username|user_id)|(^|_)((client|app)_id|connection_string|(database|db|postgres|mysql|mongo(db)?|redis)_ur[il]))$/;
/** Set by a desktop, a shell, a build or an agent for itself, often anew at each start: a retry must still be recognised. */
const passingVariables =
  /^(semel|npm|xdg|ssh|sudo|dbus|gpg|gnome|kde|vscode|term|iterm|starship|claude|codex|cursor|gemini_cli|ci|actions|runner|buildkite|circle)_|session|sock(et)?$|keyring|keymap|keyboard/;

function isAccountVariable(variable: string): boolean {
  const name = variable.toLowerCase();
  if (passingVariables.test(name)) return false;
  if (accountEnds.test(name)) return true;
  return name.split('_').some((word) => accountStems.test(word) || accountWords.test(word));
}

/** Names a person or a place, and survives a new token. */
function isLasting(name: string): boolean {
  return isCredential(name) && !renewed.test(name);
}

/** From the server's token check, otherwise from the token itself. */
export function findSubject({ token, extra }: Verified): {
  subject?: string | number;
  issuer?: string | number;
  /** Claims that name the tenant, with their values: a subject may be unique only within its tenant. */
  tenant?: readonly string[];
} {
  const checked = readFields(extra);
  const ofToken = readClaims(token);
  const claims = { ...ofToken, ...checked };
  // One token may serve all users of an app: the checked subject takes precedence over the token's.
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

/** All words of the name must match: `orgId`, `https://example.com/tenant_id`, but not `account_type`. */
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

/** The claims of a JWT; none if the token is something else. */
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
