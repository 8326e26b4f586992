// A response as it is recorded, and what of it is replayed: status, body, and the headers on a list. Never a cookie, which belongs to
// one session, nor what belongs to one connection.

import type { Answer } from '../problem.ts';
import { refuse } from '../receiver.ts';

/** What the handler answered, read to its end. */
export interface Captured {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  /** Undefined: larger than may be kept. */
  readonly body: Uint8Array | undefined;
}

interface Stored {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: string;
  readonly encoding?: 'utf8' | 'base64';
}

const usualHeaders = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'etag',
  'last-modified',
  'link',
  'location',
  'vary',
] as const;

const neverReplayed: ReadonlySet<string> = new Set([
  'set-cookie',
  'set-cookie2',
  'connection',
  'content-length',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'www-authenticate',
]);

/** The names on the list, in lower case. */
export function listReplayed(name: string, more: readonly string[] = []): ReadonlySet<string> {
  const names = more.map((each) => String(each).toLowerCase());
  for (const each of names) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(each))
      refuse(
        'headers',
        `${name}: ${JSON.stringify(each)} is not the name of a header.`,
        'Correct `headers`.',
      );
    if (neverReplayed.has(each))
      refuse(
        'headers',
        `${name}: ${each} belongs to one session or one connection, and is never replayed.`,
        'Remove it from `headers`.',
      );
  }
  return new Set([...usualHeaders, ...names]);
}

export function toStored({ status, headers, body }: Captured, replayed: ReadonlySet<string>): Stored {
  const kept = headers
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => replayed.has(name));
  if (body === undefined) return { status, headers: kept };
  const text = readText(body);
  return text === undefined
    ? { status, headers: kept, body: Buffer.from(body).toString('base64'), encoding: 'base64' }
    : { status, headers: kept, body: text, encoding: 'utf8' };
}

function readText(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

/**
 * Undefined if the response was not stored. Validated as untrusted input: a ledger can be imported, and the list may
 * have been longer when it was recorded.
 */
export function toReplay(stored: unknown, replayed: ReadonlySet<string>): Answer | undefined {
  const { status, headers, body, encoding } = (stored ?? {}) as Partial<Stored>;
  if (!Number.isInteger(status) || (status as number) < 200 || (status as number) > 599) return undefined;
  if (typeof body !== 'string' || !Array.isArray(headers)) return undefined;
  return {
    status: status as number,
    headers: [
      ...headers.filter(
        (pair) => Array.isArray(pair) && replayed.has(pair[0] as string) && isHeaderValue(pair[1]),
      ),
      ['idempotent-replayed', 'true'],
    ],
    body: Buffer.from(body, encoding === 'base64' ? 'base64' : 'utf8'),
  };
}

function isHeaderValue(value: unknown): boolean {
  return typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
