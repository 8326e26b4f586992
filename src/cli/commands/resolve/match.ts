// Which record a row of an export tells of: the values that both have. Values are compared as texts, exactly; what is
// empty, or too large a number to be exact, is equal to nothing.

import type { RecordInfo } from '../../../semel/index.ts';
import { valueAt } from '../../args/path.ts';
import { usageError } from '../../usage.ts';

/** What names a record by itself: a column alone is compared with all of these. */
const names = ['providerKey', 'remoteRef', 'key', 'id'] as const;
const more = ['toolCallId', 'conversation', 'run', 'args'];

export interface Pair {
  readonly column: string;
  /** Of the record; undefined: any of its names. */
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
      `--match: ${JSON.stringify(field)} is no field of a record that a row can be matched by`,
      `Write one of ${[...names, ...more].join(', ')} or args.<path>: --match order_id=args.orderId`,
    );
  return { column: checked(text.slice(0, cut)), field };
}

function checked(column: string): string {
  if (column !== '') return column;
  throw usageError('resolve', '--match names no column', 'Write: --match <column>[=<field>]');
}

/** What a row has to say to mean this record: one text per way to name it. */
export function facesOf(record: RecordInfo, pairs: readonly Pair[]): readonly string[] {
  let faces: readonly (readonly string[])[] = [[]];
  for (const { field } of pairs) {
    const values = field === undefined ? names.map((name) => record[name]) : [valueAt(record, field)];
    const texts = [...new Set(values.map(textOf).filter((text) => text !== undefined))];
    faces = faces.flatMap((face) => texts.map((text) => [...face, text]));
  }
  return faces.map((face) => JSON.stringify(face));
}

export function faceOfRow(
  row: Readonly<Record<string, unknown>>,
  pairs: readonly Pair[],
): string | undefined {
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
