// The ledger's file in use: opened on first use, reopened after its connection broke, and written by one transaction at a
// time. Once the file turns out to be damaged or replaced, every later call is refused.

import { resolve } from 'node:path';
import { systemClock, systemRandom } from '../../../core/clock.ts';
import type { Transaction } from '../../../store/local/local-store.ts';
import { refusalOf } from '../../../store/move/ledger-state.ts';
import type { StoreFacts } from '../../../store/store.ts';
import { isInTransaction, single } from '../client.ts';
import {
  breaksConnection,
  classifyFailure,
  explain,
  InTransaction,
  isPermanent,
  storeError,
} from '../failure.ts';
import { type Connection, lostMetaError, openLedger, replacedError } from '../file/open.ts';
import { defaultPath } from '../file/place.ts';
import { type Machine, resolveMachine } from '../machine.ts';
import type { Meta } from '../meta.ts';
import { refuseNewer, schemaVersion } from '../schema.ts';
import type { SqliteStoreOptions } from '../store.ts';
import { createLockWait, type LockWait, readWhenUnlocked } from './lock-wait.ts';
import { createSession, type Session } from './session.ts';
import { createTimekeeper, type Timekeeper } from './timekeeper.ts';

/** A copy may write even while the ledger is closed to its users. */
type Writer = 'users' | 'copy';

export interface Ledger {
  readonly path: string;
  readonly machine: Machine;
  readonly time: Timekeeper;
  readonly lockWait: LockWait;
  /** Opens the file, even if it is closed to users. `isLossAccepted`: even if its last writes are missing. */
  open(isLossAccepted?: boolean): Promise<StoreFacts>;
  /** Throws if the ledger has moved or is being filled. */
  admit(): void;
  /** True once `admit` succeeded; from then on every transaction checks again. */
  isAdmitted(): boolean;
  /** The real path, once it is open. */
  where(): string;
  /** The open session; throws if there is none. */
  session(): Session;
  read<T>(look: (session: Session) => T): T;
  isOpen(): boolean;
  /** Begins a transaction; throws if another process has the lock. */
  lock(): void;
  /** Call right after `lock`. Throws if the ledger must not be written. */
  begin(writer?: Writer): Transaction;
  /** The same in a caller's transaction, through a session on its connection, which holds the write lock. */
  beginWithin(session: Session): Transaction;
  /** True if another connection has the write lock of this very file. */
  isLockedByAnother(): boolean;
  /** Returns once the transaction is durable. */
  commit(): void;
  /** Call if a rule, `begin` or `commit` threw. */
  undo(error: unknown): void;
  /** Another process writes too, and this one has just committed: let the other go first. */
  shouldYield(): boolean;
  /** Call in a transaction. */
  description(session: Session): Meta;
  close(): Promise<void>;
}

/** Transactions closer together than this leave other processes no chance to take the lock. */
const yieldAfterMs = 5;

