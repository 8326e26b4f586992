// Who may call: by which name of the server, from which web page, with which token, in which namespace.

import type { IncomingMessage } from 'node:http';
import { SemelError } from '../../core/errors.ts';
import { Refusal } from '../exchange/reply.ts';
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

/** Refuses host names that were rebound to this machine. */
export function refuseOtherHosts(
  { headers: { host = '' } }: IncomingMessage,
  names: readonly string[],
): void {
  if (!names.includes(host.toLowerCase()))
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
