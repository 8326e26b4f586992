// The ledger inside its caller's transaction: the rules decide as for the store itself, through the caller's connection, and
// commit or roll back with the caller's data.

import { isSemelError, SemelError } from '../../../core/errors.ts';
import { view } from '../../../rules/state.ts';
import { type Backend, localStore, type Transaction } from '../../../store/local/local-store.ts';
import {
  endedError,
  type InTransaction,
  type Transactions,
  unavailable,
} from '../../../store/transaction.ts';
import { isInTransaction } from '../client.ts';
import { explain } from '../failure.ts';
import { enterTransaction, refuseAttached, refuseEnded } from './caller.ts';
import type { Ledger } from './ledger.ts';
import type { Session } from './session.ts';

export function sqliteTransactions(ledger: Ledger): Transactions {
  return {
    within: (tx, work) =>
      inSavepoint(tx, async (session) => {
        const bound = bindStore(session);
        try {
          const result = await work({ ...bound, tx });
          bound.check();
          return result;
        } catch (error) {
          // The statement that failed says more than what the call made of it.
          bound.check();
          throw error;
        } finally {
          bound.end();
        }
      }),
    stage: (tx, intent, mayStage) =>
      inSavepoint(tx, async (session) =>
        step(session, ({ get, time }) => {
          const { namespace, key, olderKeys } = intent;
          const rows = [key, ...olderKeys].flatMap((each) => get(namespace, each) ?? []);
          if (rows.length > 0 && !mayStage(rows.map((row) => view(row, time)))) return undefined;
          const n = session.outbox.add(intent, time.wall);
          if (n !== undefined) return { n };
          const existing = session.outbox.find(namespace, key);
          if (existing !== undefined) return { existing };
          throw new SemelError('STORE_UNSAFE', `The outbox of ${ledger.where()} is damaged.`, {
            next: 'Nothing was staged. Run `semel store check`.',
          });
        }),
      ),
    unstage: (tx, n) =>
      inSavepoint(tx, async (session) => step(session, () => void session.outbox.remove(n))),
    noteDrift: (tx, n, fields) =>
      inSavepoint(tx, async (session) => step(session, () => session.outbox.noteDrift(n, fields))),
  };

  /** Undoes what `work` wrote if it rejects. */
  async function inSavepoint<T>(tx: unknown, work: (session: Session) => Promise<T>): Promise<T> {
    await ledger.open();
    ledger.admit();
    const session = await enterTransaction(ledger, tx).catch((error) => {
      throw explain(error, ledger.where());
    });
    const { database } = session;
    database.exec(`SAVEPOINT semel_call; SAVEPOINT ${probe}`);
    try {
      const result = await work(session);
      refuseEnded(database);
      refuseAttached(database);
      database.exec('RELEASE semel_call');
      return result;
    } catch (error) {
      if (isInTransaction(database)) undo(session);
      throw error;
    }
  }

  function undo({ database }: Session): void {
    try {
      database.exec('ROLLBACK TO semel_call; RELEASE semel_call');
    } catch {
      // `run` has ended the transaction and begun another one: the savepoint is gone.
    }
  }

  /** One step of the rules. The steps of a transaction count as one write: they are in the log as one. */
  function step<T>(session: Session, work: (transaction: Transaction) => T): T {
    refuseEnded(session.database);
    const answer = work(ledger.beginWithin(session));
    session.countWrite(ledger.read(({ meta }) => meta.read()?.writes ?? 0));
    return answer;
  }

  interface BoundStore extends Pick<InTransaction, 'store' | 'isSame' | 'end'> {
    /** Throws the first error of semel's own statements. */
    check(): void;
  }

  function bindStore(session: Session): BoundStore {
    let failure: unknown;
    let isOver = false;

    function attempt<T>(work: () => T): T {
      if (isOver || failure !== undefined) throw endedError(failure);
      try {
        return work();
      } catch (error) {
        failure = explain(error, ledger.where());
        throw isSemelError(failure) ? failure : endedError(failure);
      }
    }

    const backend: Backend = {
      open: async () => ({
        kind: 'sqlite',
        location: ledger.where(),
        address: undefined,
        forgets: undefined,
        clockProblem: ledger.time.problem(),
      }),
      transact: (_urgency, rule) => async (request) =>
        attempt(() => step(session, (transaction) => rule(transaction, request))),
      peek: (namespace, key, how) =>
        attempt(() => {
          session.afterRollback();
          return { row: session.records.get(namespace, key, how), time: ledger.time.now() };
        }),
      list: unavailable,
      history: unavailable,
      namespaces: unavailable,
      close: async () => undefined,
    };
    return {
      store: localStore(backend),
      check() {
        if (failure !== undefined) throw failure;
      },
      isSame: async () => isSame(session),
      /** From now on nothing is written: the effect has failed, or the call is over. */
      end() {
        isOver = true;
      },
    };
  }
}

/** Inside the savepoint of a call: it is gone once `run` has ended the transaction, even if it has begun another one. */
const probe = 'semel_probe';

function isSame({ database }: Session): boolean {
  // Refused with the next statement.
  if (!isInTransaction(database)) return true;
  try {
    database.exec(`RELEASE ${probe}; SAVEPOINT ${probe}`);
    return true;
  } catch {
    return false;
  }
}
