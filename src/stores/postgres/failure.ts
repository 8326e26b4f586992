// What an error from Postgres or the connection means for the caller: retry later, ask a person, or one request is at fault.

import { type ErrorDetails, isSemelError, SemelError } from '../../core/errors.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { fillingError, movedError, notFillingError, stagedError } from '../../store/move/ledger-state.ts';
import type { RemoteBackend } from '../../store/remote/backend.ts';

type Judgement = ReturnType<RemoteBackend['judge']>;

/** Classes or codes of SQLSTATE. */
const unreachable = /^(08|57P0|57014|53|58|XX|25P0[34]|72)/;
const refusedLogin = /^(28|3D000)/;
const lost = /^(3F000|42P01|42P10|42883|42703|42725)/;
const conflict = /^(40001|40P01)/;

/** COMMIT was refused inside the user's transaction, or that transaction has already failed. */
const insideTransaction = /^(2D000|25P02)/;

export const isolationNext: string =
  "Set default_transaction_isolation to 'read committed' for this user, database or connection.";

export function readSqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Another transaction interfered: a retry will probably succeed. */
export function isConflict(error: unknown): boolean {
  return conflict.test(readSqlState(error) ?? '');
}

/** An invalid value: malformed JSON, a number out of range. */
export function isDataError(error: unknown): boolean {
  return readSqlState(error)?.startsWith('22') === true;
}

/** Another transaction kept a row of the batch locked for too long. */
export function isLockTimeout(error: unknown): boolean {
  return readSqlState(error) === '55P03';
}

export function judge(error: unknown, where: string): Judgement {
  if (isSemelError(error)) return { error, concernsAll: !isRecordDamage(error) };
  const state = readSqlState(error);
  const cause = error instanceof Error ? error.message || String(error) : String(error);
  const storeFailure = (
    code: 'STORE_UNAVAILABLE' | 'STORE_UNSAFE',
    happened: string,
    details: ErrorDetails = {},
  ): Judgement => ({
    error: new SemelError(code, happened, { cause: error, evidence: { store: where, cause }, ...details }),
    concernsAll: true,
  });

  if (state === 'SM002')
    return {
      error: movedError(where, (error as { detail?: string }).detail ?? 'another store'),
      concernsAll: true,
    };
  if (state === 'SM006') return { error: fillingError(where), concernsAll: true };
  if (state === 'SM005') return { error: notFillingError(where), concernsAll: true };
  if (state === 'SM010') return { error: stagedError(where), concernsAll: true };
  if (state === 'SM009')
    return storeFailure('STORE_UNSAFE', `The description of the ledger at ${where} is damaged.`, {
      next: 'Nothing was run. Restore its table `meta` from a backup.',
    });
  if (state === 'SM003')
    return storeFailure(
      'STORE_UNSAFE',
      `The ledger at ${where} accepts writes only from newer versions of semel.`,
      {
        next: 'Upgrade semel in this program.',
      },
    );
  if (state === 'SM004')
    return storeFailure(
      'STORE_UNSAFE',
      `The connection to ${where} is not at isolation level read committed.`,
      {
        next: isolationNext,
      },
    );
  if (insideTransaction.test(state ?? ''))
    return { error: insideTransactionError(where, error), concernsAll: true };
  // Thrown by `pg` itself: the server wants a password and there is none.
  if (state === undefined && /^SASL: .*password must be/.test(cause))
    return storeFailure('STORE_UNAVAILABLE', `Postgres at ${where} wants a password (${cause}).`, {
      next: 'Nothing was run. Give one in the URL, the client, PGPASSWORD or ~/.pgpass.',
      retriable: false,
    });
  if (state === undefined || unreachable.test(state))
    return storeFailure('STORE_UNAVAILABLE', `Postgres at ${where} does not answer (${cause}).`, {
      next: 'Nothing was run. Call again when the database answers.',
    });
  if (state === '25006')
    return storeFailure('STORE_UNSAFE', `Postgres at ${where} does not accept writes (${cause}).`, {
      next: 'Point semel at the primary.',
    });
  if (refusedLogin.test(state))
    return storeFailure('STORE_UNAVAILABLE', `Postgres at ${where} refused the connection (${cause}).`, {
      next: 'Nothing was run. Correct the user, password or database name.',
      retriable: false,
    });
  if (lost.test(state))
    return storeFailure(
      'STORE_UNSAFE',
      `The tables of the ledger at ${where} are missing or changed (${cause}).`,
      {
        next: 'Restore them from a backup, or run `semel store migrate` if the ledger is new.',
      },
    );
  if (state === '42501')
    return storeFailure(
      'STORE_UNSAFE',
      `The user of the connection may not use the ledger at ${where} (${cause}).`,
      {
        next: 'Grant it usage of the schema and all of its tables and functions, or let it create the schema.',
      },
    );
  if (isConflict(error) || isLockTimeout(error) || state === 'SM008')
    return {
      error: new SemelError(
        'STORE_UNAVAILABLE',
        `A record at ${where} is held by another transaction (${cause}).`,
        {
          next: 'Nothing was run. Call again; if it keeps failing, look for a transaction that stays open.',
          cause: error,
        },
      ),
      concernsAll: false,
      isLocked: isLockTimeout(error),
    };
  return {
    error: new SemelError('STORE_UNAVAILABLE', `Postgres at ${where} rejected a record (${cause}).`, {
      next: "Nothing was run. See the database's message.",
      cause: error,
      retriable: false,
    }),
    concernsAll: false,
  };
}

/** The user's client may be inside a transaction on purpose, or because a connection leaked one. */
export function insideTransactionError(where: string, cause?: unknown): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The client for ${where} is inside a transaction: a rollback would erase the record of an effect that has happened, and the effect would be repeated.`,
    {
      next: 'Nothing was run. Pass a pool, or a client that only semel uses, as the store; to let an effect commit with your transaction, `tool.inTransaction(tx, args)`.',
      ...(cause === undefined ? {} : { cause }),
    },
  );
}
