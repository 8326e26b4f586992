// The table of records. A claim is one insert, a settlement one update; every read verifies the row's checksum.

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
import { type Scopes, splitKey } from './scopes.ts';

/** Everything but a record's name: those of `Columns`, and the checksum. */
const columns = [
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

const tokenAt = columns.indexOf('token');
const sumAt = columns.indexOf('sum');

/** The same for `decode`: a blob costs more to read than its hex. */
export const selected: string = columns
  .map((column) => (column === 'token' ? 'lower(hex(token))' : column))
  .join(', ');

/** A record as it is in the table. */
interface Stored {
  readonly id: number;
  readonly row: Row;
  readonly values: Columns;
  /** Checksum over the columns that a settlement leaves as they are. */
  readonly claimSum: number;
  readonly sum: number;
}

export interface Records {
  /** The committed row. `glance` skips the search for a damaged key if there is none. */
  get(namespace: string, key: string, how?: 'glance'): Row | undefined;
  /** Under the lock: with its row id, for an update. */
  find(namespace: string, key: string): Stored | undefined;
  /** False if the key exists or shortcuts are off; then nothing was changed. */
  insert(row: Row): boolean;
  /** Replaces what `find` returned. False if that is out of date; then nothing was changed. */
  put(row: Row): boolean;
  /** Undefined if the row is no longer `before`; then nothing was changed. */
  update(before: Stored, row: Row): Stored | undefined;
  remove(row: Row): void;
  /** Drops the cached rows: others may have written. */
  forget(): void;
  /**
   * How much the sums over the checksums of all and of the open records changed since the last call; undefined if
   * nothing was written.
   */
  takeSumChanges(): { readonly all: number; readonly open: number } | undefined;
}

/** Maximum number of cached open records. */
const maxHeld = 10_000;

export function createRecords(
  database: SqliteLike,
  scopes: Scopes,
  { shortcuts }: Pick<Machine, 'shortcuts'> = thisMachine,
): Records {
  const get = query(database, `SELECT ${selected}, id FROM records WHERE scope = ? AND key = ?`);
  const insert = database.prepare(
    `INSERT INTO records (scope, key, key_sum, ${columns.join(', ')})
     VALUES (?, ?, ?, ${columns.map(bound).join(', ')}) ON CONFLICT DO NOTHING`,
  );
  // `ending` updates what a settlement changes, `everything` all columns.
  const ending = database.prepare(
    `UPDATE records SET status = ?, flags = ?, settled = ?, expires = ?, result = ?, more = ?, sum = ? ${ifUnchanged}`,
  );
  const everything = database.prepare(
    `UPDATE records SET ${columns.map((column) => `${column} = ${bound(column)}`).join(', ')} ${ifUnchanged}`,
  );
  const remove = query(database, 'DELETE FROM records WHERE scope = ? AND key = ? RETURNING sum, status');
  // The index entries before and after a key, one text each, in one statement. concat_ws leaves out a part that damage
  // turned into null, so the checksum does not match.
  const entry = `SELECT concat_ws(' ', scope, key_sum, key) FROM records INDEXED BY record_keys
     WHERE (scope, key, key_sum)`;
  const neighbours = query(
    database,
    `SELECT (${entry} < (?, ?, ?) ORDER BY scope DESC, key DESC, key_sum DESC LIMIT 1),
     (${entry} > (?, ?, ?) ORDER BY scope, key, key_sum LIMIT 1)`,
  );
  /**
   * While no other connection writes, the rows that this one wrote are current, so a settlement need not read its claim.
   * Only open rows are worth caching.
   */
  const held = keyMap<Stored>();
  let isWritten = false;
  let all = 0;
  let open = 0;

  return {
    get(namespace, key, how) {
      const values = findValues(namespace, key, how);
      return values && decode(namespace, key, values);
    },
    find: (namespace, key) => held.get(namespace, key) ?? read(namespace, key),
    insert: shortcuts ? insertRow : () => false,
    put(row) {
      const { namespace, key } = row;
      const remembered = held.get(namespace, key);
      const before = remembered ?? read(namespace, key);
      if (before === undefined ? insertRow(row) : remember(update(before, row))) return true;
      // It was read under this same lock, so it must be there.
      if (remembered === undefined)
        throw damagedLedger(`${key} of ${namespace} cannot be updated by its row id`);
      held.delete(namespace, key);
      return false;
    },
    update,
    remove({ namespace, key }) {
      const [contract, rest] = splitKey(key);
      const scope = scopes.findId(namespace, contract);
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

  function findValues(namespace: string, key: string, how?: 'glance'): readonly SqliteValue[] | undefined {
    const [contract, rest] = splitKey(key);
    const scope = scopes.findId(namespace, contract);
    if (scope === undefined) return undefined;
    let values: readonly SqliteValue[] | undefined;
    try {
      values = get.get(scope, rest);
    } catch (error) {
      // Damage can turn a number into one that the driver cannot represent.
      if (error instanceof RangeError) throw damagedRecord(namespace, key, error.message);
      throw error;
    }
    if (values === undefined && how !== 'glance')
      refuseDamagedNeighbours(scope, rest, checksumKey(scope, rest));
    return values;
  }

  function read(namespace: string, key: string): Stored | undefined {
    const values = findValues(namespace, key);
    if (values === undefined) return undefined;
    const row = decode(namespace, key, values);
    const claimSum = checksumClaim(namespace, key, values as readonly SqliteValue[] as Columns);
    return {
      id: values[columns.length] as number,
      row,
      values: values.slice(0, sumAt) as Columns,
      claimSum,
      sum: values[sumAt] as number,
    };
  }

  function insertRow(row: Row): boolean {
    const [contract, rest] = splitKey(row.key);
    const scope = scopes.ensureId(row.namespace, contract);
    const values = toColumns(row);
    const claimSum = checksumClaim(row.namespace, row.key, values);
    const sum = checksumRow(claimSum, values);
    const checked = checksumKey(scope, rest);
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
    const claimSum = ended === undefined ? checksumClaim(row.namespace, row.key, values) : before.claimSum;
    const sum = checksumRow(claimSum, values);
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
      if (held.size() >= maxHeld) held.clear();
      held.set(namespace, key, stored);
    }
    return true;
  }

  /**
   * A missing key may be one whose bytes were damaged. Its index entry stays where it was, next to where the search
   * ended, so the neighbours are verified.
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
    if (Number(entry.slice(sumAt, keyAt)) === checksumKey(scope, entry, keyAt)) return;
    const { namespace, contract } = scopes.getById(scope);
    throw damagedRecord(namespace, contract + entry.slice(keyAt), 'its key is not the one that was written');
  }

  function count(values: Columns, sum: number): void {
    isWritten = true;
    all += sum;
    if (isOpenCode(values[0])) open += sum;
  }
}

/** Tokens are hex in memory and blobs in the table. */
function bound(column: string): string {
  return column === 'token' ? 'unhex(?)' : '?';
}

const ifUnchanged = 'WHERE id = ? AND token IS unhex(?) AND fence = ? AND status = ?';

/** Throws if this record is damaged. Values after the columns are ignored. */
export function decode(namespace: string, key: string, stored: readonly SqliteValue[]): Row {
  const values = stored as readonly SqliteValue[] as Columns;
  // hex(NULL) is an empty text.
  if (stored[tokenAt] === '') values[tokenAt] = null;
  if (stored[sumAt] !== (crc32(claimText(namespace, key, values) + endingText(values)) | 0))
    throw damagedRecord(namespace, key, 'it is not what was written: its checksum is wrong');
  return fromColumns(namespace, key, values);
}

/** Over the record's name and what its claim wrote. */
function checksumClaim(namespace: string, key: string, values: Columns): number {
  return crc32(claimText(namespace, key, values));
}

function claimText(namespace: string, key: string, values: Columns): string {
  const [, , fence, token, version, owner, created, , , args, content, , asker] = values;
  return `${namespace}\0${key}\0${fence}\0${token ?? ''}\0${version}\0${owner}\0${created}${text(args)}${text(content)}${text(asker)}`;
}

/** Over the whole record: claim and ending. */
function checksumRow(claimSum: number, values: Columns): number {
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

/** 16 bits, signed: cheap, since each claim computes it three times. `start` skips what comes before the key. */
export function checksumKey(scope: number, key: string, start = 0): number {
  let sum = scope;
  for (let n = start; n < key.length; n += 1) sum = Math.imul(sum ^ key.charCodeAt(n), 0x01000193);
  return ((sum ^ (sum >>> 16)) << 16) >> 16;
}

const openCodes = [statusCode('running'), statusCode('unknown')];

function isOpenCode(status: number): boolean {
  return openCodes.includes(status);
}
