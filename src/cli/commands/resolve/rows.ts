// The rows of a provider's export: CSV, JSON lines or a JSON array, recognised by the first character. Holds one row at a
// time.

import { type CsvRow, createCsvReader } from '../../args/csv.ts';
import { type Line, linesOf, textOf } from '../../args/input.ts';
import { usageError } from '../../usage.ts';
import { jsonArray, jsonLines, malformed } from './json-values.ts';

export interface Row {
  readonly line: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** As large as a result may be. */
const mostCharacters = 1_048_576;

export function readRows(path: string): AsyncGenerator<Row> {
  return rowsOf(textOf('resolve', path));
}

export async function* rowsOf(chunks: AsyncGenerator<string>): AsyncGenerator<Row> {
  const { first, all } = await peekFirst(chunks);
  if (first === '[') yield* objects(jsonArray(all, mostCharacters));
  else if (first === '{') yield* objects(jsonLines(all, mostCharacters));
  else yield* table(linesOf(all, mostCharacters));
}

async function* objects(values: AsyncIterable<{ line: number; value: unknown }>): AsyncGenerator<Row> {
  for await (const { line, value } of values) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw malformed(line, 'is not a JSON object');
    yield { line, values: value as Record<string, unknown> };
  }
}

async function* table(batches: AsyncIterable<readonly Line[]>): AsyncGenerator<Row> {
  const reader = createCsvReader(mostCharacters);
  let isChecked = false;
  for await (const batch of batches) for (const line of batch) yield* read(reader.take(line));
  yield* read(reader.end());
  if (reader.names === undefined) throw usageError('resolve', 'the file is empty', 'Nothing was settled.');
  checkNames(reader.names);

  function* read(row: CsvRow | undefined): Generator<Row> {
    if (row === undefined) return;
    if ('problem' in row) throw malformed(row.line, row.problem);
    if (!isChecked) checkNames(reader.names as readonly string[]);
    isChecked = true;
    yield row;
  }
}

function checkNames(names: readonly string[]): void {
  const seen = new Set<string>();
  const twice = names.find((name) => name !== '' && seen.size === seen.add(name).size);
  if (twice !== undefined) throw malformed(1, `names the column ${JSON.stringify(twice)} twice`);
}

/** The first character that is not a space, and the whole text. */
async function peekFirst(
  chunks: AsyncGenerator<string>,
): Promise<{ readonly first: string | undefined; readonly all: AsyncGenerator<string> }> {
  let head = '';
  for (let next = await chunks.next(); ; next = await chunks.next()) {
    if (!next.done) head += next.value;
    const [first] = head.trimStart();
    if (first !== undefined || next.done) return { first, all: continued(head, chunks) };
    if (head.length > mostCharacters) throw malformed(1, 'and more are nothing but space');
  }
}

async function* continued(head: string, chunks: AsyncGenerator<string>): AsyncGenerator<string> {
  yield head;
  yield* chunks;
}
