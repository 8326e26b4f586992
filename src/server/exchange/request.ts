// What a request says: its path, its query and its body, within limits.

import type { IncomingMessage } from 'node:http';
import { limits } from '../../core/limits.ts';
import type { Reservation } from '../../core/reservations.ts';
import { isJsonInUtf8, isUncompressed, LimitExceeded, readBody } from '../../mcp/index.ts';
import { Refusal } from './reply.ts';

/** A whole address as the target, `GET http://host/path`: clients of proxies send it. */
const absolute = /^https?:\/\/([^/?#]*)/i;

export function authorityOf(url: string): string | undefined {
  return absolute.exec(url)?.[1];
}

export function pathOf({ url = '/' }: IncomingMessage): string {
  const path = url.startsWith('/') ? url : url.replace(absolute, '');
  const end = path.indexOf('?');
  return end < 0 ? path : path.slice(0, end);
}

export function queryOf({ url = '/' }: IncomingMessage): Record<string, string> {
  const at = url.indexOf('?');
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(at < 0 ? '' : url.slice(at))) {
    if (Object.hasOwn(query, name)) throw new Refusal(400, `\`${name.slice(0, 50)}\` appears twice.`);
    query[name] = value;
  }
  return { ...query };
}

export async function bodyOf(
  request: IncomingMessage,
  held: Reservation,
  maxBytes: number = limits.requestBytes,
): Promise<Buffer> {
  const { headers } = request;
  if (!isUncompressed(headers)) throw new Refusal(415, 'The body is compressed.', 'Send it uncompressed.');
  if (!isJsonInUtf8(headers))
    throw new Refusal(415, 'The body is not JSON.', 'Send it as application/json in UTF-8.');
  return readBody(request, held, maxBytes).catch((error: unknown) => {
    // The client hung up. As a failure of the server, it would keep real ones out of the operator's log.
    throw error instanceof LimitExceeded ? error : new Refusal(400, 'The body broke off.');
  });
}
