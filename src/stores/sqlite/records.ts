// The records. What is open is in a small table whose few pages are always at hand: a claim costs little, and listing
// what is open needs no index. What is closed is written one after the other, with its key in a table of its own.

import { dispatchedFlag, isOpen, statusCode } from '../../store/row-columns.ts';
import type { Row } from '../../store/store.ts';
import { type Damaged, damagedRecord, isDamaged, orDamaged } from './damage.ts';
import { query, type SqliteLike, type SqliteValue } from './driver.ts';
import { columns, decode, encode, moreAt, nameSum, selected } from './rows.ts';
import { type Scope, type Scopes, split } from './scopes.ts';

export interface Filter {
  readonly openOnly: boolean;
  readonly status: number | null;
  readonly conversation: string | null;
  readonly limit: number;
}

/** Keys of one scope, without their contract. */
export interface Range {
  readonly scope: Scope;
  readonly from: string;
  readonly before: SqliteValue;
}

export interface Records {
  get(namespace: string, key: string): Row | undefined;
  /** `before` is the row as it stood until now. */
  put(row: Row, before: Row | undefined): void;
  remove(row: Row): void;
  /** One that is damaged stands in its place. */
  list(range: Range, filter: Filter): (Row | Damaged)[];
  /** Closed ones that may have expired by then. What is damaged is not theirs to remove. */
  expired(range: Range, by: number, limit: number): Row[];
  /** Running, nothing dispatched, and the lease is over. */
  lapsedUndispatched(boot: string, mono: number): Row[];
  /** By how much the sum over the open records' checksums has changed since this was asked last. */
  takeOpenSumChange(): number;
}

export function records(database: SqliteLike, scopes: Scopes): Records {
  const names = columns.join(', ');
  const marks = columns.map(() => '?').join(', ');
  const settings = columns.map((column) => `${column} = ?`).join(', ');
  // A key whose record is missing is damage, not absence.
  const closedOf = `keys LEFT JOIN closed USING (id)`;
  const idOf = '(SELECT id FROM keys WHERE scope = ? AND key = ?)';

  const get = query(
    database,
    `SELECT ${selected('closed')} FROM ${closedOf} WHERE scope = ? AND key = ?
     UNION ALL SELECT ${selected('open')} FROM open WHERE scope = ? AND key = ? LIMIT 1`,
  );
  const keysBeside = query(database, beside('keys', 'scope, key, sum'));
  const openBeside = query(database, beside('open', `scope, key, ${selected('open')}`));
  const open = {
    insert: database.prepare(`INSERT INTO open (${names}, scope, key) VALUES (${marks}, ?, ?)`),
    update: database.prepare(`UPDATE open SET ${settings} WHERE scope = ? AND key = ?`),
    renew: database.prepare('UPDATE open SET more = ?, sum = ? WHERE scope = ? AND key = ?'),
    remove: query(database, 'DELETE FROM open WHERE scope = ? AND key = ? RETURNING sum'),
    sum: query(database, 'SELECT sum FROM open WHERE scope = ? AND key = ?'),
  };
  const closed = {
    insert: database.prepare(`INSERT INTO closed (${names}) VALUES (${marks})`),
    insertKey: database.prepare('INSERT INTO keys (id, expires, sum, scope, key) VALUES (?, ?, ?, ?, ?)'),
    update: database.prepare(`UPDATE closed SET ${settings} WHERE id = ${idOf}`),
    updateKey: database.prepare('UPDATE keys SET expires = ? WHERE scope = ? AND key = ?'),
    remove: database.prepare(`DELETE FROM closed WHERE id = ${idOf}`),
    removeKey: database.prepare('DELETE FROM keys WHERE scope = ? AND key = ?'),
  };

  // What `?` is null for is not asked.
  const matching =
    'scope = ? AND key >= ? AND key < ? AND ifnull(status = ?, 1) AND ifnull(asker ->> 0 = ?, ? IS NULL)';
  const listOpen = query(
    database,
    `SELECT key, ${selected('open')} FROM open WHERE ${matching} ORDER BY key LIMIT ?`,
  );
  const listAll = query(
    database,
    `SELECT key, ${selected('open')} FROM open WHERE ${matching}
     UNION ALL SELECT key, ${selected('closed')} FROM ${closedOf} WHERE ${matching} ORDER BY key LIMIT ?`,
  );
  const expired = query(
    database,
    `SELECT key, ${selected('closed')} FROM ${closedOf}
     WHERE scope = ? AND key >= ? AND key < ? AND keys.expires <= ? LIMIT ?`,
  );
  const lapsedUndispatched = query(
    database,
    `SELECT scope, key, ${selected('open')} FROM open WHERE status = ${statusCode('running')}
     AND flags & ${dispatchedFlag} = 0 AND (more ->> '$.lease[0]' IS NOT ? OR more ->> '$.lease[1]' <= ?)`,
  );

  let openSumChange = 0;

  return {
    takeOpenSumChange() {
      const change = openSumChange;
      openSumChange = 0;
      return change;
    },
    get(namespace, key) {
      const [contract, rest] = split(key);
      const scope = scopes.idOf(namespace, contract);
      if (scope === undefined) return undefined;
      const values = readable(namespace, key, () => get.get(scope, rest, scope, rest));
      if (values !== undefined) return decode(namespace, key, values);
      refuseDamagedNeighbours(scope, rest);
      return undefined;
    },
    put(row, before) {
      const [contract, rest] = split(row.key);
      const scope = scopes.idOrNew(row.namespace, contract);
      const values = encode(row);
      const staysOpen = before !== undefined && isOpen(before.status);
      if (isOpen(row.status)) {
        if (!staysOpen) {
          if (before !== undefined) removeClosed(scope, rest);
          open.insert.run(...values, scope, rest);
        } else {
          openSumChange -= sumIn(open.sum.get(scope, rest));
          if (isRenewal(before, row, values))
            open.renew.run(values[moreAt] as SqliteValue, values.at(-1) as SqliteValue, scope, rest);
          else open.update.run(...values, scope, rest);
        }
        openSumChange += values.at(-1) as number;
      } else if (before === undefined || staysOpen) {
        if (staysOpen) removeOpen(scope, rest);
        const { lastInsertRowid } = closed.insert.run(...values);
        closed.insertKey.run(Number(lastInsertRowid), expirySecond(row), nameSum(scope, rest), scope, rest);
      } else {
        closed.update.run(...values, scope, rest);
        closed.updateKey.run(expirySecond(row), scope, rest);
      }
    },
    remove(row) {
      const [contract, rest] = split(row.key);
      const scope = scopes.idOf(row.namespace, contract);
      if (scope === undefined) return;
      if (isOpen(row.status)) removeOpen(scope, rest);
      else removeClosed(scope, rest);
    },
    list({ scope, from, before }, { openOnly, status, conversation, limit }) {
      const asked = [scope.id, from, before, status, conversation, conversation];
      const found = openOnly ? listOpen.all(...asked, limit) : listAll.all(...asked, ...asked, limit);
      return found.map((values) => orDamaged(() => rowOf(scope, values)));
    },
    expired: ({ scope, from, before }, by, limit) =>
      sound(
        expired
          .all(scope.id, from, before, Math.floor(by / 1000), limit)
          .map((values) => orDamaged(() => rowOf(scope, values))),
      ),
    lapsedUndispatched: (boot, mono) =>
      sound(
        lapsedUndispatched
          .all(boot, mono)
          .map(([scope, ...values]) => orDamaged(() => rowOf(scopes.withId(scope as number), values))),
      ),
  };

  /**
   * A key that is not found may be one whose own bytes were changed: it lies where it always lay, beside the place where
   * the search for it ended.
   */
  function refuseDamagedNeighbours(scope: number, rest: string): void {
    const place = [scope, rest] as const;
    for (const [id, key, sum] of keysBeside.all(...place, ...place)) {
      if (sum !== nameSum(id as number, key as string)) throw damagedName(id as number, key as string);
    }
    for (const [id, ...values] of openBeside.all(...place, ...place))
      rowOf(scopes.withId(id as number), values);
  }

  function damagedName(id: number, key: string): Error {
    const { namespace, contract } = scopes.withId(id);
    return damagedRecord(namespace, contract + key, 'its key is not the one that was written');
  }

  function removeOpen(scope: number, rest: string): void {
    openSumChange -= sumIn(open.remove.get(scope, rest));
  }

  function removeClosed(scope: number, rest: string): void {
    closed.remove.run(scope, rest);
    closed.removeKey.run(scope, rest);
  }
}

