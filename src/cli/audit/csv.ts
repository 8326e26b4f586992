// CSV by RFC 4180: quoted fields may hold commas, quotes and line ends. Refuses rows that do not fit their header.

import type { Line } from '../input.ts';

export type CsvRow =
  | { readonly line: number; readonly fields: Readonly<Record<string, string>> }
  | { readonly line: number; readonly problem: string };

export interface CsvReader {
  /** A row is there when its last line is. */
  take(line: Line): CsvRow | undefined;
  /** What is left when the file ends. */
  end(): CsvRow | undefined;
}

const maxRowLength = 1_048_576;

export function createCsvReader(): CsvReader {
  let header: readonly string[] | undefined;
  let begun: Begun | undefined;

  function finish(line: number, text: string): CsvRow | undefined {
    const cells = cellsOf(text);
    if (cells === undefined) return { line, problem: 'a quote is in the wrong place' };
    if (header === undefined) {
      header = cells.map((name) => name.trim());
      return undefined;
    }
    if (cells.length !== header.length)
      return { line, problem: `it has ${cells.length} fields, the header has ${header.length}` };
    return { line, fields: Object.fromEntries(header.map((name, n) => [name, cells[n] as string])) };
  }

  return {
    take({ number, text }) {
      if (text === undefined) {
        begun = undefined;
        return { line: number, problem: 'it is too long' };
      }
      if (begun === undefined && text === '') return undefined;
      const row = begun ?? { line: number, parts: [], length: 0 };
      row.parts.push(text);
      row.length += text.length + 1;
      // A row ends with its line, unless a quote is open.
      const isOpen = (begun !== undefined) !== hasOddQuotes(text);
      begun = isOpen ? row : undefined;
      if (!isOpen) return finish(row.line, row.parts.join('\n'));
      return row.length <= maxRowLength ? undefined : unclosed();
    },
    end: () => (begun === undefined ? undefined : unclosed()),
  };

  function unclosed(): CsvRow {
    const { line } = begun as Begun;
    begun = undefined;
    return { line, problem: 'a quote that opens here does not close' };
  }
}

interface Begun {
  readonly line: number;
  readonly parts: string[];
  length: number;
}

function hasOddQuotes(text: string): boolean {
  let isOdd = false;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) isOdd = !isOdd;
  return isOdd;
}

/** Undefined: it is no CSV. */
export function cellsOf(text: string): string[] | undefined {
  const cells: string[] = [];
  for (let from = 0; ; ) {
    if (text[from] === '"') {
      const cell = /"((?:[^"]|"")*)"(?=,|$)/y;
      cell.lastIndex = from;
      const [whole, inner] = cell.exec(text) ?? [];
      if (whole === undefined) return undefined;
      cells.push((inner as string).replaceAll('""', '"'));
      from += whole.length;
    } else {
      const comma = text.indexOf(',', from);
      const cell = text.slice(from, comma < 0 ? undefined : comma);
      if (cell.includes('"')) return undefined;
      cells.push(cell);
      from = comma < 0 ? text.length : comma;
    }
    if (from >= text.length) return cells;
    from += 1;
  }
}
