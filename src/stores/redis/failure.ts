// What an error of Redis or of the way to it means for the caller: try later, ask a person, or it was the piece.

import { type ErrorDetails, isSemelError, SemelError } from '../../core/errors.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { fillingError, movedError, notFillingError } from '../../store/move/ledger-state.ts';

export interface Judgement {
  readonly error: unknown;
  /** It says nothing of a single piece: there is no use in asking for them one by one. */
  readonly concernsAll: boolean;
}

/** The first word of an error that the server answered with; undefined: the server did not answer. */
export function replyCodeOf(error: unknown): string | undefined {
  const message = error instanceof Error ? error.message : '';
  // What a script answers has other words before it, in some versions.
  const code =
    /^(?:ERR (?=SEMEL)|ERR Error running script .*?@user_script: ?\d+: )?([A-Z][A-Z]+)(?: |$)/.exec(
      message,
    )?.[1];
  return code === 'ERR' && message.includes("user executing the script can't run") ? 'NOPERM' : code;
}

/** Something else than semel writes lies under a key of the ledger. */
export function isWrongType(error: unknown): boolean {
  return replyCodeOf(error) === 'WRONGTYPE';
}

export function hasForgotten(error: unknown): boolean {
  return replyCodeOf(error) === 'SEMELFORGOT';
}

type Told = readonly [
  code: 'STORE_UNAVAILABLE' | 'STORE_UNSAFE',
  happened: (where: string, cause: string) => string,
  details: ErrorDetails,
];

const busy = 'Nothing was run. Call again when it answers.';

const byCode: Readonly<Record<string, Told>> = {
  SEMELFORGOT: [
    'STORE_UNSAFE',
    (where) =>
      `The ledger in Redis at ${where} has forgotten something that it had confirmed: it was emptied, replaced, put back to an earlier state, or has evicted keys. What landed since may not be known any more.`,
    {
      next: 'Nothing was run. Restore it if you can; else look what may be missing, and run `semel store accept-loss`.',
    },
  ],
  SEMELQUEUED: [
    'STORE_UNSAFE',
    (where) =>
      `The client for Redis at ${where} is inside MULTI: a claim would be written only at EXEC, after its effect has run.`,
    { next: 'Nothing was run. End the transaction first, or pass a client that only semel uses.' },
  ],
  SEMELOLD: [
    'STORE_UNSAFE',
    (where) => `The ledger in Redis at ${where} is written by newer versions of semel only.`,
    { next: 'Update semel in this program.' },
  ],
  READONLY: [
    'STORE_UNSAFE',
    (where, cause) => `Redis at ${where} takes no writes (${cause}).`,
    { next: 'Nothing was run. Point semel at the primary.', retriable: true },
  ],
  NOREPLICAS: [
    'STORE_UNAVAILABLE',
    (where, cause) => `Redis at ${where} has too few replicas for a write (${cause}).`,
    { next: busy },
  ],
  LOADING: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} is still reading its data from disk.`,
    { next: busy },
  ],
  MASTERDOWN: ['STORE_UNAVAILABLE', (where) => `Redis at ${where} has lost its primary.`, { next: busy }],
  CLUSTERDOWN: [
    'STORE_UNAVAILABLE',
    (where, cause) => `The Redis cluster at ${where} is down (${cause}).`,
    { next: busy },
  ],
  TRYAGAIN: ['STORE_UNAVAILABLE', (where) => `Redis at ${where} is moving these keys.`, { next: busy }],
  BUSY: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} is busy with a script that does not end.`,
    { next: 'Nothing was run. Look for who runs it; SCRIPT KILL ends it.' },
  ],
  MISCONF: [
    'STORE_UNAVAILABLE',
    (where, cause) => `Redis at ${where} cannot write to its disk (${cause}).`,
    { next: 'Nothing was run. Make room on the disk of the server, or repair it.' },
  ],
  OOM: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} has reached its limit of memory.`,
    { next: 'Nothing was run. Raise `maxmemory`, or let `semel prune` take what has expired.' },
  ],
  NOAUTH: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} wants a password.`,
    { next: 'Nothing was run. Give user and password in the URL or the client.', retriable: false },
  ],
  WRONGPASS: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} refused user or password.`,
    { next: 'Nothing was run. Correct user or password.', retriable: false },
  ],
  NOPERM: [
    'STORE_UNSAFE',
    (where, cause) => `The user of the connection may not use the ledger in Redis at ${where} (${cause}).`,
    { next: 'Nothing was run. Allow it the keys of the prefix, and @scripting @read @write @connection.' },
  ],
  WRONGTYPE: [
    'STORE_UNSAFE',
    (where, cause) =>
      `A key of the ledger in Redis at ${where} holds another type of value than semel writes (${cause}).`,
    { next: 'Nothing was run. Find out who has written it, and restore a backup.' },
  ],
  MOVED: [
    'STORE_UNSAFE',
    (where) => `Redis at ${where} is a cluster, and this client knows only one of its servers.`,
    { next: 'Nothing was run. Pass a cluster client: `new Redis.Cluster(…)` or `createCluster(…)`.' },
  ],
};

/** How its standing tells of it: "the ledger …". */
export function ledgerAt(where: string): string {
  return `in Redis at ${where}`;
}

function closedBy(code: string | undefined, where: string, cause: string): SemelError | undefined {
  if (code === 'SEMELMOVED') return movedError(where, cause.replace(/^.*?SEMELMOVED ?/, ''));
  if (code === 'SEMELFILLING') return fillingError(where);
  return code === 'SEMELNOTFILLING' ? notFillingError(where) : undefined;
}

export function judge(error: unknown, where: string): Judgement {
  if (isSemelError(error)) return { error, concernsAll: !isRecordDamage(error) };
  const cause = error instanceof Error ? error.message || String(error) : String(error);
  const code = replyCodeOf(error);
  const refused = closedBy(code, ledgerAt(where), cause);
  if (refused !== undefined) return { error: refused, concernsAll: true };
  const told = code === undefined ? undefined : (byCode[code] ?? (code === 'ASK' ? byCode.MOVED : undefined));
  if (told !== undefined) {
    const [kind, happened, details] = told;
    const evidence = { store: where, cause };
    return {
      error: new SemelError(kind, happened(where, cause), { cause: error, evidence, ...details }),
      // It may be the history of one record.
      concernsAll: code !== 'WRONGTYPE',
    };
  }
  if (code === undefined) {
    const next = /client is closed/i.test(cause)
      ? 'Nothing was run. Call `await client.connect()` first, or again.'
      : 'Nothing was run. Call again when Redis answers.';
    return {
      error: new SemelError('STORE_UNAVAILABLE', `Redis at ${where} does not answer (${cause}).`, {
        next,
        cause: error,
        evidence: { store: where, cause },
      }),
      concernsAll: true,
    };
  }
  return {
    error: new SemelError('STORE_UNAVAILABLE', `Redis at ${where} did not take a record (${cause}).`, {
      next: 'Nothing was run. Look at the message of Redis.',
      cause: error,
      retriable: false,
    }),
    concernsAll: false,
  };
}
