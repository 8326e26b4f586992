// The address of a store: parsed strictly, and shown, logged and stored without its secrets, even if it is malformed.

import { SemelError } from '../core/errors.ts';

export const postgresExample = 'postgres://user:password@host:5432/database';
export const redisExample = 'redis://user:password@host:6379/0';
export const s3Example = 's3://bucket/prefix?region=eu-central-1';
export const dynamodbExample = 'dynamodb://table?region=eu-central-1';

const schemed = /^\s*([a-z][a-z0-9+.-]*:\/\/)(.*)$/is;

/**
 * Removes password, secret parameters and fragment. An ambiguous address loses more rather than less: a password that was
 * not percent-encoded may contain any of `/?#@:`.
 */
export function redactAddress(address: string): string {
  const [, scheme, rest] = schemed.exec(address) ?? [];
  if (scheme === undefined || rest === undefined) return redactPath(address);
  const at = rest.lastIndexOf('@');
  if (at < 0 && hasOddPort(rest)) return `${scheme}…`;
  const [place = '', ...query] = rest
    .slice(at + 1)
    .replace(/#.*$/s, '')
    .split('?');
  const parameters = query
    .join('?')
    .split('&')
    .filter((each) => each !== '' && !isSecret(each));
  const user = redactUser(scheme, rest.slice(0, Math.max(0, at)), at);
  // Parameters may have been joined to the place by another mark than `?`.
  const bare = /=|%3d/i.test(place) ? place.replace(/(?:[;&\s]|%3b|%26|%20).*$/is, '') : place;
  return `${scheme}${user}${bare}${parameters.length === 0 ? '' : `?${parameters.join('&')}`}`;
}

/** Looks behind from `://`: starting with the scheme would scan a long word again from each of its letters. */
const addressAfterScheme = /(?<=([a-z][a-z0-9+.-]*)):\/\/[^\s"'`<>]+/gi;

/** Redacts every address in a text for people. `typed` are addresses that the text may quote. */
export function redactSecrets(text: string, typed: readonly string[] = []): string {
  let redacted = text;
  for (const address of typed) {
    if (!mayHoldSecret(address)) continue;
    const safe = redactAddress(address);
    if (safe === address) continue;
    redacted = redacted.replaceAll(address, safe).replaceAll(JSON.stringify(address).slice(1, -1), safe);
  }
  return redacted.replace(addressAfterScheme, (found: string, scheme: string) => {
    const address = scheme + found;
    return mayHoldSecret(address) ? redactAddress(address).slice(scheme.length) : found;
  });
}

/** What follows `sqlite:` looks like a server, and may start with a user and a password. */
export function looksLikeServer(path: string): boolean {
  const bare = path.replace(/^[\\/]+/, '');
  const isDrive = /^[a-z]:([\\/]|$)/i.test(bare);
  return /^\/\/[^/]/.test(path) || bare.includes('://') || (!isDrive && /^[^\\/:]*:.*@/s.test(bare));
}

/** Refuses an address that two parsers could read as two places. */
export function readAddress(url: string, example: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed !== undefined && !isAmbiguous(parsed)) return parsed;
  // Without the cause: Node's error quotes the URL.
  throw new SemelError('CONTRACT_INVALID', 'The URL of the store cannot be read.', {
    path: 'store',
    next: `Write '${example}', with special characters of user and password percent-encoded: / is %2F, @ is %40, # is %23.`,
  });
}

/** Adds our own parameters back to a URL: they were removed before the driver got it. */
export function fullAddress(
  url: string | undefined,
  ours: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (url === undefined) return undefined;
  const parameters = Object.entries(ours).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  if (parameters.length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${parameters.join('&')}`;
}

/** A path is shown as it is; of anything else without `//` only the scheme is. */
function redactPath(address: string): string {
  const [kind] = /^[a-z][a-z0-9+.-]*:/i.exec(address) ?? [];
  if (kind === 'sqlite:' && !looksLikeServer(address.slice(kind.length))) return address;
  return `${kind ?? ''}…`;
}

/** For Postgres the user is not a secret. For Redis it may be the password in the wrong place. */
function redactUser(scheme: string, userInfo: string, at: number): string {
  if (at < 0) return '';
  return /^redis/i.test(scheme) ? '@' : `${/^[^/?#:@]*/.exec(userInfo)?.[0] ?? ''}@`;
}

/** `ada:secret` without a host looks like a host and its port. */
function hasOddPort(rest: string): boolean {
  const [, port] = /^(?:\[[^\]]*\]|[^/?#:]*):([^/?#]*)/.exec(rest) ?? [];
  return port !== undefined && !/^\d{0,5}(,[\w.-]+(:\d{1,5})?)*$/.test(port);
}

/** All names count: one parameter may hold several, joined by another mark than `&`. */
function isSecret(parameter: string): boolean {
  try {
    return decodeURIComponent(parameter)
      .split(/[;&\s]/)
      .filter((each, at) => at === 0 || each.includes('='))
      .some((each) => /pass|pwd|secret|token|cred|^auth|(?<!ssl)key/i.test(each.split('=', 1)[0] ?? ''));
  } catch {
    return true;
  }
}

function mayHoldSecret(text: string): boolean {
  if (/\bpassword\s*=/i.test(text)) return true;
  if (text.includes('@')) return text.includes(':');
  const rest = schemed.exec(text)?.[2] ?? '';
  return (
    hasOddPort(rest) ||
    rest
      .split(/[?&#;\s]/)
      .slice(1)
      .some(isSecret)
  );
}

/** An @ after the host ends a password that contains / or ? or #. After `;` or `&`, a path holds parameters. */
function isAmbiguous({ username, password, pathname, search, hash }: URL): boolean {
  if (`${pathname}${search}${hash}`.includes('@') || hash !== '' || holdsParameters(pathname)) return true;
  try {
    decodeURIComponent(username);
    decodeURIComponent(password);
    return false;
  } catch {
    return true;
  }
}

function holdsParameters(path: string): boolean {
  const mark = path.search(/[;&]/);
  return mark >= 0 && path.includes('=', mark);
}