/** The last entry before a place, and the first from there on. */
function beside(table: string, what: string): string {
  return `SELECT * FROM (SELECT ${what} FROM ${table} WHERE (scope, key) < (?, ?) ORDER BY scope DESC, key DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT ${what} FROM ${table} WHERE (scope, key) >= (?, ?) ORDER BY scope, key LIMIT 1)`;
}

function sumIn(found: readonly SqliteValue[] | undefined): number {
  return (found?.[0] as number | undefined) ?? 0;
}

function sound(rows: readonly (Row | Damaged)[]): Row[] {
  return rows.filter((row): row is Row => !isDamaged(row));
}

/** A number that was changed may be none that the driver can give out. */
function readable<T>(namespace: string, key: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) throw damagedRecord(namespace, key, error.message);
    throw error;
  }
}

/** Rounded down: a record may be looked at a moment too early, never too late. */
function expirySecond({ expiresAt }: Row): number | null {
  return expiresAt === null ? null : Math.floor(expiresAt / 1000);
}

/** Only what `more` holds has changed: the usual case while an attempt runs. */
function isRenewal(before: Row, row: Row, values: readonly SqliteValue[]): boolean {
  if (before.token !== row.token) return false;
  const earlier = encode(before);
  return columns.every(
    (column, index) =>
      column === 'more' || column === 'token' || column === 'sum' || earlier[index] === values[index],
  );
}

function rowOf({ namespace, contract }: Scope, [key, ...values]: readonly SqliteValue[]): Row {
  return decode(namespace, contract + (key as string), values);
}

/** Sorts right after every text that starts so. SQLite orders texts by their code points, and blobs after texts. */
export function afterAll(prefix: string): SqliteValue {
  const points = [...prefix].map((character) => character.codePointAt(0) as number);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return new Uint8Array();
    if (last === 0x10ffff) continue;
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
  }
}
