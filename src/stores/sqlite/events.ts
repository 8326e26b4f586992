// The table of events: what happened to a record beyond an ordinary claim and settlement, in order.

import { parseDetail } from '../../store/damage.ts';
import { boundedTypes, maxKept } from '../../store/kept-events.ts';
import type { EventType, Row, StoreEvent } from '../../store/store.ts';
import { query, type SqliteLike } from './client.ts';
import { type Scopes, splitKey } from './scopes.ts';

export interface Events {
  note(event: StoreEvent): void;
  dropOld(namespace: string, key: string): void;
  /** Drops the row's events of these types, or all of them. */
  drop(row: Row, types?: readonly EventType[]): void;
  of(namespace: string, key: string): StoreEvent[];
}

export function createEvents(database: SqliteLike, scopes: Scopes): Events {
  const add = database.prepare(
    `INSERT INTO events (scope, key, n, at, generation, fence, type, detail)
     SELECT ?, ?, 1 + ifnull(max(n), 0), ?, ?, ?, ?, ? FROM events WHERE scope = ? AND key = ?`,
  );
  const find = query(
    database,
    'SELECT at, generation, fence, type, detail FROM events WHERE scope = ? AND key = ? ORDER BY n',
  );
  const dropOld = boundedTypes.map((types) => {
    const these = types.map((type) => `'${type}'`).join(', ');
    return database.prepare(
      `DELETE FROM events WHERE scope = ? AND key = ? AND type IN (${these}) AND n <= (
         SELECT n FROM events WHERE scope = ? AND key = ? AND type IN (${these}) ORDER BY n DESC LIMIT 1 OFFSET ${maxKept})`,
    );
  });
  const dropAll = database.prepare('DELETE FROM events WHERE scope = ? AND key = ?');
  const dropTypes = database.prepare(
    'DELETE FROM events WHERE scope = ? AND key = ? AND type IN (SELECT value FROM json_each(?))',
  );
  return {
    note({ namespace, key, at, generation, fence, type, detail }) {
      const [contract, rest] = splitKey(key);
      const scope = scopes.ensureId(namespace, contract);
      add.run(scope, rest, at, generation, fence, type, JSON.stringify(detail), scope, rest);
    },
    dropOld(namespace, key) {
      const [contract, rest] = splitKey(key);
      const scope = scopes.findId(namespace, contract);
      if (scope !== undefined) for (const each of dropOld) each.run(scope, rest, scope, rest);
    },
    drop({ namespace, key }, types) {
      const [contract, rest] = splitKey(key);
      const scope = scopes.findId(namespace, contract);
      if (scope === undefined) return;
      if (types === undefined) dropAll.run(scope, rest);
      else dropTypes.run(scope, rest, JSON.stringify(types));
    },
    of(namespace, key) {
      const [contract, rest] = splitKey(key);
      const scope = scopes.findId(namespace, contract);
      if (scope === undefined) return [];
      return find.all(scope, rest).map(([at, generation, fence, type, detail]) => ({
        at: at as number,
        namespace,
        key,
        generation: generation as number,
        fence: fence as number,
        type: type as StoreEvent['type'],
        detail: parseDetail(detail as string),
      }));
    },
  };
}
