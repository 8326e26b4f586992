// What an executor gets with a claim, and shows with each report. Opaque to it. It holds all that a server needs, so that any
// server on the same store can take the report. It is signed, because a late report is believed without a claim: a forged ticket could
// settle other callers' calls and read their results.

import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Ticket } from '../../call/index.ts';
import { SemelError } from '../../core/errors.ts';
import type { JobTool } from '../../jobs/library/index.ts';
import type { FilePolicy } from '../../mcp/index.ts';
import { createSemel, nobody, overrideStore, rootsNamespace, runAs } from '../../semel/index.ts';
import type { Store } from '../../store/store.ts';

export interface OpenTicket {
  readonly tool: string;
  /** The contract of a tool that the client defines itself. */
  readonly policy: FilePolicy | undefined;
  /** How to make the tool again, if it is a job's. */
  readonly job?: JobTool | undefined;
  /** Undefined where nothing is claimed: a read. */
  readonly ticket: Ticket | undefined;
}

/** The tickets of one namespace. */
export interface Tickets {
  write(open: OpenTicket): Promise<string>;
  /** Throws INVALID_ARGS unless a server on this store wrote it for this namespace. */
  read(text: string): Promise<OpenTicket>;
}

const format = 2;

export function createTickets(namespace: string, signingKey: () => Promise<KeyObject>): Tickets {
  const sign = async (bytes: Buffer) =>
    createHmac('sha256', await signingKey())
      .update(`semel/ticket/${Buffer.byteLength(namespace)}/${namespace}/`)
      .update(bytes)
      .digest();
  return {
    async write(open) {
      const bytes = Buffer.from(toText(open));
      return Buffer.concat([await sign(bytes), bytes]).toString('base64url');
    },
    async read(text) {
      const whole = Buffer.from(text, 'base64url');
      const bytes = whole.subarray(signatureBytes);
      const isOurs =
        whole.length > signatureBytes &&
        timingSafeEqual(whole.subarray(0, signatureBytes), await sign(bytes));
      if (!isOurs) throw notOurs();
      return fromText(bytes.toString());
    },
  };
}

const signatureBytes = 32;

/** Kept in the ledger, so that all servers on it have the same. Made by the first one. */
export function createSigningKey(store: Store): () => Promise<KeyObject> {
  let made: Promise<KeyObject> | undefined;
  return async () => {
    // As an object: Node.js prepares bytes anew for each signature, which takes six times as long.
    made ??= readSigningKey(store)
      .then(createSecretKey)
      .catch((error) => {
        // The next request asks again.
        made = undefined;
        throw error;
      });
    return made;
  };
}

async function readSigningKey(store: Store): Promise<Buffer> {
  const semel = createSemel({
    store: overrideStore(store, { close: async () => undefined }),
    namespace: rootsNamespace('serve'),
    mode: 'enforce',
    cache: false,
    prune: false,
    // A server that died while creating one has not given it to anybody.
    onDoubt: 'rerun',
    onWarning: () => undefined,
  });
  const options = { window: '5000w', lease: '10s', ifBusy: 'wait', share: true } as const;
  try {
    const text = await runAs(nobody, () =>
      semel.once('semel.ticket-key', '1', options, () => randomBytes(32).toString('base64url')),
    );
    return Buffer.from(text, 'base64url');
  } finally {
    await semel.close({ grace: 0 });
  }
}

function toText({ tool, policy, job, ticket }: OpenTicket): string {
  const claimed = ticket && [
    ticket.key,
    ticket.token,
    ticket.fence,
    ticket.generation,
    ticket.keyed,
    ticket.start.wall,
    ticket.isPlain,
    ticket.start.mono,
    ticket.start.boot,
  ];
  return JSON.stringify([format, tool, policy ?? null, claimed ?? null, ...(job === undefined ? [] : [job])]);
}

function fromText(text: string): OpenTicket {
  const [version, tool, policy, claimed, job] = JSON.parse(text) as [
    number,
    string,
    FilePolicy | null,
    Claimed | null,
    JobTool?,
  ];
  // Signed by another version of semel.
  if (version !== format) throw notOurs();
  const ticket = claimed === null ? undefined : toTicket(claimed);
  return { tool, policy: policy ?? undefined, job, ticket };
}

type Claimed = [string, string, number, number, boolean, number, boolean, number, string];

function toTicket([key, token, fence, generation, keyed, wall, isPlain, mono, boot]: Claimed): Ticket {
  return { key, token, fence, generation, keyed, isPlain, start: { mono, boot, wall } };
}

function notOurs(): SemelError {
  return new SemelError('INVALID_ARGS', '`attempt` is not an attempt of this ledger and namespace.', {
    path: 'attempt',
    next: 'Send the `attempt` of the answer to /v1/begin, unchanged.',
  });
}
