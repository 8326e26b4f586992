// The embedded store: one SQLite file, many processes. Transactions are short and shared (group commit), nothing
// waits inside the driver, and every answer is given after its commit is on the disk.

import { resolve } from 'node:path';
import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { coalescer } from '../../store/coalescer.ts';
import { type RawBackend, ruleRaw } from '../../store/rule-raw.ts';
import { type Backend, ruleStore, type Transaction, type Urgency } from '../../store/rule-store.ts';
import { refusalOf } from '../../store/standing.ts';
import type { Store, StoreFacts } from '../../store/store.ts';
import { type Backup, backupLedger } from './backup.ts';
import { isRecordDamage } from './damage.ts';
import { isInTransaction, type SqliteLike, single } from './driver.ts';
import { breaksConnection, explain, InTransaction, isForGood, kindOf, storeError } from './failure.ts';
import { listRows } from './list.ts';
import { type Machine, thisMachine } from './machine.ts';
import type { Meta } from './meta.ts';
import { type Connection, lostDescription, openLedger, replaced } from './open.ts';
import { patience, readUnlocked } from './patience.ts';
import { defaultPath } from './place.ts';
import { refuseNewer, schemaVersion } from './schema.ts';
import { newSession, type Session } from './session.ts';
import { timekeeper } from './time.ts';
import { migrationOf, sizesIn } from './upkeep.ts';
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
  const { backend, raw, migration, clockProblem, acceptClock, acceptLoss, verify, backup } =
    sqliteBackend(options);
  return {
    ...ruleStore(backend),
    raw: ruleRaw(raw),
    migration,
    // Every call waits for the ledger to be open; only who asks for the facts wants to know what time has changed.
    open: async () => ({ ...(await backend.open()), clockProblem: clockProblem() }),
    acceptClock,
    acceptLoss,
    verify,
    backup,
  };
}

/** Whoever commits so often leaves no gap for another process to find. */
const hurriedMs = 5;

type Work = (transaction: Transaction) => unknown;

interface SqliteBackend
  extends Pick<Required<Store>, 'migration'>,
    Pick<SqliteStore, 'acceptClock' | 'acceptLoss' | 'verify' | 'backup'> {
  readonly backend: Backend;
  readonly raw: RawBackend;
  clockProblem(): string | undefined;
}

