// CSV by RFC 4180: quotes, line ends inside quotes, CRLF or LF; separated by commas, semicolons or tabs. Reads a piece
// at a time and holds one row. Refuses what it would have to guess about, and says in which line.

import { malformed } from './malformed.ts';

export interface CsvRow {
  /** In which it starts; the first is 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

const separators = [',', ';', '\t'] as const;
const mostFields = 2_000;

/** Without empty lines. */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  mostCharacters: number,
): AsyncGenerator<CsvRow> {
  let head = '';
  let parse: ReturnType<typeof parser> | undefined;
  for await (const chunk of chunks) {
    head += chunk;
    const separator = parse === undefined ? separatorOf(head, false) : undefined;
    if (separator !== undefined) parse = parser(separator, mostCharacters);
    if (parse !== undefined) {
      yield* parse.push(head);
      head = '';
    } else if (head.length > mostCharacters) {
      throw malformed(1, `is longer than ${mostCharacters} characters`);
    }
  }
  parse ??= parser(separatorOf(head, true) ?? ',', mostCharacters);
  yield* parse.push(head);
  yield* parse.end();
}

/** The one that the first row has most of, outside quotes. Undefined: the row is not over. */
function separatorOf(text: string, isAll: boolean): string | undefined {
  const counts = new Map<string, number>(separators.map((separator) => [separator, 0]));
  let isQuoted = false;
  let isOver = isAll;
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted;
    else if (isQuoted) continue;
    else if (character === '\n') {
      isOver = true;
      break;
    } else if (counts.has(character)) counts.set(character, (counts.get(character) as number) + 1);
  }
  if (!isOver) return undefined;
  return separators.toSorted((a, b) => (counts.get(b) as number) - (counts.get(a) as number))[0];
}

function parser(separator: string, mostCharacters: number) {
  let state: 'start' | 'plain' | 'quoted' | 'closing' = 'start';
  let line = 1;
  let startLine = 1;
  let quoteLine = 1;
  let size = 0;
  let field = '';
  let fields: string[] = [];

  function endField(): void {
    fields.push(field);
    if (fields.length > mostFields) throw malformed(startLine, `has more than ${mostFields} fields`);
    field = '';
    state = 'start';
  }

  function endRow(): CsvRow | undefined {
    // CRLF: the CR belongs to the line's end, unless it is quoted.
    if (state === 'plain' && field.endsWith('\r')) field = field.slice(0, -1);
    endField();
    const row = { line: startLine, fields };
    fields = [];
    size = 0;
    return row.fields.length === 1 && row.fields[0] === '' ? undefined : row;
  }

  function take(character: string): CsvRow | undefined {
    size += 1;
    if (size > mostCharacters) throw malformed(startLine, `is longer than ${mostCharacters} characters`);
    if (state === 'quoted') {
      if (character === '"') state = 'closing';
      else field += character;
      return undefined;
    }
    if (character === '\n') return endRow();
    if (character === separator) {
      endField();
      return undefined;
    }
    if (state === 'closing') {
      if (character === '"') {
        field += '"';
        state = 'quoted';
      } else if (character !== '\r') throw malformed(line, 'has text after a closing quote');
      return undefined;
    }
    if (character === '"') {
      if (state === 'plain') throw malformed(line, 'has a quote inside a field that is not quoted');
      state = 'quoted';
      quoteLine = line;
      return undefined;
    }
    state = 'plain';
    field += character;
    return undefined;
  }

  return {
    *push(text: string): Generator<CsvRow> {
      for (const character of text) {
        const row = take(character);
        if (character === '\n') line += 1;
        if (row !== undefined) yield row;
        if (character === '\n' && fields.length === 0 && state === 'start') startLine = line;
      }
    },
    *end(): Generator<CsvRow> {
      if (state === 'quoted') throw malformed(quoteLine, 'opens a quote that is never closed');
      if (state === 'start' && fields.length === 0) return;
      const row = endRow();
      if (row !== undefined) yield row;
    },
  };
}
