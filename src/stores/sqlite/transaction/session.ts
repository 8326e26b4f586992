// One open connection: its prepared statements, its cached rows, and the transaction that the rules work on.

import type { Time } from '../../../rules/state.ts';
import type { Transaction } from '../../../store/local/local-store.ts';
import { query, type SqliteLike, type SqliteStatement } from '../client.ts';
import { createEvents, type Events } from '../events.ts';
import type { Connection } from '../file/open.ts';
import { createLists, type Lists } from '../list.ts';
import type { Machine } from '../machine.ts';
import { createMetaTable, type Meta, type MetaTable } from '../meta.ts';
import { createRecords, type Records } from '../rows.ts';
import { createScopes, type Scopes } from '../scopes.ts';

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
  /** The row of `meta`. Call first in each transaction, under the lock. Undefined if the row is missing. */
  description(): Meta | undefined;
  /** For the transaction just begun. Only one is open at a time, so all share one object. */
  transaction(time: Time, floor: number): Transaction;
  /** Call before the commit: counts the transaction if it wrote anything. */
  countWrite(): void;
  /** How many transactions have written. */
  writes(): number;
  /** True if another connection wrote between the last two transactions. */
  hasOtherWriters(): boolean;
  /** Drops the cached rows. */
  forget(): void;
  /** Drops what the rolled-back transaction cached or counted. */
  afterRollback(): void;
}

export function createSession(connection: Connection, machine: Machine): Session {
  const { database, isOurs } = connection;
  const scopes = createScopes(database);
  const meta = createMetaTable(database);
  const records = createRecords(database, scopes, machine);
  const lists = createLists(database, scopes);
  const events = createEvents(database, scopes);
  // data_version changes when another connection writes, total_changes when this one does. Only the user's own handle can
  // be used by others between our transactions.
  const dataVersion = query(database, 'PRAGMA data_version');
  const totalChanges = query(database, 'SELECT total_changes()');
  let version: number | undefined;
  let changes = changesSoFar();
  /** The transaction wrote something other than records. */
  let hasWritten = false;
  let writes = 0;
  let hasOtherWriters = false;
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
    get: (namespace, key) => records.find(namespace, key)?.row,
    insert: records.insert,
    put: records.put,
    remove: records.remove,
    raiseFloor(fence) {
      if (fence <= floor) return;
      floor = fence;
      markMetaChanged();
      meta.setFloor(fence);
    },
    note(event) {
      hasWritten = true;
      events.note(event);
    },
    dropEvents(row, types) {
      hasWritten = true;
      events.drop(row, types);
    },
    due: (limit) => lists.due(limit, time),
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
        markMetaChanged();
        meta.setAnchor(anchor);
      },
      setStanding(standing) {
        markMetaChanged();
        meta.setStanding(standing);
      },
      acceptLoss(said) {
        markMetaChanged();
        meta.acceptLoss(said);
      },
    },
    scopes,
    records,
    lists,
    events,
    description() {
      const current = dataVersion.get()?.[0] as number;
      hasOtherWriters = version !== undefined && current !== version;
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
      const sums = records.takeSumChanges();
      if (sums === undefined && !hasWritten) return;
      hasWritten = false;
      writes += 1;
      meta.setWrites(writes, sums?.all ?? 0, sums?.open ?? 0);
      changes = changesSoFar();
    },
    writes: () => writes,
    hasOtherWriters: () => hasOtherWriters,
    forget: forgetRows,
    afterRollback() {
      hasWritten = false;
      records.takeSumChanges();
      forgetRows();
      scopes.forget();
    },
  };

  /** Always 0 for our own handle: nobody else writes through it. */
  function changesSoFar(): number {
    return isOurs ? 0 : (totalChanges.get()?.[0] as number);
  }

  function markMetaChanged(): void {
    hasWritten = true;
    description = undefined;
  }

  function forgetRows(): void {
    records.forget();
    description = undefined;
  }
}
