// An open connection and its statements, prepared once, with what is known without asking them again.

import { query, type SqliteLike, type SqliteStatement } from './driver.ts';
import { type Events, events } from './events.ts';
import { type Expiry, expiry } from './expiry.ts';
import { type RowMemory, rowMemory } from './memory.ts';
import { type Meta, type MetaTable, metaTable } from './meta.ts';
import type { Connection } from './open.ts';
import { type Records, records } from './records.ts';
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
  readonly memory: RowMemory;
  readonly expiry: Expiry;
  readonly events: Events;
  /** At the start of a transaction, under the lock; undefined where the ledger has lost it. */
  description(): Meta | undefined;
  /** Before the commit: counts the transaction if it has written anything. */
  countWrite(): void;
  /** What was written until now is ours, and known. */
  committed(): void;
  /** How many transactions have written. */
  writes(): number;
  /** Another connection wrote between the last two transactions. */
  hasNeighbours(): boolean;
  /** What is remembered may not be so: something was rolled back. */
  forget(): void;
}

export function newSession(connection: Connection): Session {
  const { database, isOurs } = connection;
  const known = scopes(database);
  const meta = metaTable(database);
  const memory = rowMemory();
  const stored = records(database, known);
  const expiring = expiry(database, known);
  // The first changes whenever another connection has written, the second with whatever goes through this one. Between
  // transactions only a handle of the user's may be used by others.
  const dataVersion = query(database, 'PRAGMA data_version');
  const totalChanges = query(database, 'SELECT total_changes()');
  let version: number | undefined;
  let changes = changesSoFar();
  let writes = 0;
  let hasNeighbours = false;
  let description: Meta | undefined;

  return {
    connection,
    database,
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    rollback: database.prepare('ROLLBACK'),
    meta: {
      ...meta,
      setFloor(floor) {
        description = undefined;
        meta.setFloor(floor);
      },
      setAnchor(anchor) {
        description = undefined;
        meta.setAnchor(anchor);
      },
      setStanding(standing) {
        description = undefined;
        meta.setStanding(standing);
      },
    },
    scopes: known,
    records: stored,
    memory,
    expiry: expiring,
    events: events(database, known),
    description() {
      const current = dataVersion.get()?.[0] as number;
      hasNeighbours = version !== undefined && current !== version;
      const isTouched = !isOurs && changesSoFar() !== changes;
      if (current !== version || isTouched) forgetRows();
      version = current;
      if (description === undefined) {
        description = meta.read();
        writes = description?.writes ?? 0;
      }
      return description;
    },
    countWrite() {
      if (changesSoFar() === changes) return;
      writes += 1;
      meta.setWrites(writes, stored.takeOpenSumChange());
    },
    committed() {
      changes = changesSoFar();
    },
    writes: () => writes,
    hasNeighbours: () => hasNeighbours,
    forget() {
      stored.takeOpenSumChange();
      forgetRows();
      known.forget();
    },
  };

  function changesSoFar(): number {
    return totalChanges.get()?.[0] as number;
  }

  function forgetRows(): void {
    memory.forget();
    expiring.forget();
    description = undefined;
  }
}
