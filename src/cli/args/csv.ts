// CSV by RFC 4180: quotes, line ends inside quotes, CRLF or LF; separated by commas, semicolons or tabs. Takes a line at a
// time and holds one row. Reports rows that are ambiguous; the caller decides whether the others count.

import type { Line } from './input.ts';

export type CsvRow =
  | { readonly line: number; readonly values: Readonly<Record<string, string>> }
  /** To follow "line 3". */
  | { readonly line: number; readonly problem: string };

interface CsvReader {
  /** From the first row; undefined until it is complete. */
  readonly names: readonly string[] | undefined;
  /** Answers a row once its last line is there. Skips empty lines. */
  take(line: Line): CsvRow | undefined;
  /** The rest, at the end of the file. */
  end(): CsvRow | undefined;
}

const separators = [',', ';', '\t'] as const;
const mostFields = 2_000;

interface PartialRow {
  readonly line: number;
  readonly cells: string[];
  /** A cell whose quote is not closed yet. */
  open: string | undefined;
  size: number;
}

export function createCsvReader(mostCharacters: number): CsvReader {
  let names: readonly string[] | undefined;
  let separator: string | undefined;
  /** Lines of the first row, until the separator is known. */
  let head: string[] = [];
  let headQuotes = 0;
  let row: PartialRow | undefined;

  function take({ number, text }: Line): CsvRow | undefined {
    row ??= { line: number, cells: [], open: undefined, size: 0 };
    row.size += (text?.length ?? mostCharacters) + 1;
    if (text === undefined || row.size > mostCharacters + 1)
      return refuse(`is longer than ${mostCharacters} characters`);
    if (separator === undefined) {
      // Counted per line: re-reading the row at each line would be quadratic.
      head.push(text);
      headQuotes += quotesIn(text);
      if (headQuotes % 2 === 1) return undefined;
      const whole = head.join('\n');
      if (whole.trim() === '') return reset();
      separator = separatorOf(whole);
      return add(whole);
    }
    if (row.open === undefined && (text === '' || text === '\r')) return reset();
    return add(text);
  }

  function add(text: string): CsvRow | undefined {
    const partial = row as PartialRow;
    const problem = addCells(partial, text, separator as string);
    if (problem !== undefined) return refuse(problem);
    return partial.open === undefined ? finish(partial) : undefined;
  }

  function finish({ line, cells }: PartialRow): CsvRow | undefined {
    if (cells.length > mostFields) return refuse(`has more than ${mostFields} fields`);
    row = undefined;
    if (names === undefined) {
      names = cells.map((name) => name.trim());
      return undefined;
    }
    if (cells.length !== names.length)
      return { line, problem: `has ${cells.length} fields, and the first line names ${names.length}` };
    return { line, values: Object.fromEntries(names.map((name, at) => [name, cells[at] as string])) };
  }

  function refuse(problem: string): CsvRow {
    const { line } = row as PartialRow;
    reset();
    return { line, problem };
  }

  function reset(): undefined {
    row = undefined;
    head = [];
    headQuotes = 0;
  }

  return {
    get names() {
      return names;
    },
    take,
    end: () => (row === undefined ? undefined : refuse('opens a quote that is never closed')),
  };
}

/** Adds the cells of a line. Answers what is wrong with them. */
function addCells(row: PartialRow, text: string, separator: string): string | undefined {
  // CRLF: the CR belongs to the line end, unless it is quoted.
  const length = text.endsWith('\r') ? text.length - 1 : text.length;
  for (let from = 0; ; from += 1) {
    if (row.open !== undefined || text[from] === '"') {
      const start = row.open === undefined ? from + 1 : from;
      const close = closingQuote(text, start);
      const cell = (row.open ?? '') + text.slice(start, close).replaceAll('""', '"');
      if (close === undefined) {
        row.open = `${cell}\n`;
        return undefined;
      }
      row.open = undefined;
      row.cells.push(cell);
      from = close + 1;
      if (from < length && text[from] !== separator) return 'has text after a closing quote';
    } else {
      const next = text.indexOf(separator, from);
      const cell = text.slice(from, next < 0 ? length : next);
      if (cell.includes('"')) return 'has a quote inside a field that is not quoted';
      row.cells.push(cell);
      from = next < 0 ? length : next;
    }
    if (from >= length) return undefined;
  }
}

/** Two quotes stand for one. */
function closingQuote(text: string, from: number): number | undefined {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2))
    if (text[at + 1] !== '"') return at;
  return undefined;
}

function quotesIn(text: string): number {
  return text.split('"').length - 1;
}

/** The most frequent one in the first row, outside quotes. */
function separatorOf(head: string): string {
  const bare = head.replaceAll(/"[^"]*"/g, '');
  const count = (separator: string) => bare.split(separator).length;
  return separators.toSorted((a, b) => count(b) - count(a))[0] as string;
}
