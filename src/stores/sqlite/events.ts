// The exceptional part of the records' history, each record's in its own order.

import { parseDetail } from '../../store/damage.ts';
import type { EventType, Row, StoreEvent } from '../../store/store.ts';
import { query, type SqliteLike } from './client.ts';
import { type Scopes, split } from './scopes.ts';

export interface Events {
  note(event: StoreEvent): void;
  /** Those of these types, or all. */
  drop(row: Row, types?: readonly EventType[]): void;
  of(namespace: string, key: string): StoreEvent[];
}

export function events(database: SqliteLike, scopes: Scopes): Events {
  const add = database.prepare(
    `INSERT INTO events (scope, key, n, at, generation, fence, type, detail)
     SELECT ?, ?, 1 + ifnull(max(n), 0), ?, ?, ?, ?, ? FROM events WHERE scope = ? AND key = ?`,
  );
  const find = query(
    database,
    'SELECT at, generation, fence, type, detail FROM events WHERE scope = ? AND key = ? ORDER BY n',
  );
  const dropAll = database.prepare('DELETE FROM events WHERE scope = ? AND key = ?');
  const dropTypes = database.prepare(
    'DELETE FROM events WHERE scope = ? AND key = ? AND type IN (SELECT value FROM json_each(?))',
  );
  return {
    note({ namespace, key, at, generation, fence, type, detail }) {
      const [contract, rest] = split(key);
      const scope = scopes.idOrNew(namespace, contract);
      add.run(scope, rest, at, generation, fence, type, JSON.stringify(detail), scope, rest);
    },
    drop({ namespace, key }, types) {
      const [contract, rest] = split(key);
      const scope = scopes.idOf(namespace, contract);
      if (scope === undefined) return;
      if (types === undefined) dropAll.run(scope, rest);
      else dropTypes.run(scope, rest, JSON.stringify(types));
    },
    of(namespace, key) {
      const [contract, rest] = split(key);
      const scope = scopes.idOf(namespace, contract);
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
