// What a SQLite error means for the caller: retry later, ask a person, or the job itself is at fault.

import { type ErrorDetails, SemelError } from '../../core/errors.ts';

type FailureKind =
  | 'in transaction'
  | 'busy'
  | 'full'
  | 'io'
  | 'memory'
  | 'cannot open'
  | 'read-only'
  | 'corrupt'
  | 'incomplete'
  | 'not a database'
  | 'closed';

/** SQLite's primary result codes: node:sqlite reports the number, better-sqlite3 the name, perhaps with a suffix. */
const kinds: readonly (readonly [code: number, name: string, kind: FailureKind])[] = [
  [5, 'SQLITE_BUSY', 'busy'],
  [6, 'SQLITE_LOCKED', 'busy'],
  [7, 'SQLITE_NOMEM', 'memory'],
  [8, 'SQLITE_READONLY', 'read-only'],
  [10, 'SQLITE_IOERR', 'io'],
  [11, 'SQLITE_CORRUPT', 'corrupt'],
  [13, 'SQLITE_FULL', 'full'],
  [14, 'SQLITE_CANTOPEN', 'cannot open'],
  [26, 'SQLITE_NOTADB', 'not a database'],
];

/** Uniqueness violations. Keys are looked up before an insert, so a duplicate means that the lookup missed one. */
const uniqueness: readonly number[] = [1555, 2067, 2579];

/** Damage that SQLite itself does not detect. */
class DamagedLedger extends Error {}

export function damagedLedger(problem: string): Error {
  return new DamagedLedger(problem);
}

/** Retrying cannot help: the process refuses every later call too. */
export function isPermanent(kind: FailureKind | undefined): boolean {
  return kind === 'corrupt' || kind === 'incomplete' || kind === 'not a database';
}

/** The user's handle has a transaction open. */
export class InTransaction extends Error {
  constructor() {
    super('the handle is inside a transaction of its owner');
  }
}

/** Undefined if the error does not come from the database. */
export function classifyFailure(error: unknown): FailureKind | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof InTransaction) return 'in transaction';
  if (error instanceof DamagedLedger) return 'corrupt';
  const { errcode, code } = error as { errcode?: unknown; code?: unknown };
  if (/no such (table|column|index)|has no column named/.test(error.message)) return 'incomplete';
  if (
    uniqueness.includes(errcode as number) ||
    /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE|ROWID)$/.test(`${code}`)
  )
    return 'corrupt';
  if (typeof errcode === 'number') return kinds.find(([primary]) => primary === (errcode & 0xff))?.[2];
  if (code === 'ERR_INVALID_STATE' || /connection is not open/.test(error.message)) return 'closed';
  return kinds.find(([, name]) => typeof code === 'string' && code.startsWith(name))?.[2];
}

/** The connection's state is unreliable after this failure: reopen it, with all checks. */
export function breaksConnection(kind: FailureKind): boolean {
  return kind !== 'busy' && kind !== 'in transaction' && kind !== 'full';
}

/** Turns a database error into a SemelError; returns other errors unchanged. */
export function explain(error: unknown, path: string): unknown {
  const kind = classifyFailure(error);
  if (kind === undefined) return error;
  const cause = (error as Error).message;
  const unavailable = (happened: string, next: string) =>
    storeError('STORE_UNAVAILABLE', happened, { next, cause: error, evidence: { path, cause } });
  const unsafe = (happened: string, next: string) =>
    storeError('STORE_UNSAFE', happened, { next, cause: error, evidence: { path, cause } });

  switch (kind) {
    case 'in transaction':
      return unsafe(
        `The handle for the ledger ${path} is inside a transaction: a rollback would erase the record of an effect that has happened, and the effect would be repeated.`,
        'Nothing was run. End the transaction before the call, or pass a handle that only semel uses. To commit an effect with your transaction, use `tool.inTransaction(tx, args)` or `tool.stage(tx, args)`.',
      );
    case 'busy':
      return unavailable(
        `The ledger ${path} is locked by another process, or by a transaction of this one (${cause}).`,
        'Nothing was run. Call again; if it keeps failing, look for a transaction that stays open on the file. Inside a transaction of your own, use `tool.inTransaction` or `tool.stage`.',
      );
    case 'full':
      return unavailable(
        `There is no space left for the ledger ${path} (${cause}).`,
        'Nothing was run and nothing is lost. Free space on its disk, then call again.',
      );
    case 'memory':
      return unavailable(`SQLite ran out of memory at the ledger ${path} (${cause}).`, 'Call again later.');
    case 'io':
      return unavailable(
        `Reading or writing the ledger ${path} failed (${cause}).`,
        'Check the disk and the kernel log, then call again: the ledger is checked and reopened.',
      );
    case 'closed':
      return unavailable(
        `The connection to the ledger ${path} is closed.`,
        'Do not close a handle that a store uses; open a new store.',
      );
    case 'cannot open':
      return unsafe(
        `The ledger ${path} cannot be opened (${cause}).`,
        "Make sure its folder exists and this user can write there, or choose another place with `store: 'sqlite:…'` or SEMEL_STORE.",
      );
    case 'read-only':
      return unsafe(
        `The ledger ${path} cannot be written (${cause}).`,
        "Let this user write the file and its folder, or choose another place with `store: 'sqlite:…'` or SEMEL_STORE.",
      );
    case 'corrupt':
      return unsafe(
        `The ledger ${path} is damaged (${cause}). Nothing was deleted.`,
        'Stop all programs that use it, keep a copy, and restore a backup (`semel store restore`) or run `sqlite3 <file> .recover`.',
      );
    case 'incomplete':
      return unsafe(
        `Tables of the ledger ${path}, or parts of them, are missing (${cause}). Nothing was deleted.`,
        'Stop all programs that use it, keep a copy, and restore a backup.',
      );
    case 'not a database':
      return unsafe(
        `${path} is not a SQLite database (${cause}). Nothing was deleted.`,
        "Move the file away if it is yours, or choose another place with `store: 'sqlite:…'` or SEMEL_STORE.",
      );
  }
}

export function storeError(
  code: 'STORE_UNAVAILABLE' | 'STORE_UNSAFE' | 'STORE_MOVED',
  happened: string,
  details: ErrorDetails,
): SemelError {
  return new SemelError(code, happened, details);
}
