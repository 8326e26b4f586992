// The embedded store: one SQLite file, many processes. Transactions are short and shared (group commit), the driver never
// blocks on a lock, and callers get their answer only after the commit is on disk.

import { resolve } from 'node:path';
import type { Clock, Random } from '../../core/clock.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { localRaw } from '../../store/local/local-raw.ts';
import { type Backend, localStore, nextTurn } from '../../store/local/local-store.ts';
import type { Store } from '../../store/store.ts';
import { type Backup, backupLedger } from './backup.ts';
import type { SqliteLike } from './client.ts';
import { classifyFailure, explain } from './failure.ts';
import type { Machine } from './machine.ts';
import { sqliteOutbox } from './outbox.ts';
import { createRaw } from './raw.ts';
import { sqliteRecent } from './recent.ts';
import { planMigration } from './schema.ts';
import { createGroupCommit } from './transaction/group-commit.ts';
import { closedError, createLedger, type Ledger } from './transaction/ledger.ts';
import { sqliteTransactions } from './transaction/transactions.ts';
import { findDamage } from './verify.ts';

export interface SqliteStoreOptions {
  /** @default $XDG_STATE_HOME/semel/ledger.db, otherwise ~/.local/state/semel/ledger.db */
  readonly path?: string;
  /** An open node:sqlite or better-sqlite3 handle on the ledger's file, used by this store only. You close it. */
  readonly database?: SqliteLike;
  /** Accepts a folder or file that belongs to another user. */
  readonly shared?: boolean;
  /** How long to wait while another process holds the lock, in milliseconds. @default 10_000 */
  readonly busyMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly machine?: Partial<Machine>;
}

export interface SqliteStore extends Store {
  /** Trust the wall clock as it is now: records expire by it again. For a person to decide. */
  acceptClock(): Promise<void>;
  /** Use the ledger although its last writes are, or may be, missing. For a person to decide. */
  acceptLoss(said?: { readonly by: string; readonly note: string | null }): Promise<void>;
  verify(): Promise<readonly string[]>;
  /** Copies the whole ledger into one new file, even while it is in use. */
  backup(to: string): Promise<Backup>;
}

export function sqliteStore(options: SqliteStoreOptions = {}): SqliteStore {
  const ledger = createLedger(options);
  const { path, machine, time, lockWait } = ledger;
  const backend = createBackend(ledger);
  const store = localStore(backend);
  return {
    ...store,
    // A list is read page by page: between two, whatever else this process does gets its turn.
    async list(query) {
      await new Promise<void>((resolve) => nextTurn(resolve));
      return store.list(query);
    },
    raw: localRaw(createRaw(ledger, backend)),
    transactions: sqliteTransactions(ledger),
    outbox: sqliteOutbox(ledger, backend),
    recent: sqliteRecent(ledger, backend),
    migration: () =>
      planMigration({
        path,
        connect: machine.connect,
        whenUnlocked: lockWait.whenUnlocked,
        open: () => ledger.open(),
      }),
    // Recomputed for each caller: the clock may have changed since the ledger was opened.
    open: async () => ({ ...(await backend.open()), clockProblem: time.problem() }),
    async acceptClock() {
      const set = backend.transact('settling', () => {
        const now = time.anchorNow();
        ledger.session().meta.setAnchor(now);
        return now;
      });
      time.nowWith(await set(undefined));
    },
    async acceptLoss({ by, note } = { by: '', note: null }) {
      await ledger.open(true);
      const accept = backend.transact('settling', ({ time: { wall } }) =>
        ledger.session().meta.acceptLoss({ at: wall, by, note }),
      );
      await accept(undefined);
    },
    async verify() {
      await backend.open();
      return ledger.read(findDamage);
    },
    async backup(to) {
      await backend.open();
      const { connection } = ledger.session();
      if (!connection.isOurs)
        throw new SemelError('INVALID_ARGS', 'A store on your own database handle cannot make backups.', {
          next: "Use your SQLite library's own backup, or run `semel store backup` in another process.",
        });
      return backupLedger(connection.path, resolve(to), time.now().wall, machine);
    },
  };
}

function createBackend(ledger: Ledger): Backend {
  const { path, time, read } = ledger;
  const refusal = () => (closing === undefined ? undefined : closedError(path));
  const group = createGroupCommit({ ...ledger, judge, refusal });
  let closing: Promise<void> | undefined;

  return {
    async open() {
      if (closing !== undefined) throw closedError(path);
      const facts = await ledger.open();
      ledger.admit();
      return facts;
    },
    transact: group.transact,
    peek(namespace, key, how) {
      // Peeking does not open the ledger: one that has moved elsewhere must not replay anything.
      if (!ledger.isAdmitted()) throw closedError(path);
      return read(({ records }) => ({ row: records.get(namespace, key, how), time: time.now() }));
    },
    list: (query) =>
      read(({ lists }) => {
        const now = time.now();
        return { ...lists.page(query, now), time: now };
      }),
    history: (namespace, key) => read(({ events }) => events.of(namespace, key)),
    namespaces: () => read(({ scopes }) => scopes.namespaces()),
    close() {
      closing ??= group.drained().then(ledger.close);
      return closing;
    },
  };

  function judge(error: unknown): { error: unknown; failsAll: boolean } {
    const kind = classifyFailure(error);
    // Half of the group may still fit on a full disk.
    const failsAll =
      (isSemelError(error) && !isRecordDamage(error)) || (kind !== undefined && kind !== 'full');
    return { error: explain(error, path), failsAll };
  }
}
