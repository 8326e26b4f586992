// CSV by RFC 4180: quotes, line ends inside quotes, CRLF or LF; separated by commas, semicolons or tabs. Takes a line at a
// time and holds one row. Refuses what it would have to guess about, row by row: whether the others count, its user says.

import type { Line } from './input.ts';

export type CsvRow =
  | { readonly line: number; readonly values: Readonly<Record<string, string>> }
  /** What is wrong, after "line 3". */
  | { readonly line: number; readonly problem: string };

interface CsvReader {
  /** Those of the first row; undefined: it is not over. */
  readonly names: readonly string[] | undefined;
  /** A row is there when its last line is. Empty lines are left out. */
  take(line: Line): CsvRow | undefined;
  /** What is left when the file ends. */
  end(): CsvRow | undefined;
}

const separators = [',', ';', '\t'] as const;
const mostFields = 2_000;

interface Begun {
  readonly line: number;
  readonly cells: string[];
  /** Of a cell whose quote is not closed yet. */
  open: string | undefined;
  size: number;
}

export function createCsvReader(mostCharacters: number): CsvReader {
  let names: readonly string[] | undefined;
  let separator: string | undefined;
  /** The lines of the first row, until it is known how its cells are separated. */
  let head: string[] = [];
  let headQuotes = 0;
  let row: Begun | undefined;

  function take({ number, text }: Line): CsvRow | undefined {
    row ??= { line: number, cells: [], open: undefined, size: 0 };
    row.size += (text?.length ?? mostCharacters) + 1;
    if (text === undefined || row.size > mostCharacters + 1)
      return refused(`is longer than ${mostCharacters} characters`);
    if (separator === undefined) {
      // Counted line by line: a quote that is never closed would make the row be read anew with each.
      head.push(text);
      headQuotes += quotesIn(text);
      if (headQuotes % 2 === 1) return undefined;
      const whole = head.join('\n');
      if (whole.trim() === '') return empty();
      separator = separatorOf(whole);
      return added(whole);
    }
    if (row.open === undefined && (text === '' || text === '\r')) return empty();
    return added(text);
  }

  function added(text: string): CsvRow | undefined {
    const begun = row as Begun;
    const problem = addCells(begun, text, separator as string);
    if (problem !== undefined) return refused(problem);
    return begun.open === undefined ? ended(begun) : undefined;
  }

  function ended({ line, cells }: Begun): CsvRow | undefined {
    if (cells.length > mostFields) return refused(`has more than ${mostFields} fields`);
    row = undefined;
    if (names === undefined) {
      names = cells.map((name) => name.trim());
      return undefined;
    }
    if (cells.length !== names.length)
      return { line, problem: `has ${cells.length} fields, and the first line names ${names.length}` };
    return { line, values: Object.fromEntries(names.map((name, at) => [name, cells[at] as string])) };
  }

  function refused(problem: string): CsvRow {
    const { line } = row as Begun;
    empty();
    return { line, problem };
  }

  function empty(): undefined {
    row = undefined;
    head = [];
    headQuotes = 0;
  }

  return {
    get names() {
      return names;
    },
    take,
    end: () => (row === undefined ? undefined : refused('opens a quote that is never closed')),
  };
}

/** The cells of a line, after those of the lines before. Answers what is wrong with them. */
function addCells(row: Begun, text: string, separator: string): string | undefined {
  // CRLF: the CR belongs to the line's end, unless it is quoted.
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

/** The one that the first row has most of, outside quotes. */
function separatorOf(head: string): string {
  const bare = head.replaceAll(/"[^"]*"/g, '');
  const count = (separator: string) => bare.split(separator).length;
  return separators.toSorted((a, b) => count(b) - count(a))[0] as string;
}
