// Many records at once: pages in key order, contract by contract, and the records that pruning may remove.

import { limits } from '../../core/limits.ts';
import { isDue } from '../../rules/prune.ts';
import { isInDoubt, type Time } from '../../rules/state.ts';
import { dispatchedFlag, isOpen, statusCode } from '../../store/columns.ts';
import { isDamaged, readOrDamage } from '../../store/damage.ts';
import type { DamagedRecord, ListQuery, Row } from '../../store/store.ts';
import { query, type SqliteLike, type SqliteValue, single } from './client.ts';
import { decode, selected } from './rows.ts';
import { expirySecond, openRows } from './schema.ts';
import { type Scope, type Scopes, splitKey } from './scopes.ts';

interface RowPage {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
  /** Damaged records of this page. */
  readonly damaged: readonly DamagedRecord[];
  /** How many rows were looked at. */
  readonly looked: number;
}

export interface Lists {
  /** Looks at about `limits.scannedRows` rows: the page may be short, and `next` says whether there is more. */
  page(query: ListQuery, time: Time): RowPage;
  /** Oldest expiry first, without damaged records and those that a staged intent needs. */
  due(limit: number, time: Time, isAwaited: (row: Row) => boolean): readonly Row[];
}

/** Keys of one scope, without their contract. */
interface Range {
  readonly scope: Scope;
  readonly from: string;
  readonly before: SqliteValue;
}

/** Rows per query where only some of them may match. */
const chunk = 200;
const expiredChunk = 500;

export function createLists(database: SqliteLike, scopes: Scopes): Lists {
  // A filter whose parameter is null matches every row.
  const matching =
    'scope = ? AND key >= ? AND key < ? AND ifnull(status = ?, 1) AND ifnull(asker ->> 0 = ?, ? IS NULL)';
  const listed = (index: string, which: string) =>
    query(
      database,
      `SELECT scope, key, ${selected} FROM records INDEXED BY ${index} WHERE ${which} AND ${matching} ORDER BY key LIMIT ?`,
    );
  const listAll = listed('record_keys', '1');
  const listOpen = listed('open_records', openRows);
  // The keys of one part of a scan, from the index alone.
  const measurePart = query(
    database,
    `SELECT count(*), max(key) FROM
     (SELECT key FROM records INDEXED BY record_keys WHERE scope = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?)`,
  );
  const countOpen = query(
    database,
    `SELECT count(*) FROM
     (SELECT 1 FROM records INDEXED BY open_records WHERE ${openRows} LIMIT ${limits.scannedRows + 1})`,
  );
  const findExpired = query(
    database,
    `SELECT ${expirySecond}, id, scope, key, ${selected} FROM records INDEXED BY record_expiry
     WHERE expires IS NOT NULL AND ${expirySecond} <= ? AND (${expirySecond}, id) > (?, ?)
     ORDER BY ${expirySecond}, id LIMIT ${expiredChunk}`,
  );
  // Running, nothing dispatched, lease expired.
  const lapsedUndispatched = query(
    database,
    `SELECT scope, key, ${selected} FROM records INDEXED BY open_records
     WHERE ${openRows} AND status = ${statusCode('running')} AND flags & ${dispatchedFlag} = 0
     AND (more ->> '$.lease[0]' IS NOT ? OR more ->> '$.lease[1]' <= ?)`,
  );

  return { page, due };

  function page(filter: ListQuery, time: Time): RowPage {
    const found: Row[] = [];
    const damaged: DamagedRecord[] = [];
    // One more than the limit shows whether there is a next page.
    const wanted = filter.limit + 1;
    const { inDoubt, status, conversation = null } = filter;
    const isOpenOnly = inDoubt === true || (status !== undefined && isOpen(status));
    const code = status === undefined ? null : statusCode(status);
    const limit = inDoubt === undefined ? wanted : Math.max(wanted, chunk);
    const isFiltered = inDoubt !== undefined || code !== null || conversation !== null;
    // Their index is not in the order of keys: each statement reads all of them.
    const open = isOpenOnly ? (countOpen.get()?.[0] as number) : undefined;
    const isFew = open !== undefined && open <= limits.scannedRows;
    const statement = isFew ? listOpen : listAll;
    let looked = 0;

    for (const { scope, from: start, before } of ranges(scopes, filter)) {
      if (looked >= limits.scannedRows) return { rows: found, next: scope.contract, damaged, looked };
      for (let from = start; ; ) {
        const isWhole = isFew || !isFiltered;
        const [size, last] = isWhole
          ? [isFew ? open : 0, undefined]
          : partFrom(scope, from, before, limits.scannedRows - looked);
        looked += 1 + size;
        const until = last === undefined ? before : `${last}\0`;
        for (let at = from; ; ) {
          const rows = statement
            .all(scope.id, at, until, code, conversation, conversation, limit)
            .map((values) => rowOrDamage(values, scope));
          if (!isFiltered) looked += rows.length;
          for (const row of rows) {
            if (isDamaged(row)) damaged.push(row);
            else if (inDoubt === undefined || isInDoubt(row, time) === inDoubt) found.push(row);
            if (found.length < wanted) continue;
            const next = found[filter.limit - 1] as Row;
            // Damaged records after the last row belong to the next page.
            const own = damaged.filter(({ key }) => key <= next.key);
            return { rows: found.slice(0, filter.limit), next: next.key, damaged: own, looked };
          }
          const end = rows.at(-1);
          if (end === undefined || rows.length < limit) break;
          at = `${splitKey(end.key)[1]}\0`;
        }
        if (last === undefined) break;
        if (looked >= limits.scannedRows)
          return { rows: found, next: scope.contract + last, damaged, looked };
        from = `${last}\0`;
      }
    }
    return { rows: found, next: undefined, damaged, looked };
  }

  /** How many rows the next part of a scan has, and its last key; undefined: there are none after it. */
  function partFrom(
    scope: Scope,
    from: string,
    before: SqliteValue,
    rows: number,
  ): readonly [size: number, last: string | undefined] {
    const [size, last] = measurePart.get(scope.id, from, before, rows) as [number, string | null];
    return [size, size < rows ? undefined : (last ?? undefined)];
  }

  function due(limit: number, time: Time, isAwaited: (row: Row) => boolean): readonly Row[] {
    const found: Row[] = [];
    // While the clock is not trusted, only records that a person expired may go.
    for (const row of expired(time.steady ? time.wall : 0)) {
      if (found.length === limit) return found;
      if (isDue(row, time) && !isAwaited(row)) found.push(row);
    }
    if (!time.steady) return found;
    const lapsed = lapsedUndispatched
      .all(time.boot, time.mono)
      .map((values) => rowOrDamage(values))
      .filter((row): row is Row => !isDamaged(row) && isDue(row, time));
    return [...found, ...lapsed.slice(0, limit - found.length)];
  }

  function* expired(by: number): Iterable<Row> {
    for (let after: [number, number] = [-1, 0]; ; ) {
      const found = findExpired.all(Math.floor(by / 1000), ...after);
      for (const [, , ...values] of found) {
        const row = rowOrDamage(values);
        if (!isDamaged(row)) yield row;
      }
      const last = found.at(-1);
      if (last === undefined || found.length < expiredChunk) return;
      after = [last[0] as number, last[1] as number];
    }
  }

  function rowOrDamage([id, key, ...values]: readonly SqliteValue[], known?: Scope): Row | DamagedRecord {
    return readOrDamage(() => {
      const { namespace, contract } = known ?? scopes.getById(id as number);
      return decode(namespace, contract + (key as string), values);
    });
  }
}

