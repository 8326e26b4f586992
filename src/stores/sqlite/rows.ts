// The records: one table, a row from its claim on. A claim is one insert, a settlement one update.

import { crc32 } from 'node:zlib';
import { keyMap } from '../../core/key-map.ts';
import {
  type Columns,
  fromColumns,
  isOpen,
  statusCode,
  toColumns,
  updateColumns,
} from '../../store/columns.ts';
import { damagedRecord } from '../../store/damage.ts';
import type { Row } from '../../store/store.ts';
import { query, type SqliteLike, type SqliteValue } from './client.ts';
import { damagedLedger } from './failure.ts';
import { type Machine, thisMachine } from './machine.ts';
import { type Scopes, split } from './scopes.ts';

/** Of a record besides its name: those of `Columns`, and the checksum. */
export const columns = [
  'status',
  'flags',
  'fence',
  'token',
  'version',
  'owner',
  'created',
  'settled',
  'expires',
  'args',
  'content',
  'result',
  'asker',
  'more',
  'sum',
] as const;

const at = Object.fromEntries(columns.map((column, nth) => [column, nth])) as Record<
  (typeof columns)[number],
  number
>;

/** The same for `decode`: a blob is more expensive to read than its hex. */
export const selected: string = columns
  .map((column) => (column === 'token' ? 'lower(hex(token))' : column))
  .join(', ');

/** A record as it lies in the table. */
export interface Stored {
  readonly id: number;
  readonly row: Row;
  readonly values: Columns;
  /** Of its claim: what its ending does not change. */
  readonly claimSum: number;
  readonly sum: number;
}

export interface Records {
  /** As committed. At a glance: what is not found is not looked for among the damaged. */
  get(namespace: string, key: string, how?: 'glance'): Row | undefined;
  /** Under the lock: with its place, to be updated. */
  find(namespace: string, key: string): Stored | undefined;
  /** False: there is one with this key, or this machine takes no shortcuts, and nothing was changed. */
  insert(row: Row): boolean;
  /** In the place of what `find` says. False: that is no longer so, and nothing was changed. */
  put(row: Row): boolean;
  /** Undefined: what lies there is not `before`, and nothing was changed. */
  update(before: Stored, row: Row): Stored | undefined;
  remove(row: Row): void;
  /** Others may have written: what is remembered may be so no longer. */
  forget(): void;
  /**
   * By how much the sums over the checksums of all and of the open records have changed since this was asked last;
   * undefined: nothing was written.
   */
  takeSumChanges(): { readonly all: number; readonly open: number } | undefined;
}

/** Open records that are remembered. */
const most = 10_000;

