// One call in a transaction that the caller's own function opens and commits, for patterns with a `transaction` option.

import { emptyReceipt, type Result } from '../call/index.ts';
import { isSemelError, SemelError, withReceipt } from '../core/errors.ts';
import type { CallOptions, ToolFunction } from './definition.ts';
import { engineOf } from './tool-internals.ts';

/** `(work) => db.transaction(work)`: commits when `work` resolves, rolls back when it rejects, and returns what it returned. */
export type CallerTransaction = <T>(work: (tx: unknown) => Promise<T>) => Promise<T>;

type Transactional = {
  readonly inTransaction?: { try(tx: unknown, args: unknown, options: CallOptions): Promise<Result> };
};

/**
 * What is thrown has rolled the transaction back, so that nothing landed. A commit that failed may have landed: `evidence.mayLand`;
 * the next call finds out.
 */
export async function callInTransaction<Args>(
  semel: object,
  tool: ToolFunction<Args, unknown>,
  transaction: CallerTransaction,
  args: Args,
  options: CallOptions,
): Promise<Result> {
  const { name } = tool.contract;
  const { inTransaction } = tool as ToolFunction<Args, unknown> & Transactional;
  if (inTransaction === undefined)
    refuse('This Semel instance has no transactions.', 'Pass what `createSemel()` returned.');
  /** The last of several, where the library tries the transaction again. */
  let last: { readonly result: Result } | { readonly thrown: unknown } | undefined;
  try {
    // Before the transaction: on SQLite it would hold the lock that a ledger needs to be set up.
    await engineOf(semel).open();
    const result: Result | undefined = await transaction(async (tx) => {
      try {
        last = undefined;
        const given = await inTransaction.try(tx, args, options);
        last = { result: given };
        return given;
      } catch (error) {
        last = { thrown: error };
        throw error;
      }
    });
    // Without the compiler, the promise is easily forgotten: the call would be answered before its commit.
    if (result === undefined)
      refuse(
        `${name}: \`transaction\` did not return what its work returned, so nobody knows whether it committed.`,
        'Write transaction: (work) => db.transaction(work).',
        { mayLand: true },
      );
    return result;
  } catch (error) {
    const receipt = emptyReceipt(name);
    if (isSemelError(error)) return { ok: false, error: withReceipt(error, receipt), receipt };
    // TypeScript does not see that the callback assigns it.
    const ended = last as { result?: Result; thrown?: unknown } | undefined;
    const refused =
      ended !== undefined && 'thrown' in ended
        ? new SemelError('NOT_LANDED', `${name}: its transaction was rolled back.`, { cause: error })
        : ended?.result?.receipt.executed === true
          ? new SemelError('STORE_UNAVAILABLE', `${name}: the transaction failed.`, {
              next: 'It may have committed: the next call finds out.',
              evidence: { mayLand: true },
              cause: error,
            })
          : new SemelError(
              'STORE_UNAVAILABLE',
              `${name}: the transaction failed before anything ran in it.`,
              {
                cause: error,
              },
            );
    return { ok: false, error: withReceipt(refused, receipt), receipt };
  }
}

function refuse(happened: string, next: string, evidence: { readonly mayLand?: true } = {}): never {
  throw new SemelError('CONTRACT_INVALID', happened, { path: 'transaction', next, evidence });
}
