// A row as SQLite's columns, and back: a token is a blob there.

import { type Columns, columnsOf, rowOf } from '../../store/row-columns.ts';
import type { Row } from '../../store/store.ts';
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
] as const;

const tokenAt = columns.indexOf('token');

/** The same for `decode`: a blob is dearer to read than its hex. */
export function selected(table: string): string {
  return columns
    .map((column) => (column === 'token' ? `hex(${table}.token)` : `${table}.${column}`))
    .join(', ');
}

export function encode(row: Row): SqliteValue[] {
  const values: SqliteValue[] = columnsOf(row);
  const token = values[tokenAt] as string | null;
  values[tokenAt] = token === null ? null : Buffer.from(token, 'hex');
  return values;
}

export function decode(namespace: string, key: string, values: readonly SqliteValue[]): Row {
  const copy = [...values] as Columns;
  copy[tokenAt] = (copy[tokenAt] as string).toLowerCase();
  return rowOf(namespace, key, copy);
}
