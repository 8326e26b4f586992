// The ledger's file: opened on first use and again after its connection broke, written in one transaction at a time, and
// refused from then on where it turned out not to be the one that was opened.

import { resolve } from 'node:path';
import { type Clock, systemClock, systemRandom } from '../../../core/clock.ts';
import type { Transaction } from '../../../store/local/local-store.ts';
import { refusalOf } from '../../../store/move/ledger-state.ts';
import type { StoreFacts } from '../../../store/store.ts';
import { isInTransaction, single } from '../client.ts';
import { breaksConnection, explain, InTransaction, isForGood, kindOf, storeError } from '../failure.ts';
import { type Connection, lostDescription, openLedger, replaced } from '../file/open.ts';
import { defaultPath } from '../file/place.ts';
import { type Machine, thisMachine } from '../machine.ts';
import type { Meta } from '../meta.ts';
import { refuseNewer, schemaVersion } from '../schema.ts';
import type { SqliteStoreOptions } from '../store.ts';
import { type Patience, patience, readUnlocked } from './lock-wait.ts';
import { newSession, type Session } from './session.ts';
import { type Timekeeper, timekeeper } from './timekeeper.ts';

/** Who writes: those who use the ledger, or a copy, which also may where its standing refuses everybody else. */
export type Writer = 'users' | 'copy';

export interface Ledger {
  readonly path: string;
  readonly machine: Machine;
  readonly time: Timekeeper;
  readonly patience: Patience;
  /** Opens it, whatever its standing. A person may have accepted that it lacks what was written last. */
  open(isLossAccepted?: boolean): Promise<StoreFacts>;
  /** Refuses where it has moved or is being filled. */
  admit(): void;
  /** It is open, and its standing was looked at; from here on every transaction does. */
  isAdmitted(): boolean;
  /** Where it really lies, once it is open. */
  where(): string;
  /** The open connection. */
  session(): Session;
  read<T>(look: (session: Session) => T): T;
  isOpen(): boolean;
  /** Begins a transaction; throws where somebody else has the lock. */
  lock(): void;
  /** Right after: what the rules see; throws where nothing may be written. */
  begin(writer?: Writer): Transaction;
  /** Ends it, and returns once what was written is durable. */
  commit(): void;
  /** Where either threw, or a rule. */
  undo(error: unknown): void;
  /** Another process writes too, and this one wrote just now: it would leave no gap for others to find. */
  isHurried(): boolean;
  /** In a transaction: what the ledger says of itself. */
  description(session: Session): Meta;
  close(): Promise<void>;
}

/** Whoever commits so often leaves no gap for another process to find. */
const hurriedMs = 5;

export function ledgerOf(options: SqliteStoreOptions): Ledger {
  const { clock = systemClock, random = systemRandom, busyMs = 10_000, shared = false } = options;
  const machine = machineOf(clock, options.machine);
  const path = resolve(options.path ?? defaultPath());
  const waiting = patience({ clock, random, busyMs });
  const { unlocked } = waiting;
  const time = timekeeper(clock, machine);
  let session: Session | undefined;
  let opening: Promise<StoreFacts> | undefined;
  let committedAt = Number.NEGATIVE_INFINITY;
  /** How many writes the ledger had when this process last wrote: it never has fewer. */
  let written = 0;
  /** What no later call can cure: the file under this name is not the one that was opened. */
  let refusal: unknown;
  let isAdmitted = false;

  return {
    path,
    machine,
    time,
    patience: waiting,
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
    commit,
    undo,
    isHurried: () => session?.hasNeighbours() === true && clock.mono() - committedAt < hurriedMs,
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
        unlocked,
      });
      session = await unlocked(() => newSession(connection, machine));
      time.nowBy(readUnlocked(session.meta.read, undefined)?.anchor);
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

  function current(): Session {
    if (session === undefined) throw refusal ?? isClosed(path);
    return session;
  }

  function read<T>(look: (session: Session) => T): T {
    const opened = current();
    try {
      return readUnlocked(look, opened);
    } catch (error) {
      giveUpIfBroken(error);
      throw explain(error, path);
    }
  }

  function begin(writer: Writer = 'users'): Transaction {
    const opened = current();
    // Within a few milliseconds of the last look, the one after the commit is enough.
    if (clock.mono() - committedAt >= hurriedMs) refuseReplaced(opened);
    const facts = description(opened);
    const refused = writer === 'users' ? refusalOf(facts, path) : undefined;
    if (writer === 'users') isAdmitted = refused === undefined;
    // Not to be glanced at either: who moved it decides there from now on.
    if (refused !== undefined) throw refused;
    refuseNewer(facts.schema, schemaVersion, path);
    // Read now: a group that waited for the lock judges by the time at which it got it.
    const now = time.nowBy(facts.anchor);
    const correction = time.correction();
    if (correction !== undefined) opened.meta.setAnchor(correction);
    return opened.transaction(now, facts.floor);
  }

  function commit(): void {
    const opened = current();
    opened.countWrite();
    opened.commit.run();
    // If somebody removed the log meanwhile, what was just written is gone with it.
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
    if (facts === undefined) throw lostDescription(path);
    // The log and its index were put back as they had been, in place.
    if (opened.writes() < written) throw refuseFromNowOn(replaced(path));
    return facts;
  }

  function refuseReplaced({ connection, writes }: Session): void {
    if (!connection.isInPlace(writes())) throw refuseFromNowOn(replaced(path));
  }

  function refuseFromNowOn(error: Error): Error {
    refusal = error;
    return error;
  }

  function undo(error: unknown): void {
    session?.rolledBack();
    try {
      if (session !== undefined && isInTransaction(session.database)) session.rollback.run();
    } catch {
      // SQLite has rolled back by itself, or the connection is beyond it.
    }
    giveUpIfBroken(error);
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
}

function machineOf(clock: Clock, given: Partial<Machine> | undefined): Machine {
  // A clock that is not the machine's own has no other uptime than its own.
  const own = clock === systemClock ? {} : { uptimeMs: () => clock.mono() };
  return { ...thisMachine, ...own, ...given };
}

/**
 * A connection to a file that was swapped is left open on purpose: tidying up would write into, and closing would
 * remove, a log that belongs to another file now.
 */
function disconnect(connection: Connection, tidying: readonly string[] = []): void {
  const { database, isOurs, isInPlace, tip } = connection;
  tip.close();
  if (!isOurs || !isInPlace()) return;
  for (const step of [...tidying.map((sql) => () => database.exec(sql)), () => database.close()]) {
    try {
      step();
    } catch {
      // Somebody else is writing, or the disk is full or broken: the next one who opens it will see.
    }
  }
}

export function isClosed(path: string): Error {
  return storeError('STORE_UNAVAILABLE', `The store of the ledger ${path} is closed.`, {
    next: 'Nothing was run. Make a new store.',
    retriable: false,
  });
}
