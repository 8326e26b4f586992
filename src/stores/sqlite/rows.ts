// A row as SQLite's columns, and back: a token is a blob there, and a checksum tells whether the row is what was written.

import { crc32 } from 'node:zlib';
import { type Columns, columnsOf, rowOf } from '../../store/row-columns.ts';
import type { Row } from '../../store/store.ts';
import { damagedRecord } from './damage.ts';
import type { SqliteValue } from './driver.ts';

/** The columns besides the primary key, in the order of `encode`. */
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

const statusAt = columns.indexOf('status');
const tokenAt = columns.indexOf('token');
const sumAt = columns.indexOf('sum');
export const moreAt: number = columns.indexOf('more');

/** The same for `decode`: a blob is dearer to read than its hex. */
export function selected(table: string): string {
  return columns
    .map((column) => (column === 'token' ? `hex(${table}.token)` : `${table}.${column}`))
    .join(', ');
}

export function encode(row: Row): SqliteValue[] {
  const values: SqliteValue[] = columnsOf(row);
  const token = values[tokenAt] as string | null;
  values.push(sumOf(row.namespace, row.key, values));
  values[tokenAt] = token === null ? null : Buffer.from(token, 'hex');
  return values;
}

/** Throws the damage of this one record. */
export function decode(namespace: string, key: string, values: readonly SqliteValue[]): Row {
  if (values[statusAt] === null)
    throw damagedRecord(namespace, key, 'its key is there, but what belongs to it is not');
  const copy = [...values];
  copy[tokenAt] = (copy[tokenAt] as string).toLowerCase();
  const sum = copy.pop();
  if (sum !== sumOf(namespace, key, copy))
    throw damagedRecord(namespace, key, 'it is not what was written: its checksum is wrong');
  return rowOf(namespace, key, copy as Columns);
}

/** Over the whole record and its name. A token that is stored elsewhere is read as an empty one. */
function sumOf(namespace: string, key: string, values: readonly SqliteValue[]): number {
  let text = `${namespace}\0${key}`;
  for (let nth = 0; nth < sumAt; nth += 1) {
    const value = values[nth];
    text += value === null && nth !== tokenAt ? '\u0001' : `\0${value ?? ''}`;
  }
  return crc32(text);
}

/** Of a key in the table `keys`, and of a scope: names without which a record is not found. */
export function nameSum(...parts: readonly (string | number)[]): number {
  return crc32(parts.join('\0'));
}
