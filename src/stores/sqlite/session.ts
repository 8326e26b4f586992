// An open connection: its statements, prepared once, and what the rules see while it holds the write lock.

import { keyMap } from '../../core/key-map.ts';
import { isDue } from '../../rules/prune.ts';
import type { Time } from '../../rules/state.ts';
import { isOpen } from '../../store/columns.ts';
import type { Transaction } from '../../store/local/local-store.ts';
import type { Row } from '../../store/store.ts';
import { query, type SqliteLike, type SqliteStatement } from './driver.ts';
import { type Events, events } from './events.ts';
import { damagedLedger } from './failure.ts';
import type { Connection } from './file/open.ts';
import type { Machine } from './machine.ts';
import { type Meta, type MetaTable, metaTable } from './meta.ts';
import { type Records, records, type Stored } from './rows.ts';
import { type Scopes, scopes } from './scopes.ts';

export interface Session {
  readonly connection: Connection;
  readonly database: SqliteLike;
  readonly begin: SqliteStatement;
  readonly commit: SqliteStatement;
  readonly rollback: SqliteStatement;
  readonly meta: MetaTable;
  readonly scopes: Scopes;
  readonly records: Records;
  readonly events: Events;
  /** At the start of a transaction, under the lock; undefined where the ledger has lost it. */
  description(): Meta | undefined;
  /** Of the transaction that was begun. One at a time, so one object serves them all. */
  transaction(time: Time, floor: number): Transaction;
  /** Before the commit: counts the transaction if it has written anything. */
  countWrite(): void;
  /** How many transactions have written. */
  writes(): number;
  /** Another connection wrote between the last two transactions. */
  hasNeighbours(): boolean;
  /** Rows are about to be written that nobody here has looked at. */
  forget(): void;
  /** What was written since the transaction began has not been. */
  rolledBack(): void;
}

/** Open records that are remembered. */
const most = 10_000;

export function newSession(connection: Connection, { shortcuts }: Pick<Machine, 'shortcuts'>): Session {
  const { database, isOurs } = connection;
  const known = scopes(database);
  const meta = metaTable(database);
  const table = records(database, known);
  const history = events(database, known);
  /**
   * As long as no other connection has written, what this one wrote is what is there: a claim's row is still known when
   * it is settled. Only open rows are worth remembering.
   */
  const held = keyMap<Stored>();
  // The first changes whenever another connection has written, the second with whatever goes through this one. Between
  // transactions only a handle of the user's may be used by others.
  const dataVersion = query(database, 'PRAGMA data_version');
  const totalChanges = query(database, 'SELECT total_changes()');
  let version: number | undefined;
  let changes = changesSoFar();
  /** The transaction has written something. */
  let hasWritten = false;
  let writes = 0;
  let hasNeighbours = false;
  let description: Meta | undefined;
  let time: Time;
  let floor: number;

  const transaction: Transaction = {
    get time() {
      return time;
    },
    get floor() {
      return floor;
    },
    get: (namespace, key) => find(namespace, key)?.row,
    insert: (row) => shortcuts && isKept(row, table.insert(row)),
    put(row) {
      const { namespace, key } = row;
      const remembered = held.get(namespace, key);
      const before = remembered ?? table.find(namespace, key);
      if (isKept(row, before === undefined ? table.insert(row) : table.update(before, row))) return true;
      // Read under this very lock.
      if (remembered === undefined) throw damagedLedger(`${key} of ${namespace} is not found where it lies`);
      held.delete(namespace, key);
      return false;
    },
    remove(row) {
      hasWritten = true;
      table.remove(row);
      held.delete(row.namespace, row.key);
    },
    raiseFloor(fence) {
      if (fence <= floor) return;
      floor = fence;
      describes();
      meta.setFloor(fence);
    },
    note(event) {
      hasWritten = true;
      history.note(event);
    },
    dropEvents(row, types) {
      hasWritten = true;
      history.drop(row, types);
    },
    due,
  };

  return {
    connection,
    database,
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    rollback: database.prepare('ROLLBACK'),
    meta: {
      ...meta,
      setAnchor(anchor) {
        describes();
        meta.setAnchor(anchor);
      },
      setStanding(standing) {
        describes();
        meta.setStanding(standing);
      },
      acceptLoss(said) {
        describes();
        meta.acceptLoss(said);
      },
    },
    scopes: known,
    records: table,
    events: history,
    description() {
      const current = dataVersion.get()?.[0] as number;
      hasNeighbours = version !== undefined && current !== version;
      const isTouched = changesSoFar() !== changes;
      if (current !== version || isTouched) forgetRows();
      version = current;
      if (description === undefined) {
        description = meta.read();
        writes = description?.writes ?? 0;
      }
      return description;
    },
    transaction(now, storedFloor) {
      time = now;
      floor = storedFloor;
      return transaction;
    },
    countWrite() {
      if (!hasWritten) return;
      hasWritten = false;
      writes += 1;
      const { all, open } = table.takeSumChanges();
      meta.setWrites(writes, all, open);
      changes = changesSoFar();
    },
    writes: () => writes,
    hasNeighbours: () => hasNeighbours,
    forget: forgetRows,
    rolledBack() {
      hasWritten = false;
      table.takeSumChanges();
      forgetRows();
      known.forget();
    },
  };

  function find(namespace: string, key: string): Stored | undefined {
    return held.get(namespace, key) ?? table.find(namespace, key);
  }

  function isKept({ namespace, key, status }: Row, stored: Stored | undefined): boolean {
    if (stored === undefined) return false;
    hasWritten = true;
    if (!shortcuts || !isOpen(status)) held.delete(namespace, key);
    else {
      if (held.size() >= most) held.clear();
      held.set(namespace, key, stored);
    }
    return true;
  }

  function due(limit: number): readonly Row[] {
    const found: Row[] = [];
    // While the clock is not trusted, only what a person had forgotten goes.
    for (const row of table.expired(time.steady ? time.wall : 0)) {
      if (found.length === limit) return found;
      if (isDue(row, time)) found.push(row);
    }
    if (!time.steady) return found;
    const lapsed = table.lapsedUndispatched(time.boot, time.mono).filter((row) => isDue(row, time));
    return [...found, ...lapsed.slice(0, limit - found.length)];
  }

  /** Nobody else uses a handle of our own. */
  function changesSoFar(): number {
    return isOurs ? 0 : (totalChanges.get()?.[0] as number);
  }

  function describes(): void {
    hasWritten = true;
    description = undefined;
  }

  function forgetRows(): void {
    held.clear();
    description = undefined;
  }
}
