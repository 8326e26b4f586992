// The embedded store: one SQLite file, many processes. Transactions are short and shared (group commit), nothing
// waits inside the driver, and every answer is given after its commit is on the disk.

import { resolve } from 'node:path';
import type { Clock, Random } from '../../core/clock.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { localRaw } from '../../store/local/local-raw.ts';
import { type Backend, localStore } from '../../store/local/local-store.ts';
import type { Store } from '../../store/store.ts';
import { type Backup, backupLedger } from './backup.ts';
import type { SqliteLike } from './client.ts';
import { explain, kindOf } from './failure.ts';
import type { Machine } from './machine.ts';
import { createRaw } from './raw.ts';
import { planMigration } from './schema.ts';
import { groupCommit } from './transaction/group-commit.ts';
import { isClosed, type Ledger, ledgerOf } from './transaction/ledger.ts';
import { damageIn } from './verify.ts';

export interface SqliteStoreOptions {
  /** @default $XDG_STATE_HOME/semel/ledger.db, else ~/.local/state/semel/ledger.db */
  readonly path?: string;
  /** An open handle of node:sqlite or better-sqlite3 on the ledger's file, for this store alone; yours to close. */
  readonly database?: SqliteLike;
  /** Accepts a folder or file that belongs to another user. */
  readonly shared?: boolean;
  /** How long a ledger that another process has locked is waited for, in milliseconds. @default 10_000 */
  readonly busyMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly machine?: Partial<Machine>;
}

export interface SqliteStore extends Store {
  /** A person says that the wall clock is right as it is: windows end by it again from now on. */
  acceptClock(): Promise<void>;
  /** A person says that the ledger may be used although it lacks what was written last, or nobody knows whether it does. */
  acceptLoss(said?: { readonly by: string; readonly note: string | null }): Promise<void>;
  verify(): Promise<readonly string[]>;
  /** A copy of the whole ledger in one new file, made while it is in use. */
  backup(to: string): Promise<Backup>;
}

export function sqliteStore(options: SqliteStoreOptions = {}): SqliteStore {
  const ledger = ledgerOf(options);
  const { path, machine, time, patience } = ledger;
  const backend = backendOf(ledger);
  return {
    ...localStore(backend),
    raw: localRaw(createRaw(ledger, backend)),
    migration: () =>
      planMigration({
        path,
        connect: machine.connect,
        unlocked: patience.unlocked,
        open: () => ledger.open(),
      }),
    // Only who asks for the facts wants to know what time has changed.
    open: async () => ({ ...(await backend.open()), clockProblem: time.problem() }),
    async acceptClock() {
      const set = backend.transact('settling', () => {
        const now = time.anchorNow();
        ledger.session().meta.setAnchor(now);
        return now;
      });
      time.nowBy(await set(undefined));
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
      return ledger.read(damageIn);
    },
    async backup(to) {
      await backend.open();
      const { connection } = ledger.session();
      if (!connection.isOurs)
        throw new SemelError('INVALID_ARGS', 'A store on a handle of your own makes no backups.', {
          next: 'Use the backup of the library that made the handle, or `semel store backup` from another process.',
        });
      return backupLedger(connection.path, resolve(to), time.now().wall, machine);
    },
  };
}

function backendOf(ledger: Ledger): Backend {
  const { path, time, read } = ledger;
  const refusal = () => (closing === undefined ? undefined : isClosed(path));
  const group = groupCommit({ ...ledger, judge, refusal });
  let closing: Promise<void> | undefined;

  return {
    async open() {
      if (closing !== undefined) throw isClosed(path);
      const facts = await ledger.open();
      ledger.admit();
      return facts;
    },
    transact: group.transact,
    peek(namespace, key, how) {
      // A glance does not open it: a ledger that has moved elsewhere answers no replay.
      if (!ledger.isAdmitted()) throw isClosed(path);
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
    const kind = kindOf(error);
    // A full disk may still hold the smaller half.
    const failsAll =
      (isSemelError(error) && !isRecordDamage(error)) || (kind !== undefined && kind !== 'full');
    return { error: explain(error, path), failsAll };
  }
}