export function records(
  database: SqliteLike,
  scopes: Scopes,
  { shortcuts }: Pick<Machine, 'shortcuts'> = thisMachine,
): Records {
  const get = query(database, `SELECT ${selected}, id FROM records WHERE scope = ? AND key = ?`);
  const insert = database.prepare(
    `INSERT INTO records (scope, key, key_sum, ${columns.join(', ')})
     VALUES (?, ?, ?, ${columns.map(bound).join(', ')}) ON CONFLICT DO NOTHING`,
  );
  // What became of an attempt, and everything.
  const ending = database.prepare(
    `UPDATE records SET status = ?, flags = ?, settled = ?, expires = ?, result = ?, more = ?, sum = ? ${ifUnchanged}`,
  );
  const everything = database.prepare(
    `UPDATE records SET ${columns.map((column) => `${column} = ${bound(column)}`).join(', ')} ${ifUnchanged}`,
  );
  const remove = query(database, 'DELETE FROM records WHERE scope = ? AND key = ? RETURNING sum, status');
  // The last entry before a place in the index, and the first behind it: one text each, so that one statement asks both.
  // A part that is null by damage is left out, and the rest does not fit.
  const entry = `SELECT concat_ws(' ', scope, key_sum, key) FROM records INDEXED BY record_keys
     WHERE (scope, key, key_sum)`;
  const neighbours = query(
    database,
    `SELECT (${entry} < (?, ?, ?) ORDER BY scope DESC, key DESC, key_sum DESC LIMIT 1),
     (${entry} > (?, ?, ?) ORDER BY scope, key, key_sum LIMIT 1)`,
  );
  /**
   * As long as no other connection has written, what this one wrote is what is there: a claim's row is still known when
   * it is settled. Only open rows are worth remembering.
   */
  const held = keyMap<Stored>();
  let isWritten = false;
  let all = 0;
  let open = 0;

  return {
    get(namespace, key, how) {
      const values = valuesOf(namespace, key, how);
      return values && decode(namespace, key, values);
    },
    find: (namespace, key) => held.get(namespace, key) ?? read(namespace, key),
    insert: shortcuts ? insertRow : () => false,
    put(row) {
      const { namespace, key } = row;
      const remembered = held.get(namespace, key);
      const before = remembered ?? read(namespace, key);
      if (before === undefined ? insertRow(row) : remember(update(before, row))) return true;
      // Read under this very lock.
      if (remembered === undefined) throw damagedLedger(`${key} of ${namespace} is not found where it lies`);
      held.delete(namespace, key);
      return false;
    },
    update,
    remove({ namespace, key }) {
      const [contract, rest] = split(key);
      const scope = scopes.idOf(namespace, contract);
      const [sum, status] = (scope && remove.get(scope, rest)) || [];
      isWritten = true;
      held.delete(namespace, key);
      if (sum === undefined) return;
      all -= sum as number;
      if (isOpenCode(status as number)) open -= sum as number;
    },
    forget: held.clear,
    takeSumChanges() {
      const changes = isWritten ? { all, open } : undefined;
      isWritten = false;
      all = 0;
      open = 0;
      return changes;
    },
  };

  function valuesOf(namespace: string, key: string, how?: 'glance'): readonly SqliteValue[] | undefined {
    const [contract, rest] = split(key);
    const scope = scopes.idOf(namespace, contract);
    if (scope === undefined) return undefined;
    let values: readonly SqliteValue[] | undefined;
    try {
      values = get.get(scope, rest);
    } catch (error) {
      // A number that was changed may be none that the driver can give out.
      if (error instanceof RangeError) throw damagedRecord(namespace, key, error.message);
      throw error;
    }
    if (values === undefined && how !== 'glance') refuseDamagedNeighbours(scope, rest, keySum(scope, rest));
    return values;
  }

  function read(namespace: string, key: string): Stored | undefined {
    const values = valuesOf(namespace, key);
    if (values === undefined) return undefined;
    const row = decode(namespace, key, values);
    const claimSum = claimSumOf(namespace, key, values as readonly SqliteValue[] as Columns);
    return {
      id: values[columns.length] as number,
      row,
      values: values.slice(0, at.sum) as Columns,
      claimSum,
      sum: values[at.sum] as number,
    };
  }

  function insertRow(row: Row): boolean {
    const [contract, rest] = split(row.key);
    const scope = scopes.idOrNew(row.namespace, contract);
    const values = toColumns(row);
    const claimSum = claimSumOf(row.namespace, row.key, values);
    const sum = sumOf(claimSum, values);
    const checked = keySum(scope, rest);
    const { changes, lastInsertRowid } = insert.run(scope, rest, checked, ...values, sum);
    if (Number(changes) === 0) return false;
    refuseDamagedNeighbours(scope, rest, checked);
    count(values, sum);
    return remember({ id: Number(lastInsertRowid), row, values, claimSum, sum });
  }

  function update(before: Stored, row: Row): Stored | undefined {
    const { id, values: was } = before;
    const ended = updateColumns(before.row, was, row);
    const values = ended ?? toColumns(row);
    const claimSum = ended === undefined ? claimSumOf(row.namespace, row.key, values) : before.claimSum;
    const sum = sumOf(claimSum, values);
    const [status, flags, , , , , , settled, expires, , , result, , more] = values;
    const [wasStatus, , fence, token] = was;
    const { changes } =
      ended === undefined
        ? everything.run(...values, sum, id, token, fence, wasStatus)
        : ending.run(status, flags, settled, expires, result, more, sum, id, token, fence, wasStatus);
    if (Number(changes) === 0) return undefined;
    count(was, -before.sum);
    count(values, sum);
    return { id, row, values, claimSum, sum };
  }

  function remember(stored: Stored | undefined): boolean {
    if (stored === undefined) return false;
    const { namespace, key, status } = stored.row;
    if (!shortcuts || !isOpen(status)) held.delete(namespace, key);
    else {
      if (held.size() >= most) held.clear();
      held.set(namespace, key, stored);
    }
    return true;
  }

  /**
   * A key that is not found may be one whose own bytes were changed: it lies where it always lay, beside the place where
   * the search for it ended.
   */
  function refuseDamagedNeighbours(scope: number, rest: string, sum: number): void {
    const [before, behind] = neighbours.get(scope, rest, sum, scope, rest, sum) as [
      string | null,
      string | null,
    ];
    if (before !== null) refuseDamagedEntry(before);
    if (behind !== null) refuseDamagedEntry(behind);
  }

  function refuseDamagedEntry(entry: string): void {
    const sumAt = entry.indexOf(' ') + 1;
    const keyAt = entry.indexOf(' ', sumAt) + 1;
    const scope = Number(entry.slice(0, sumAt));
    if (Number(entry.slice(sumAt, keyAt)) === keySum(scope, entry, keyAt)) return;
    const { namespace, contract } = scopes.withId(scope);
    throw damagedRecord(namespace, contract + entry.slice(keyAt), 'its key is not the one that was written');
  }

  function count(values: Columns, sum: number): void {
    isWritten = true;
    all += sum;
    if (isOpenCode(values[0])) open += sum;
  }
}

