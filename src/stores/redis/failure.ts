// What an error from Redis or the connection means for the caller: retry later, ask a person, or one request is at fault.

import { type ErrorDetails, isSemelError, SemelError } from '../../core/errors.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { fillingError, movedError, notFillingError } from '../../store/move/ledger-state.ts';
import type { RemoteBackend } from '../../store/remote/backend.ts';

type Judgement = ReturnType<RemoteBackend['judge']>;

/** The first word of the server's error; undefined if the server did not answer. */
export function readReplyCode(error: unknown): string | undefined {
  const message = error instanceof Error ? error.message : '';
  // Some versions put other words before a script's own error.
  const code =
    /^(?:ERR (?=SEMEL)|ERR Error running script .*?@user_script: ?\d+: )?([A-Z][A-Z]+)(?: |$)/.exec(
      message,
    )?.[1];
  return code === 'ERR' && message.includes("user executing the script can't run") ? 'NOPERM' : code;
}

/** A key of the ledger holds a type that semel does not write. */
export function isWrongType(error: unknown): boolean {
  return readReplyCode(error) === 'WRONGTYPE';
}

export function hasForgotten(error: unknown): boolean {
  return readReplyCode(error) === 'SEMELFORGOT';
}

type Failure = readonly [
  code: 'STORE_UNAVAILABLE' | 'STORE_UNSAFE',
  happened: (where: string, cause: string) => string,
  details: ErrorDetails,
];

const busy = 'Nothing was run. Call again when it answers.';

const byCode: Readonly<Record<string, Failure>> = {
  SEMELFORGOT: [
    'STORE_UNSAFE',
    (where) =>
      `The ledger in Redis at ${where} has lost confirmed records: it was emptied, replaced, restored to an earlier state, or has evicted keys. It may no longer know what has landed.`,
    {
      next: 'Nothing was run. Restore it if you can; otherwise find out what may be missing, then run `semel store accept-loss`.',
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
    (where) => `The ledger in Redis at ${where} accepts writes only from newer versions of semel.`,
    { next: 'Upgrade semel in this program.' },
  ],
  READONLY: [
    'STORE_UNSAFE',
    (where, cause) => `Redis at ${where} does not accept writes (${cause}).`,
    { next: 'Nothing was run. Point semel at the primary.', retriable: true },
  ],
  NOREPLICAS: [
    'STORE_UNAVAILABLE',
    (where, cause) => `Redis at ${where} has too few replicas for a write (${cause}).`,
    { next: busy },
  ],
  LOADING: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} is still loading its data from disk.`,
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
    { next: 'Nothing was run. Find out which program runs it; SCRIPT KILL ends it.' },
  ],
  MISCONF: [
    'STORE_UNAVAILABLE',
    (where, cause) => `Redis at ${where} cannot write to its disk (${cause}).`,
    { next: "Nothing was run. Free space on the server's disk, or repair it." },
  ],
  OOM: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} has reached its memory limit.`,
    { next: 'Nothing was run. Raise `maxmemory`, or remove expired records with `semel prune`.' },
  ],
  NOAUTH: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} wants a password.`,
    { next: 'Nothing was run. Give user and password in the URL or the client.', retriable: false },
  ],
  WRONGPASS: [
    'STORE_UNAVAILABLE',
    (where) => `Redis at ${where} refused the user or password.`,
    { next: 'Nothing was run. Correct the user or password.', retriable: false },
  ],
  NOPERM: [
    'STORE_UNSAFE',
    (where, cause) => `The user of the connection may not use the ledger in Redis at ${where} (${cause}).`,
    { next: 'Nothing was run. Allow it the keys of the prefix, and @scripting @read @write @connection.' },
  ],
  WRONGTYPE: [
    'STORE_UNSAFE',
    (where, cause) =>
      `A key of the ledger in Redis at ${where} holds a type of value that semel does not write (${cause}).`,
    { next: 'Nothing was run. Find out what wrote it, and restore a backup.' },
  ],
  MOVED: [
    'STORE_UNSAFE',
    (where) => `Redis at ${where} is a cluster, and this client knows only one of its servers.`,
    { next: 'Nothing was run. Pass a cluster client: `new Redis.Cluster(…)` or `createCluster(…)`.' },
  ],
};

/** For messages that start with "The ledger …". */
export function describeLedger(where: string): string {
  return `in Redis at ${where}`;
}

function closedError(code: string | undefined, where: string, cause: string): SemelError | undefined {
  if (code === 'SEMELMOVED') return movedError(where, cause.replace(/^.*?SEMELMOVED ?/, ''));
  if (code === 'SEMELFILLING') return fillingError(where);
  return code === 'SEMELNOTFILLING' ? notFillingError(where) : undefined;
}

export function judge(error: unknown, where: string): Judgement {
  if (isSemelError(error)) return { error, concernsAll: !isRecordDamage(error) };
  const cause = error instanceof Error ? error.message || String(error) : String(error);
  const code = readReplyCode(error);
  const refused = closedError(code, describeLedger(where), cause);
  if (refused !== undefined) return { error: refused, concernsAll: true };
  const failure =
    code === undefined ? undefined : (byCode[code] ?? (code === 'ASK' ? byCode.MOVED : undefined));
  if (failure !== undefined) {
    const [kind, happened, details] = failure;
    const evidence = { store: where, cause };
    return {
      error: new SemelError(kind, happened(where, cause), { cause: error, evidence, ...details }),
      // WRONGTYPE may concern the events of just one record.
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
    error: new SemelError('STORE_UNAVAILABLE', `Redis at ${where} rejected a record (${cause}).`, {
      next: "Nothing was run. See Redis's message.",
      cause: error,
      retriable: false,
    }),
    concernsAll: false,
  };
}
