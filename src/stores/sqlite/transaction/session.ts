// An open connection: its statements, prepared once, and what the rules see while it holds the write lock.

import type { Time } from '../../../rules/state.ts';
import type { Transaction } from '../../../store/local/local-store.ts';
import { query, type SqliteLike, type SqliteStatement } from '../client.ts';
import { type Events, events } from '../events.ts';
import type { Connection } from '../file/open.ts';
import { type Lists, lists } from '../list.ts';
import type { Machine } from '../machine.ts';
import { type Meta, type MetaTable, metaTable } from '../meta.ts';
import { type Records, records } from '../rows.ts';
import { type Scopes, scopes } from '../scopes.ts';

export interface Session {
  readonly connection: Connection;
  readonly database: SqliteLike;
  readonly begin: SqliteStatement;
  readonly commit: SqliteStatement;
  readonly rollback: SqliteStatement;
  readonly meta: MetaTable;
  readonly scopes: Scopes;
  readonly records: Records;
  readonly lists: Lists;
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

export function newSession(connection: Connection, machine: Machine): Session {
  const { database, isOurs } = connection;
  const known = scopes(database);
  const meta = metaTable(database);
  const table = records(database, known, machine);
  const many = lists(database, known);
  const history = events(database, known);
  // The first changes whenever another connection has written, the second with whatever goes through this one. Between
  // transactions only a handle of the user's may be used by others.
  const dataVersion = query(database, 'PRAGMA data_version');
  const totalChanges = query(database, 'SELECT total_changes()');
  let version: number | undefined;
  let changes = changesSoFar();
  /** The transaction has written something besides records. */
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
    get: (namespace, key) => table.find(namespace, key)?.row,
    insert: table.insert,
    put: table.put,
    remove: table.remove,
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
    due: (limit) => many.due(limit, time),
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
    lists: many,
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
      const sums = table.takeSumChanges();
      if (sums === undefined && !hasWritten) return;
      hasWritten = false;
      writes += 1;
      meta.setWrites(writes, sums?.all ?? 0, sums?.open ?? 0);
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

  /** Nobody else uses a handle of our own. */
  function changesSoFar(): number {
    return isOurs ? 0 : (totalChanges.get()?.[0] as number);
  }

  function describes(): void {
    hasWritten = true;
    description = undefined;
  }

  function forgetRows(): void {
    table.forget();
    description = undefined;
  }
}
