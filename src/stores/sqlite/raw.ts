// The raw side of the SQLite store, for `semel store copy`: its transactions also run while the ledger is closed to users.

import type { RawBackend } from '../../store/local/local-raw.ts';
import type { Backend } from '../../store/local/local-store.ts';
import { stagedError } from '../../store/move/ledger-state.ts';
import { single } from './client.ts';
import { explain } from './failure.ts';
import { measureLedger } from './list.ts';
import { schemaVersion } from './schema.ts';
import type { Ledger } from './transaction/ledger.ts';

export function createRaw(ledger: Ledger, backend: Backend): RawBackend {
  const { path, time } = ledger;
  return {
    ...backend,
    open: () => ledger.open(),
    peek: (namespace, key) =>
      ledger.read(({ records }) => ({ row: records.get(namespace, key), time: time.now() })),
    where: ledger.where,
    async transact<T>(...[work]: Parameters<RawBackend['transact']>): Promise<T> {
      try {
        await ledger.open();
        return (await ledger.lockWait.whenUnlocked(() => copy(work))) as T;
      } catch (error) {
        throw explain(error, path);
      }
    },
    about: () =>
      ledger.read(({ connection, database, meta }) => ({
        ...measureLedger(database),
        lossAccepted: meta.lossAccepted(),
        address: `sqlite:${connection.path}`,
        schema: single(database, 'PRAGMA user_version') as number,
        known: schemaVersion,
        now: time.now().wall,
      })),
  };

  function copy(...[work]: Parameters<RawBackend['transact']>): unknown {
    ledger.lock();
    try {
      const transaction = ledger.begin('copy');
      const session = ledger.session();
      // The copy overwrites rows without reading them, so cached rows are stale.
      session.forget();
      const done = work(transaction, {
        read: () => ledger.description(session),
        set(standing) {
          if (standing.movedTo !== null && !session.outbox.isEmpty()) throw stagedError(ledger.where());
          session.meta.setStanding(standing);
        },
      });
      ledger.commit();
      return done;
    } catch (error) {
      ledger.undo(error);
      throw error;
    }
  }
}
