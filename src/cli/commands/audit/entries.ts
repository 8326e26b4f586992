// A log as entries, one per line of JSON or per row of CSV. What cannot be read keeps its number and its text.

import { isTooDeep } from '../../../core/key/json-shape.ts';
import { type CsvRow, createCsvReader } from '../../args/csv.ts';
import type { Line } from '../../args/input.ts';
import type { Fields } from './fields.ts';

export interface Entry {
  readonly line: number;
  /** Undefined: it cannot be read. */
  readonly fields: Fields | undefined;
  /** Its beginning, to look for a restart in. */
  readonly text: string;
  /** How long it is, in characters. */
  readonly length: number;
}

type Format = 'jsonl' | 'csv';

/** And longest row. */
export const longestLine = 1_048_576;
const maxLooked = 2_000;

export async function* entriesOf(
  batches: AsyncIterable<readonly Line[]>,
  chosen: Format | undefined,
): AsyncGenerator<readonly Entry[]> {
  const csv = createCsvReader(longestLine);
  let format = chosen;
  for await (const batch of batches) {
    const entries: Entry[] = [];
    for (const line of batch) {
      if (format === undefined && line.text?.trim()) format = formatOf(line.text);
      const entry = format === 'csv' ? row(csv.take(line), line) : json(line);
      if (entry !== undefined) entries.push(entry);
    }
    yield entries;
  }
  const left = row(csv.end(), { number: 0, text: '' });
  if (left !== undefined) yield [left];
}

/** A log of JSON may begin with a banner; a table begins with its columns. */
function formatOf(text: string): Format {
  return !text.trim().startsWith('{') && /,|;.*;|\t.*\t/.test(text) ? 'csv' : 'jsonl';
}

function json({ number, text }: Line): Entry | undefined {
  if (text === undefined) return { line: number, fields: undefined, text: '', length: 0 };
  if (text.trim() === '') return undefined;
  return { line: number, fields: objectOf(text), text: text.slice(0, maxLooked), length: text.length };
}

/** A line that is nested too deep to compare counts as unreadable: the other lines are still examined. */
function objectOf(text: string): Fields | undefined {
  if (isTooDeep(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Fields)
      : undefined;
  } catch {
    return undefined;
  }
}

function row(read: CsvRow | undefined, { text = '' }: Line): Entry | undefined {
  if (read === undefined) return undefined;
  const fields = 'values' in read ? read.values : undefined;
  const length = Object.values(fields ?? {}).reduce((sum, cell) => sum + cell.length, 0);
  return { line: read.line, fields, text: text.slice(0, maxLooked), length };
}
