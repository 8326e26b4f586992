// What an error of the database means for the caller: try later, ask a person, or it was the piece itself.

import { type ErrorDetails, SemelError } from '../../core/errors.ts';

export type FailureKind =
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

/** By SQLite's primary result codes. */
const kinds: Readonly<Record<number, FailureKind>> = {
  5: 'busy',
  6: 'busy',
  7: 'memory',
  8: 'read-only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'cannot open',
  26: 'not a database',
};

/** What a record is stored under is unique, and is looked for first: a second one means that the first was not found. */
const uniqueness: readonly number[] = [1555, 2067, 2579];

/** Found by reading, where SQLite itself sees nothing wrong. */
export class DamagedLedger extends Error {}

export function damagedLedger(problem: string): Error {
  return new DamagedLedger(problem);
}

/** No later call can cure it: a process that has heard of it runs nothing more. */
export function isForGood(kind: FailureKind | undefined): boolean {
  return kind === 'corrupt' || kind === 'incomplete' || kind === 'not a database';
}

/** better-sqlite3 names the codes; an extended name starts with the primary one. */
const names: readonly [string, FailureKind][] = [
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['SQLITE_NOMEM', 'memory'],
  ['SQLITE_READONLY', 'read-only'],
  ['SQLITE_IOERR', 'io'],
  ['SQLITE_CORRUPT', 'corrupt'],
  ['SQLITE_FULL', 'full'],
  ['SQLITE_CANTOPEN', 'cannot open'],
  ['SQLITE_NOTADB', 'not a database'],
];

/** The handle is the user's, and its owner has a transaction open. */
export class InTransaction extends Error {
  constructor() {
    super('the handle is inside a transaction of its owner');
  }
}

/** Undefined: not the database's failure, so it concerns what was asked of it. */
export function kindOf(error: unknown): FailureKind | undefined {
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
  if (typeof errcode === 'number') return kinds[errcode & 0xff];
  if (code === 'ERR_INVALID_STATE' || /connection is not open/.test(error.message)) return 'closed';
  return names.find(([name]) => typeof code === 'string' && code.startsWith(name))?.[1];
}

/** After these the connection's own state cannot be relied on: it is opened anew, with all checks. */
export function breaksConnection(kind: FailureKind): boolean {
  return kind !== 'busy' && kind !== 'in transaction' && kind !== 'full';
}

/** The same error in semel's words; what is not the database's failure stays as it is. */
export function explain(error: unknown, path: string): unknown {
  const kind = kindOf(error);
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
        'Nothing was run. End the transaction before the call, or pass a handle that only semel uses.',
      );
    case 'busy':
      return unavailable(
        `The ledger ${path} is locked by another process (${cause}).`,
        'Nothing was run. Call again; if it goes on, look for a program that keeps the file open in a transaction.',
      );
    case 'full':
      return unavailable(
        `There is no space left for the ledger ${path} (${cause}).`,
        'Nothing was run and nothing is lost. Make space on its disk, then call again.',
      );
    case 'memory':
      return unavailable(`SQLite ran out of memory at the ledger ${path} (${cause}).`, 'Call again later.');
    case 'io':
      return unavailable(
        `Reading or writing the ledger ${path} failed (${cause}).`,
        'Look at the disk and the kernel log, then call again: the ledger is checked and opened anew.',
      );
    case 'closed':
      return unavailable(
        `The connection to the ledger ${path} is closed.`,
        'Do not close a handle that a store uses; open a new store.',
      );
    case 'cannot open':
      return unsafe(
        `The ledger ${path} cannot be opened (${cause}).`,
        "See that its folder exists and that this user may write there, or name another place by `store: 'sqlite:…'` or SEMEL_STORE.",
      );
    case 'read-only':
      return unsafe(
        `The ledger ${path} cannot be written (${cause}).`,
        "Let this user write the file and its folder, or name another place by `store: 'sqlite:…'` or SEMEL_STORE.",
      );
    case 'corrupt':
      return unsafe(
        `The ledger ${path} is damaged (${cause}). Nothing was deleted.`,
        'Stop all programs that use it, keep a copy, and restore a backup (`semel store restore`) or run `sqlite3 <file> .recover`.',
      );
    case 'incomplete':
      return unsafe(
        `The ledger ${path} has lost tables or parts of them (${cause}). Nothing was deleted.`,
        'Stop all programs that use it, keep a copy, and restore a backup.',
      );
    case 'not a database':
      return unsafe(
        `${path} is not a SQLite database (${cause}). Nothing was deleted.`,
        "Move the file away if it is yours, or name another place by `store: 'sqlite:…'` or SEMEL_STORE.",
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
