// What a store offers to a caller who has a transaction open on the ledger's own database: the same records under the same
// rules, which commit or roll back with the caller's data.

import { SemelError } from '../core/errors.ts';
import type { Intent, OutboxRow } from './outbox.ts';
import type { Store, StoredRecord } from './store.ts';

export interface Transactions {
  /**
   * Runs `work` in a savepoint of the caller's transaction: if it rejects, nothing that was written since stays. Refuses what
   * is not an open transaction on the ledger's own database.
   */
  within<T>(tx: unknown, work: (inside: InTransaction) => Promise<T>): Promise<T>;
  /**
   * Adds an intent to the outbox, in the caller's transaction. If its key has records, asks `mayStage` first; false: nothing is
   * staged. An intent that is staged already is returned instead.
   */
  stage(
    tx: unknown,
    intent: Intent,
    mayStage: (records: readonly StoredRecord[]) => boolean,
  ): Promise<{ readonly n: number } | { readonly existing: OutboxRow } | undefined>;
  /** Removes a row, in the caller's transaction. */
  unstage(tx: unknown, n: number): Promise<void>;
  noteDrift(tx: unknown, n: number, fields: readonly string[]): Promise<void>;
}

export interface InTransaction {
  /** The ledger through the transaction: nothing of it is durable, or seen by others, before the caller commits. */
  readonly store: Store;
  /** The handle for the effect: the caller's own, or the driver's for the savepoint. */
  readonly tx: unknown;
  /** False: the effect has ended the transaction with a COMMIT or ROLLBACK, so nobody knows what was kept. */
  isSame(): Promise<boolean>;
  /** Sends nothing more: the effect has failed, and all that was written is undone. */
  end(): void;
}

export function endedError(cause: unknown): SemelError {
  return new SemelError('STORE_UNAVAILABLE', 'The transaction has failed, or the call in it is over.', {
    next: 'Nothing was run. Roll the transaction back.',
    retriable: false,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** What a store inside a transaction does not offer. */
export function unavailable(): never {
  throw new SemelError('STORE_UNAVAILABLE', 'A transaction serves only the call that it was opened for.', {
    retriable: false,
  });
}
