// What an executor gets with a claim, and shows with each report. Opaque to it. It holds all that a server needs, so that any
// server on the same store can take the report.

import type { Ticket } from '../call/index.ts';
import { SemelError } from '../core/errors.ts';
import type { FilePolicy } from '../mcp/index.ts';

export interface OpenTicket {
  readonly tool: string;
  /** Of a tool that the client defines itself. */
  readonly policy: FilePolicy | undefined;
  /** Undefined where nothing is claimed: a read. */
  readonly ticket: Ticket | undefined;
}

const format = 1;

export function writeTicket({ tool, policy, ticket }: OpenTicket): string {
  const claimed = ticket && [
    ticket.key,
    ticket.token,
    ticket.fence,
    ticket.generation,
    ticket.keyed,
    ticket.startedAt,
  ];
  return Buffer.from(JSON.stringify([format, tool, policy ?? null, claimed ?? null])).toString('base64url');
}

/** A client may send anything: its claim counts only if the record has the same token. */
export function readTicket(text: string): OpenTicket {
  try {
    const [version, tool, policy, claimed] = JSON.parse(
      Buffer.from(text, 'base64url').toString(),
    ) as unknown[];
    if (version !== format || typeof tool !== 'string') throw new Error('not a ticket');
    return { tool, policy: (policy as FilePolicy | null) ?? undefined, ticket: readClaimed(claimed) };
  } catch (cause) {
    throw new SemelError('INVALID_ARGS', '`attempt` is not an attempt.', {
      path: 'attempt',
      next: 'Send the `attempt` of the answer to /v1/begin, unchanged.',
      cause,
    });
  }
}

function readClaimed(claimed: unknown): Ticket | undefined {
  if (claimed === null) return undefined;
  const [key, token, fence, generation, keyed, startedAt] = claimed as unknown[];
  const isWhole =
    typeof key === 'string' &&
    key !== '' &&
    typeof token === 'string' &&
    token !== '' &&
    [fence, generation].every((number) => Number.isSafeInteger(number) && (number as number) > 0) &&
    typeof keyed === 'boolean' &&
    Number.isSafeInteger(startedAt);
  if (!isWhole) throw new Error('not a claim');
  return { key, token, fence, generation, keyed, startedAt } as Ticket;
}
