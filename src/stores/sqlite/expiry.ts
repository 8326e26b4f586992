// Where retention has to look, and from when. An entry stands for an hour and a period, not for a record: an index
// over the records would hold every key a second time.

import type { Row } from '../../store/store.ts';
import { query, type SqliteLike } from './driver.ts';
import { afterAll, type Range } from './records.ts';
import { type Scope, type Scopes, split } from './scopes.ts';

export interface ExpiryEntry {
  readonly hour: number;
  readonly scope: Scope;
  readonly prefix: string;
  /** All that the entry stands for has expired by then. */
  readonly overAt: number;
}

export interface Expiry {
  note(row: Row): void;
  /** Where something may have expired by then, earliest first. */
  entries(by: number, after: ExpiryEntry | undefined, limit: number): ExpiryEntry[];
  remove(entry: ExpiryEntry): void;
  /** After a rollback, or when somebody else has written: an entry that was noted may not be there. */
  forget(): void;
}

/** More than these are noted again rather than remembered. */
const remembered = 1000;

const hourMs = 3_600_000;
const minuteMs = 60_000;

export function expiry(database: SqliteLike, scopes: Scopes): Expiry {
  // In minutes of the hour, so that a neighbour's expiry seldom changes the entry.
  const note = database.prepare(
    `INSERT INTO expiry (hour, scope, prefix, first, last) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
     WHERE excluded.first < first OR excluded.last > last`,
  );
  const entries = query(
    database,
    `SELECT hour, scope, prefix, last FROM expiry WHERE (hour, scope, prefix) > (?, ?, ?) AND hour <= ?
     AND hour * ${hourMs} + first * ${minuteMs} <= ? ORDER BY hour, scope, prefix LIMIT ?`,
  );
  const noted = new Set<string>();
  const remove = database.prepare('DELETE FROM expiry WHERE hour = ? AND scope = ? AND prefix = ?');

  return {
    note(row) {
      const at = row.expiresAt;
      if (at === null) return;
      const [contract, rest] = split(row.key);
      const scope = scopes.idOrNew(row.namespace, contract);
      const prefix = prefixOf(rest, row);
      const hour = Math.floor(at / hourMs);
      const minutes = (at - hour * hourMs) / minuteMs;
      const first = Math.floor(minutes);
      const last = Math.ceil(minutes);
      const name = `${hour} ${first} ${last} ${scope} ${prefix}`;
      if (noted.has(name)) return;
      note.run(hour, scope, prefix, first, last);
      if (noted.size >= remembered) noted.clear();
      noted.add(name);
    },
    entries(by, after, limit) {
      const start = after === undefined ? [-1, 0, ''] : [after.hour, after.scope.id, after.prefix];
      return entries.all(...start, Math.floor(by / hourMs), by, limit).map(([hour, scope, prefix, last]) => ({
        hour: hour as number,
        scope: scopes.withId(scope as number),
        prefix: prefix as string,
        overAt: (hour as number) * hourMs + (last as number) * minuteMs,
      }));
    },
    remove({ hour, scope, prefix }) {
      remove.run(hour, scope.id, prefix);
      noted.clear();
    },
    forget: () => noted.clear(),
  };
}

/** The keys that an entry stands for. */
export function rangeOf({ scope, prefix }: ExpiryEntry): Range {
  return { scope, from: prefix, before: prefix.endsWith('/') ? afterAll(prefix) : `${prefix}\0` };
}

/** The successes of one period expire together or are few; anything else is found by its whole key. */
function prefixOf(rest: string, { status }: Row): string {
  const isOfPeriod = status === 'succeeded' && !rest.startsWith('=') && !rest.startsWith('-/');
  return (isOfPeriod && rest.slice(0, rest.lastIndexOf('/') + 1)) || rest;
}
