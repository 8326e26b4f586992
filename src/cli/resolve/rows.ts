// The rows of a provider's export: CSV, JSON lines or a JSON array, told apart by the first character. One row is held
// at a time, whatever the size of the file.

import { createReadStream } from 'node:fs';
import { SemelError } from '../../core/errors.ts';
import { usageError } from '../usage.ts';
import { csvRows } from './csv.ts';
import { jsonArray, jsonLines } from './json-values.ts';
import { malformed } from './malformed.ts';

export interface Row {
  readonly line: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** As large as a result may be. */
const mostCharacters = 1_048_576;

/** `-` is the standard input. */
export function readRows(path: string): AsyncGenerator<Row> {
  const bytes = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 262_144 });
  return rowsOf(texts(bytes, path));
}

export async function* rowsOf(chunks: AsyncGenerator<string>): AsyncGenerator<Row> {
  const { first, all } = await peeked(chunks);
  if (first === '[') yield* objects(jsonArray(all, mostCharacters));
  else if (first === '{') yield* objects(jsonLines(all, mostCharacters));
  else yield* named(csvRows(all, mostCharacters));
}

async function* objects(values: AsyncIterable<{ line: number; value: unknown }>): AsyncGenerator<Row> {
  for await (const { line, value } of values) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw malformed(line, 'holds no JSON object');
    yield { line, values: value as Record<string, unknown> };
  }
}

/** By the names in the first row. */
async function* named(rows: AsyncIterable<{ line: number; fields: readonly string[] }>): AsyncGenerator<Row> {
  let names: readonly string[] | undefined;
  for await (const { line, fields } of rows) {
    if (names === undefined) {
      names = fields.map((name) => name.trim());
      const twice = names.find((name, at) => name !== '' && names?.indexOf(name) !== at);
      if (twice !== undefined) throw malformed(line, `names the column ${JSON.stringify(twice)} twice`);
      continue;
    }
    if (fields.length !== names.length)
      throw malformed(line, `has ${fields.length} fields, and the first line names ${names.length}`);
    yield { line, values: Object.fromEntries(names.map((name, at) => [name, fields[at]])) };
  }
  if (names === undefined) throw usageError('resolve', 'the file is empty', 'Nothing was settled.');
}

/** The first character that is no space, and everything all the same. */
async function peeked(
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

/** UTF-8, with or without a byte order mark. Another encoding would turn names into others without a word. */
async function* texts(bytes: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const chunk of bytes) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (error instanceof SemelError) throw error;
    const isText = (error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA';
    throw isText
      ? usageError(
          'resolve',
          `${path} cannot be read (${(error as Error).message})`,
          'Name the export by --from <path>.',
        )
      : usageError(
          'resolve',
          `${path} is no UTF-8 text`,
          'Nothing was settled. Save it as UTF-8 and try again.',
        );
  }
}