/** The key ranges that the query can match, in order. */
function* ranges(
  scopes: Scopes,
  { namespace, contract, prefix = '', after = '' }: ListQuery,
): Iterable<Range> {
  const [afterContract, afterRest] = splitKey(after);
  const [prefixContract, prefixRest] = splitKey(prefix);
  for (const scope of scopes.from(namespace, afterContract)) {
    if (contract !== undefined && scope.contract !== `${contract}/`) continue;
    // A prefix without a slash is the start of a contract, or of a key that has no contract.
    const isWhole = prefixContract === '' && scope.contract !== '';
    if (isWhole ? !scope.contract.startsWith(prefixRest) : scope.contract !== prefixContract) continue;
    const start = isWhole ? '' : prefixRest;
    const resume = after !== '' && scope.contract === afterContract ? `${afterRest}\0` : '';
    yield { scope, from: start > resume ? start : resume, before: endOfPrefix(start) };
  }
}

/** Sorts right after every text with this prefix. SQLite orders texts by code point, and blobs after texts. */
function endOfPrefix(prefix: string): SqliteValue {
  const points = [...prefix].map((character) => character.codePointAt(0) as number);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return new Uint8Array();
    if (last === 0x10ffff) continue;
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
  }
}

export function measureLedger(database: SqliteLike): { records: number; open: number; bytes: number } {
  const records = single(database, 'SELECT count(*) FROM records') as number;
  const open = single(database, `SELECT count(*) FROM records WHERE ${openRows}`) as number;
  const pages = single(database, 'PRAGMA page_count') as number;
  return { records, open, bytes: pages * (single(database, 'PRAGMA page_size') as number) };
}
