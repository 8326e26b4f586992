// One open connection: its prepared statements, its cached rows, and the transaction that the rules work on.

import { isRepeatable } from '../../../core/contract/words.ts';
import { isExpired, mayAnswerStaged, type Time } from '../../../rules/state.ts';
import type { Transaction } from '../../../store/local/local-store.ts';
import type { Row } from '../../../store/store.ts';
import { query, type SqliteLike, type SqliteStatement } from '../client.ts';
import { createEvents, type Events } from '../events.ts';
import type { Connection } from '../file/open.ts';
import { createLists, type Lists } from '../list.ts';
import type { Machine } from '../machine.ts';
import { createMetaTable, type Meta, type MetaTable } from '../meta.ts';
import { createOutboxRows, type OutboxRows } from '../outbox-rows.ts';
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
  readonly outbox: OutboxRows;
  /** The row of `meta`. Call first in each transaction, under the lock. Undefined if the row is missing. */
  description(): Meta | undefined;
  /** For the transaction just begun. Only one is open at a time, so all share one object. */
  transaction(time: Time, floor: number): Transaction;
  /**
   * Call before the commit: counts the transaction if it wrote anything. In the caller's transaction, pass the count that is
   * committed: several steps of one transaction count as one write.
   */
  countWrite(committed?: number): void;
  /** How many transactions have written. */
  writes(): number;
  /** True if another connection wrote between the last two transactions. */
  hasOtherWriters(): boolean;
  /** Drops what is cached of the tables. */
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
  const outbox = createOutboxRows(database, () => {
    hasWritten = true;
  });
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
    // A new record is running: it ends nothing that was staged.
    insert: records.insert,
    put(row) {
      const former = row.status === 'running' ? records.find(row.namespace, row.key)?.row : undefined;
      return records.put(row) && follow(row, former);
    },
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
    dropOldEvents(namespace, key) {
      hasWritten = true;
      events.dropOld(namespace, key);
    },
    dropEvents(row, types) {
      hasWritten = true;
      events.drop(row, types);
    },
    due: (limit) => lists.due(limit, time, outbox.awaits),
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
    outbox,
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
    countWrite(committed = writes) {
      const sums = records.takeSumChanges();
      if (sums === undefined && !hasWritten) return;
      hasWritten = false;
      writes = committed + 1;
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

  /** A repeatable write is one of its own each time, and an expired record says nothing about what was staged since. */
  function follow(row: Row, former: Row | undefined): true {
    if (former !== undefined && former.generation !== row.generation && mayAnswerStaged(former))
      outbox.leave(former);
    if (row.status !== 'succeeded' && row.status !== 'failed') return true;
    if (!isRepeatable(row.effect) && !isExpired(row, time)) outbox.follow(row);
    return true;
  }

  function markMetaChanged(): void {
    hasWritten = true;
    description = undefined;
  }

  function forgetRows(): void {
    records.forget();
    outbox.forget();
    description = undefined;
  }
}