export function createLedger(options: SqliteStoreOptions): Ledger {
  const { clock = systemClock, random = systemRandom, busyMs = 10_000, shared = false } = options;
  const machine = resolveMachine(clock, options.machine);
  const path = resolve(options.path ?? defaultPath());
  const lockWait = createLockWait({ clock, random, busyMs });
  const { whenUnlocked } = lockWait;
  const time = createTimekeeper(clock, machine);
  let session: Session | undefined;
  let opening: Promise<StoreFacts> | undefined;
  let committedAt = Number.NEGATIVE_INFINITY;
  /** The write count after this process's last write. A lower count means that the file was replaced. */
  let written = 0;
  /** Thrown by every later call: the file is damaged, or not the one that was opened. */
  let refusal: unknown;
  let isAdmitted = false;

  return {
    path,
    machine,
    time,
    lockWait,
    open,
    isOpen: () => session !== undefined,
    isAdmitted: () => isAdmitted,
    admit() {
      if (isAdmitted) return;
      const refused = read(({ meta, connection }) => {
        const standing = meta.read();
        return standing && refusalOf(standing, connection.path);
      });
      if (refused !== undefined) throw refused;
      isAdmitted = true;
    },
    where: () => session?.connection.path ?? path,
    session: current,
    read,
    lock() {
      const { database, begin } = current();
      if (isInTransaction(database)) throw new InTransaction();
      begin.run();
    },
    begin,
    beginWithin(within) {
      refuseReplaced(current());
      // The caller may have rolled back what it had written.
      within.afterRollback();
      const facts = within.description();
      if (facts === undefined) throw lostMetaError(path);
      return admitWriter(within, facts, 'users');
    },
    isLockedByAnother() {
      const own = current();
      try {
        own.begin.run();
      } catch (error) {
        if (classifyFailure(error) === 'busy') return true;
        throw error;
      }
      own.rollback.run();
      return false;
    },
    commit,
    undo,
    shouldYield: () => session?.hasOtherWriters() === true && clock.mono() - committedAt < yieldAfterMs,
    description,
    async close() {
      await opening?.catch(() => {});
      const last = session;
      session = undefined;
      if (last !== undefined)
        disconnect(last.connection, ['PRAGMA optimize', 'PRAGMA wal_checkpoint(PASSIVE)']);
    },
  };

  function open(isLossAccepted = false): Promise<StoreFacts> {
    if (opening === undefined) {
      opening = start(isLossAccepted);
      opening.catch(() => {
        opening = undefined;
      });
    }
    return opening;
  }

  async function start(isLossAccepted: boolean): Promise<StoreFacts> {
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
        whenUnlocked,
      });
      session = await whenUnlocked(() => createSession(connection, machine));
      time.nowWith(readWhenUnlocked(session.meta.read, undefined)?.anchor);
      return {
        kind: 'sqlite',
        server: `SQLite ${single(connection.database, 'SELECT sqlite_version()')}`,
        schema: schemaVersion,
        location: connection.path,
        address: connection.path === resolve(defaultPath()) ? '' : `sqlite:${connection.path}`,
        isLocal: connection.isLocal,
        forgets: connection.forgets,
        clockProblem: time.problem(),
        warning: connection.warning,
      };
    } catch (error) {
      const explained = explain(error, path);
      if (isPermanent(classifyFailure(error))) refusal ??= explained;
      throw explained;
    }
  }

  function current(): Session {
    if (session === undefined) throw refusal ?? closedError(path);
    return session;
  }

  function read<T>(look: (session: Session) => T): T {
    const opened = current();
    try {
      return readWhenUnlocked(look, opened);
    } catch (error) {
      disconnectIfBroken(error);
      throw explain(error, path);
    }
  }

  function begin(writer: Writer = 'users'): Transaction {
    const opened = current();
    // Shortly after a commit, the check that followed it is enough.
    if (clock.mono() - committedAt >= yieldAfterMs) refuseReplaced(opened);
    return admitWriter(opened, description(opened), writer);
  }

  function admitWriter(opened: Session, facts: Meta, writer: Writer): Transaction {
    const refused = writer === 'users' ? refusalOf(facts, path) : undefined;
    if (writer === 'users') isAdmitted = refused === undefined;
    // Clearing `isAdmitted` above also stops peeks: the ledger is used elsewhere now.
    if (refused !== undefined) throw refused;
    refuseNewer(facts.schema, schemaVersion, path);
    // Read the time now: a group that waited for the lock is judged by the time at which it got it.
    const now = time.nowWith(facts.anchor);
    const correction = time.correction();
    if (correction !== undefined) opened.meta.setAnchor(correction);
    return opened.transaction(now, facts.floor);
  }

  function commit(): void {
    const opened = current();
    opened.countWrite();
    opened.commit.run();
    // If the log was removed meanwhile, the write went with it.
    refuseReplaced(opened);
    remember(opened);
    committedAt = clock.mono();
  }

  function remember({ connection, writes }: Session): void {
    const before = written;
    written = writes();
    if (written !== before) connection.tip.remember(written);
  }

  function description(opened: Session): Meta {
    const facts = opened.description();
    if (facts === undefined) throw lostMetaError(path);
    // An earlier log and its index were copied over the current ones.
    if (opened.writes() < written) throw refuseFromNowOn(replacedError(path));
    return facts;
  }

  function refuseReplaced({ connection, writes }: Session): void {
    if (!connection.isInPlace(writes())) throw refuseFromNowOn(replacedError(path));
  }

  function refuseFromNowOn(error: Error): Error {
    refusal = error;
    return error;
  }

  function undo(error: unknown): void {
    session?.afterRollback();
    try {
      if (session !== undefined && isInTransaction(session.database)) session.rollback.run();
    } catch {
      // SQLite has already rolled back, or the connection is broken.
    }
    disconnectIfBroken(error);
  }

  function disconnectIfBroken(error: unknown): void {
    const kind = classifyFailure(error);
    if (isPermanent(kind)) refusal ??= explain(error, path);
    if (refusal === undefined && (kind === undefined || !breaksConnection(kind))) return;
    const broken = session;
    session = undefined;
    opening = undefined;
    if (broken !== undefined) disconnect(broken.connection);
  }
}

/**
 * Leaves a connection to a replaced file open on purpose: closing it would delete, and tidying up would write to, a log
 * that belongs to another file now.
 */
function disconnect(connection: Connection, tidying: readonly string[] = []): void {
  const { database, isOurs, isInPlace, tip } = connection;
  tip.close();
  if (!isOurs || !isInPlace()) return;
  for (const step of [...tidying.map((sql) => () => database.exec(sql)), () => database.close()]) {
    try {
      step();
    } catch {
      // The ledger is locked, or the disk is full or broken: the next process to open it will find out.
    }
  }
}

export function closedError(path: string): Error {
  return storeError('STORE_UNAVAILABLE', `The store of the ledger ${path} is closed.`, {
    next: 'Nothing was run. Create a new store.',
    retriable: false,
  });
}