/** A token is hexadecimal here, and half as long in the table. */
function bound(column: string): string {
  return column === 'token' ? 'unhex(?)' : '?';
}

/** Where token, fence and status are still what they were. */
const ifUnchanged = 'WHERE id = ? AND token IS unhex(?) AND fence = ? AND status = ?';

/** Throws the damage of this one record. What follows the columns is not looked at. */
export function decode(namespace: string, key: string, stored: readonly SqliteValue[]): Row {
  const values = stored as readonly SqliteValue[] as Columns;
  // A token that is stored elsewhere is null.
  if (stored[at.token] === '') values[at.token] = null;
  if (stored[at.sum] !== (crc32(claimText(namespace, key, values) + endingText(values)) | 0))
    throw damagedRecord(namespace, key, 'it is not what was written: its checksum is wrong');
  return fromColumns(namespace, key, values);
}

/** Over the record's name, and what its claim has written. */
function claimSumOf(namespace: string, key: string, values: Columns): number {
  return crc32(claimText(namespace, key, values));
}

function claimText(namespace: string, key: string, values: Columns): string {
  const [, , fence, token, version, owner, created, , , args, content, , asker] = values;
  return `${namespace}\0${key}\0${fence}\0${token ?? ''}\0${version}\0${owner}\0${created}${text(args)}${text(content)}${text(asker)}`;
}

/** Over the whole record: what its claim has written, and what became of it. */
function sumOf(claimSum: number, values: Columns): number {
  // Signed, which takes less room.
  return crc32(endingText(values), claimSum) | 0;
}

function endingText(values: Columns): string {
  const [status, flags, , , , , , settled, expires, , , result, , more] = values;
  return `${status}\0${flags}${text(settled)}${text(expires)}${text(result)}${text(more)}`;
}

function text(value: string | number | null): string {
  return value === null ? '\u0001' : `\0${value}`;
}

/** 16 bits, signed: for an entry of the index alone, and computed thrice per claim. The key may stand behind something. */
export function keySum(scope: number, key: string, start = 0): number {
  let sum = scope;
  for (let n = start; n < key.length; n += 1) sum = Math.imul(sum ^ key.charCodeAt(n), 0x01000193);
  return ((sum ^ (sum >>> 16)) << 16) >> 16;
}

const openCodes = [statusCode('running'), statusCode('unknown')];

function isOpenCode(status: number): boolean {
  return openCodes.includes(status);
}