function sqliteBackend(options: SqliteStoreOptions): SqliteBackend {
  const { clock = systemClock, random = systemRandom, busyMs = 10_000, shared = false } = options;
  const machine: Machine = {
    ...thisMachine,
    // A clock that is not the machine's own has no other uptime than its own.
    ...(clock === systemClock ? {} : { uptimeMs: () => clock.mono() }),
    ...options.machine,
  };
  const path = resolve(options.path ?? defaultPath());
  const { unlocked, courtesy } = patience({ clock, random, busyMs });
  const time = timekeeper(clock, machine);
  const queue = coalescer<Work, unknown>({ flush, judge });
  let session: Session | undefined;
  let opening: Promise<StoreFacts> | undefined;
  let closing: Promise<void> | undefined;
  let committedAt = Number.NEGATIVE_INFINITY;
  /** How many writes the ledger had when this process last wrote: it never has fewer. */
  let written = 0;
  /** What no later call can cure: the file under this name is not the one that was opened. */
  let refusal: unknown;
  /** Its standing was looked at; from here on every transaction does. */
  let isAdmitted = false;
  let isLossAccepted = false;

  const backend: Backend = {
    async open() {
      const facts = await begin();
      if (!isAdmitted) admit();
      return facts;
    },
    transact<T>(urgency: Urgency, work: (transaction: Transaction) => T) {
      if (closing !== undefined) return Promise.reject(isClosed(path));
      return queue.add(urgency, work) as Promise<T>;
    },
    peek(namespace, key) {
      // A glance does not open it: a ledger that has moved elsewhere answers no replay.
      if (!isAdmitted) throw isClosed(path);
      return peek(namespace, key);
    },
    list: (query) =>
      reading(({ records, scopes }) => {
        const now = time.now();
        return { ...listRows(records, scopes, query, now), time: now };
      }),
    history: (namespace, key) => reading(({ events }) => events.of(namespace, key)),
    namespaces: () => reading(({ scopes }) => scopes.namespaces()),
    close() {
      closing ??= shut();
      return closing;
    },
  };

  const raw: RawBackend = {
    ...backend,
    open: begin,
    peek,
    where: () => session?.connection.path ?? path,
    async transact(work) {
      await ready();
      return unlocked(() => {
        const current = session;
        if (current === undefined) throw isClosed(path);
        // What a copy writes replaces whatever is there.
        current.forget();
        const table = {
          read: () => descriptionOf(current),
          set: current.meta.setStanding,
        };
        const [answer] = commit(current, () => [(transaction) => work(transaction, table)], 'whoever');
        return answer as ReturnType<typeof work>;
      }).catch((error: unknown) => {
        throw explain(error, path);
      });
    },
    about: () =>
      reading(({ connection, database, meta }) => ({
        ...sizesIn(database),
        lossAccepted: meta.lossAccepted(),
        address: `sqlite:${connection.path}`,
        schema: single(database, 'PRAGMA user_version') as number,
        known: schemaVersion,
        now: time.now().wall,
      })),
  };

  return {
    backend,
    raw,
    migration: () => migrationOf({ path, connect: machine.connect, unlocked, open: begin }),
    clockProblem: time.problem,
    async acceptClock() {
      await backend.open();
      const anchor = await backend.transact('settling', () => {
        const now = time.anchorNow();
        session?.meta.setAnchor(now);
        return now;
      });
      time.nowBy(anchor);
    },
    async verify() {
      await backend.open();
      return reading(damageIn);
    },
    async backup(to) {
      await backend.open();
      if (session === undefined) throw refusal ?? isClosed(path);
      if (!session.connection.isOurs)
        throw new SemelError('INVALID_ARGS', 'A store on a handle of your own makes no backups.', {
          next: 'Use the backup of the library that made the handle, or `semel store backup` from another process.',
        });
      return backupLedger(session.connection.path, resolve(to), time.now().wall, machine);
    },
    async acceptLoss({ by, note } = { by: '', note: null }) {
      isLossAccepted = true;
      try {
        await backend.open();
      } finally {
        isLossAccepted = false;
      }
      await backend.transact('settling', ({ time: { wall } }) =>
        session?.meta.acceptLoss({ at: wall, by, note }),
      );
    },
  };

  function begin(): Promise<StoreFacts> {
    return closing === undefined ? ready() : Promise.reject(isClosed(path));
  }

  function peek(namespace: string, key: string): ReturnType<Backend['peek']> {
    return reading(({ records }) => ({ row: records.get(namespace, key), time: time.now() }));
  }

  function admit(): void {
    const refused = reading(({ meta, connection }) => {
      const standing = meta.read();
      return standing && refusalOf(standing, connection.path);
    });
    if (refused !== undefined) throw refused;
    isAdmitted = true;
  }

  /** Opens on first use, and again after the connection broke. */
  function ready(): Promise<StoreFacts> {
    if (opening === undefined) {
      opening = start();
      opening.catch(() => {
        opening = undefined;
      });
    }
    return opening;
  }

  async function start(): Promise<StoreFacts> {
    try {
      if (refusal !== undefined) throw refusal;
      const { database } = options;
      const describe = () => ({ incarnation: random.token() + random.token(), anchor: time.anchorNow() });
      const connection = await openLedger({
        path,
        database,
        shared,
        isLossAccepted,
        machine,
        describe,
        unlocked,
      });
      session = await unlocked(() => newSession(connection, machine));
      time.nowBy(readUnlocked(session.meta.read)?.anchor);
      return {
        kind: 'sqlite',
        server: `SQLite ${single(connection.database, 'SELECT sqlite_version()')}`,
        schema: schemaVersion,
        location: connection.path,
        address: connection.path === resolve(defaultPath()) ? '' : `sqlite:${connection.path}`,
        forgets: connection.forgets,
        clockProblem: time.problem(),
        warning: connection.warning,
      };
    } catch (error) {
      const explained = explain(error, path);
      if (isForGood(kindOf(error))) refusal ??= explained;
      throw explained;
    }
  }

  async function flush(take: () => readonly Work[]): Promise<readonly unknown[]> {
    await ready();
    if (session?.hasNeighbours() && clock.mono() - committedAt < hurriedMs) await courtesy();
    return unlocked(() => {
      if (session === undefined) throw isClosed(path);
      return commit(session, take);
    });
  }

  /** One transaction, from lock to disk, without a pause in it. */
  function commit(
    current: Session,
    take: () => readonly Work[],
    who: 'users' | 'whoever' = 'users',
  ): readonly unknown[] {
    const { connection, database, meta } = current;
    if (isInTransaction(database)) throw new InTransaction();
    current.begin.run();
    try {
      refuseReplaced(connection);
      const facts = descriptionOf(current);
      const refused = who === 'users' ? refusalOf(facts, path) : undefined;
      if (refused !== undefined) {
        // Not to be glanced at either: who moved it decides there from now on.
        isAdmitted = false;
        throw refused;
      }
      if (who === 'users') isAdmitted = true;
      refuseNewer(facts.schema, schemaVersion, path);
      // Read now: whoever waited for the lock judges by the time at which it got it.
      const now = time.nowBy(facts.anchor);
      const correction = time.correction();
      if (correction !== undefined) meta.setAnchor(correction);
      const transaction = current.transaction(now, facts.floor);
      const answers = take().map((work) => work(transaction));
      current.countWrite();
      current.commit.run();
      // Whoever removed the log meanwhile took with it what was just written.
      refuseReplaced(connection);
      remember(current);
      committedAt = clock.mono();
      return answers;
    } catch (error) {
      undo(current);
      giveUpIfBroken(error);
      throw error;
    }
  }

  function remember({ connection, writes }: Session): void {
    const before = written;
    written = writes();
    if (written !== before) connection.tip.remember(written);
  }

  function descriptionOf({ description, writes }: Session): Meta {
    const facts = description();
    if (facts === undefined) throw lostDescription(path);
    // The log and its index were put back as they had been, in place.
    if (writes() < written) throw refuseFromNowOn(replaced(path));
    return facts;
  }

  function refuseReplaced({ isInPlace }: Connection): void {
    if (!isInPlace()) throw refuseFromNowOn(replaced(path));
  }

  function refuseFromNowOn(error: Error): Error {
    refusal = error;
    return error;
  }

  function undo({ database, rollback, forget }: Session): void {
    forget();
    try {
      if (isInTransaction(database)) rollback.run();
    } catch {
      // SQLite has rolled back by itself, or the connection is beyond it.
    }
  }

  function giveUpIfBroken(error: unknown): void {
    const kind = kindOf(error);
    if (isForGood(kind)) refusal ??= explain(error, path);
    if (refusal === undefined && (kind === undefined || !breaksConnection(kind))) return;
    const broken = session;
    session = undefined;
    opening = undefined;
    if (broken !== undefined) disconnect(broken.connection);
  }

  function judge(error: unknown): { error: unknown; concernsAll: boolean } {
    const kind = kindOf(error);
    // A full disk may still hold the smaller half.
    const concernsAll =
      (isSemelError(error) && !isRecordDamage(error)) || (kind !== undefined && kind !== 'full');
    return { error: explain(error, path), concernsAll };
  }

  function reading<T>(read: (session: Session) => T): T {
    const current = session;
    if (current === undefined) throw refusal ?? isClosed(path);
    try {
      return readUnlocked(() => read(current));
    } catch (error) {
      giveUpIfBroken(error);
      throw explain(error, path);
    }
  }

  async function shut(): Promise<void> {
    await opening?.catch(() => {});
    await queue.drained();
    const last = session;
    session = undefined;
    if (last !== undefined)
      disconnect(last.connection, ['PRAGMA optimize', 'PRAGMA wal_checkpoint(PASSIVE)']);
  }
}

/**
 * A connection to a file that was swapped is left open on purpose: tidying up would write into, and closing would
 * remove, a log that belongs to another file now.
 */
function disconnect(connection: Connection, tidying: readonly string[] = []): void {
  const { database, isOurs, isInPlace, tip, file } = connection;
  tip.close();
  if (!isOurs || !isInPlace()) return;
  for (const step of [...tidying.map((sql) => () => database.exec(sql)), () => database.close()]) {
    try {
      step();
    } catch {
      // Somebody else is writing, or the disk is full or broken: the next one who opens it will see.
    }
  }
  file.close();
}

function isClosed(path: string): Error {
  return storeError('STORE_UNAVAILABLE', `The store of the ledger ${path} is closed.`, {
    next: 'Nothing was run. Make a new store.',
    retriable: false,
  });
}
