// The address of a store: read strictly, and shown, logged and written into another ledger without its secrets, however
// badly it was typed.

import { SemelError } from '../core/errors.ts';

export const postgresExample = 'postgres://user:password@host:5432/database';
export const redisExample = 'redis://user:password@host:6379/0';

const schemed = /^\s*([a-z][a-z0-9+.-]*:\/\/)(.*)$/is;

/**
 * Without password, secret parameters and fragment. Where an address can be read in two ways, more is left out rather than
 * less: a password that was not percent-encoded may hold any of `/?#@:`.
 */
export function redactAddress(address: string): string {
  const [, scheme, rest] = schemed.exec(address) ?? [];
  if (scheme === undefined || rest === undefined) return shownPath(address);
  const at = rest.lastIndexOf('@');
  if (at < 0 && hasOddPort(rest)) return `${scheme}…`;
  const [place = '', ...query] = rest
    .slice(at + 1)
    .replace(/#.*$/s, '')
    .split('?');
  const said = query
    .join('?')
    .split('&')
    .filter((each) => each !== '' && !isSecret(each));
  return `${scheme}${shownUser(scheme, rest.slice(0, Math.max(0, at)), at)}${place}${said.length === 0 ? '' : `?${said.join('&')}`}`;
}

/** Looks back from `://`: a search that begins with the scheme reads a long word once from each of its letters. */
const addressAfterScheme = /(?<=([a-z][a-z0-9+.-]*)):\/\/[^\s"'`<>]+/gi;

/** A text that people read, with every address in it as it may be shown. `typed` are addresses that it may repeat. */
export function redactSecrets(text: string, typed: readonly string[] = []): string {
  let shown = text;
  for (const address of typed) {
    if (!mayHoldSecret(address)) continue;
    const safe = redactAddress(address);
    if (safe === address) continue;
    shown = shown.replaceAll(address, safe).replaceAll(JSON.stringify(address).slice(1, -1), safe);
  }
  return shown.replace(addressAfterScheme, (found: string, scheme: string) => {
    const address = scheme + found;
    return mayHoldSecret(address) ? redactAddress(address).slice(scheme.length) : found;
  });
}

/** True where what follows `sqlite:` was meant for a server: it may begin with a user and a password. */
export function looksLikeServer(path: string): boolean {
  const bare = path.replace(/^[\\/]+/, '');
  const isDrive = /^[a-z]:([\\/]|$)/i.test(bare);
  return /^\/\/[^/]/.test(path) || bare.includes('://') || (!isDrive && /^[^\\/:]*:.*@/s.test(bare));
}

/** Refuses what two readers would take for two places. `example` shows how it is written. */
export function readAddress(url: string, example: string): URL {
  const read = URL.canParse(url) ? new URL(url) : undefined;
  if (read !== undefined && !isAmbiguous(read)) return read;
  // No cause: that of Node.js holds the URL.
  throw new SemelError('CONTRACT_INVALID', 'The URL of the store cannot be read.', {
    path: 'store',
    next: `Write '${example}', with special characters of user and password percent-encoded: / is %2F, @ is %40, # is %23.`,
  });
}

/** What leads to the same ledger again: some parameters are ours, and were taken out of the URL before it was used. */
export function fullAddress(
  url: string | undefined,
  ours: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (url === undefined) return undefined;
  const said = Object.entries(ours).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  if (said.length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${said.join('&')}`;
}

/** A path is its own name; whatever else has no `//` may be anything, and only its kind is shown. */
function shownPath(address: string): string {
  const [kind] = /^[a-z][a-z0-9+.-]*:/i.exec(address) ?? [];
  if (kind === 'sqlite:' && !looksLikeServer(address.slice(kind.length))) return address;
  return `${kind ?? ''}…`;
}

/** In Postgres the user is not a secret. In Redis it may be the password, in the wrong place. */
function shownUser(scheme: string, userInfo: string, at: number): string {
  if (at < 0) return '';
  return /^redis/i.test(scheme) ? '@' : `${/^[^/?#:@]*/.exec(userInfo)?.[0] ?? ''}@`;
}

/** `ada:secret` without a host reads as a host and its port. */
function hasOddPort(rest: string): boolean {
  const [, port] = /^(?:\[[^\]]*\]|[^/?#:]*):([^/?#]*)/.exec(rest) ?? [];
  return port !== undefined && !/^\d{0,5}(,[\w.-]+(:\d{1,5})?)*$/.test(port);
}

function isSecret(parameter: string): boolean {
  const [name = ''] = parameter.split('=');
  try {
    return /pass|pwd|secret|token|cred|^auth|(?<!ssl)key/i.test(decodeURIComponent(name));
  } catch {
    return true;
  }
}

function mayHoldSecret(text: string): boolean {
  if (/\bpassword\s*=/i.test(text)) return true;
  if (text.includes('@')) return text.includes(':');
  const rest = schemed.exec(text)?.[2] ?? '';
  return hasOddPort(rest) || rest.split(/[?&#]/).slice(1).some(isSecret);
}

/** An @ behind the host is the end of a password that holds a / or a ? or a #. */
function isAmbiguous({ username, password, pathname, search, hash }: URL): boolean {
  if (`${pathname}${search}${hash}`.includes('@') || hash !== '') return true;
  try {
    decodeURIComponent(username);
    decodeURIComponent(password);
    return false;
  } catch {
    return true;
  }
}
