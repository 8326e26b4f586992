// Who sends a request, for the evidence: in headers (percent-encoded, since a header is ASCII) or in a JSON body.

import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface Sender {
  readonly namespace: string;
  readonly intent: string;
  readonly fence: number | null;
  readonly attempt: number | null;
  readonly pid: number | null;
  readonly providerKey: string | null;
  readonly body: string;
}

export interface SaidOfItself {
  readonly namespace?: string;
  readonly intent: string;
  readonly fence?: number;
  readonly attempt?: number;
  readonly pid?: number;
}

/** The headers by which a client names what it is about. */
export function senderHeaders(said: SaidOfItself): Record<string, string> {
  return Object.fromEntries(
    Object.entries(said).map(([field, value]) => [`x-${field}`, encodeURIComponent(String(value))]),
  );
}

export function senderOf(headers: IncomingHttpHeaders, body: string): Sender {
  const inBody = jsonObject(body);
  const said = (field: string): string | undefined => {
    const header = headers[`x-${field}`];
    if (typeof header === 'string') return decode(header);
    return inBody[field] === undefined ? undefined : String(inBody[field]);
  };
  const number = (field: string) => (said(field) === undefined ? null : Number(said(field)));
  return {
    namespace: said('namespace') ?? '',
    intent: said('intent') ?? '',
    fence: number('fence'),
    attempt: number('attempt'),
    pid: number('pid'),
    providerKey: (headers['idempotency-key'] as string | undefined) ?? null,
    body: createHash('sha256').update(body).digest('hex').slice(0, 16),
  };
}

function jsonObject(body: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function decode(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return header;
  }
}
