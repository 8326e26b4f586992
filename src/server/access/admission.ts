// Who may call: by which name of the server, from which web page, with which token, in which namespace.

import type { IncomingMessage } from 'node:http';
import { SemelError } from '../../core/errors.ts';
import { Refusal } from '../exchange/reply.ts';
import { authorityOf } from '../exchange/request.ts';
import type { TokenEntry, Tokens } from './tokens.ts';

export function authenticate({ headers }: IncomingMessage, tokens: Tokens): TokenEntry {
  const shown = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const found = tokens.find(shown);
  if (found !== undefined) return found;
  throw new Refusal(
    401,
    shown === undefined ? 'There is no token.' : 'The token is not valid.',
    shown === undefined
      ? 'Send the header `Authorization: Bearer <token>`.'
      : 'Use the token in the file that `semel serve` named when it started, or one that `semel serve token` made.',
  );
}

const namespaceHeader = 'semel-namespace';

export function chooseNamespace({ headers }: IncomingMessage, { namespace, name }: TokenEntry): string {
  const named = headers[namespaceHeader];
  if (namespace !== '*') {
    if (named === undefined || named === namespace) return namespace;
    throw new SemelError('NOT_PERMITTED', `The token ${name} is for another namespace.`, {
      next: 'Leave out the header Semel-Namespace, or use a token for that namespace.',
    });
  }
  const chosen = named ?? 'default';
  if (typeof chosen === 'string' && /^[!-~]{1,200}$/.test(chosen)) return chosen;
  throw new Refusal(400, 'Semel-Namespace is not a name.', 'Send 1 to 200 visible ASCII characters.');
}

/** Refuses host names that were rebound to this machine, in the header as in the request's own line. */
export function refuseOtherHosts(
  { url = '', headers: { host = '' } }: IncomingMessage,
  names: readonly string[],
): void {
  const named = authorityOf(url);
  if (!names.includes(host.toLowerCase()) || (named !== undefined && !names.includes(named.toLowerCase())))
    throw new Refusal(
      421,
      'This server has another name.',
      'Use the address that it printed, or --allow-host.',
    );
}

/** Refuses web pages of other origins. Another port of the same host is another program's. */
export function refuseStrangers({ headers }: IncomingMessage, origins: readonly string[]): void {
  const { host, origin, 'sec-fetch-site': site } = headers;
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  const isAsked = site === undefined || site === 'same-origin' || site === 'none';
  if ((!isOwn || !isAsked) && !origins.includes(origin ?? ''))
    throw new Refusal(403, 'Web pages of this origin may not call.', 'Allow it with --allow-origin.');
}

const none: Readonly<Record<string, string>> = {};

/** What lets web pages of the listed origins read an answer. Each is named by itself: `*` would be every page there is. */
export function crossOriginHeaders(
  { headers: { origin } }: IncomingMessage,
  origins: readonly string[],
): Readonly<Record<string, string>> {
  if (origins.length === 0) return none;
  const isListed = origin !== undefined && origins.includes(origin);
  return isListed ? { 'access-control-allow-origin': origin, vary: 'origin' } : { vary: 'origin' };
}

/** A browser asks whether a page may send what it is about to. It shows no token. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

export const preflightHeaders = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': `authorization, content-type, ${namespaceHeader}, traceparent`,
  'access-control-max-age': '600',
} as const;

/** As browsers write them in Origin: any other text would never match, and `*` must not. */
export function checkOrigins(origins: readonly string[]): void {
  for (const origin of origins)
    if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#*@A-Z]+$/.test(origin))
      throw new SemelError('INVALID_ARGS', `${JSON.stringify(origin)} is not an origin.`, {
        path: 'origins',
        next: 'Write it as browsers do: https://app.example.com, with the port if it has one, without a slash.',
      });
}

/** Only this machine can reach it. */
export function isLoopback(host: string): boolean {
  return /^(127(\.\d+){3}|localhost|::1)$/.test(host);
}

/** As browsers and clients write them in Host. */
export function hostNames(host: string, port: number, more: readonly string[]): readonly string[] {
  const own = host.includes(':') ? `[${host}]` : host;
  const names = [own, ...(isLoopback(host) ? ['localhost', '127.0.0.1', '[::1]'] : []), ...more].map((name) =>
    name.toLowerCase(),
  );
  return [...new Set(names.flatMap((name) => (/:\d+$/.test(name) ? [name] : [`${name}:${port}`, name])))];
}
