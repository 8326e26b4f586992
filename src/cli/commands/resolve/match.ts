// Which record a row of an export matches: the values that both have. Values are compared exactly, as text; an empty
// value, or a number too large to be exact, matches nothing.

import type { RecordInfo } from '../../../semel/index.ts';
import { valueAt } from '../../args/path.ts';
import { usageError } from '../../usage.ts';

/** Each identifies a record: a column alone is compared with all of these. */
const names = ['providerKey', 'remoteRef', 'key', 'id'] as const;
const more = ['toolCallId', 'conversation', 'run', 'args'];

export interface Pair {
  readonly column: string;
  /** The record's field; undefined: any of `names`. */
  readonly field: string | undefined;
}

/** `column`, or `column=field`. */
export function pairOf(text: string): Pair {
  const cut = text.lastIndexOf('=');
  if (cut < 0) return { column: checked(text), field: undefined };
  const field = text.slice(cut + 1);
  const known = [...names, ...more].includes(field) || field.startsWith('args.');
  if (!known)
    throw usageError(
      'resolve',
      `--match: ${JSON.stringify(field)} is not a field that rows can be matched by`,
      `Write one of ${[...names, ...more].join(', ')} or args.<path>: --match order_id=args.orderId`,
    );
  return { column: checked(text.slice(0, cut)), field };
}

function checked(column: string): string {
  if (column !== '') return column;
  throw usageError('resolve', '--match has no column', 'Write: --match <column>[=<field>]');
}

/** The row texts that would match this record, one per way to name it. */
export function recordTexts(record: RecordInfo, pairs: readonly Pair[]): readonly string[] {
  let combinations: readonly (readonly string[])[] = [[]];
  for (const { field } of pairs) {
    const values = field === undefined ? names.map((name) => record[name]) : [valueAt(record, field)];
    const texts = [...new Set(values.map(textOf).filter((text) => text !== undefined))];
    combinations = combinations.flatMap((each) => texts.map((text) => [...each, text]));
  }
  return combinations.map((each) => JSON.stringify(each));
}

export function rowText(row: Readonly<Record<string, unknown>>, pairs: readonly Pair[]): string | undefined {
  const texts = pairs.map(({ column }) => textOf(valueAt(row, column)));
  return texts.includes(undefined) ? undefined : JSON.stringify(texts);
}

export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number' || (Number.isInteger(value) && !Number.isSafeInteger(value)))
    return undefined;
  return String(value);
}
