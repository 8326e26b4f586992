// The crash matrix as a table in Markdown, for the terminal and for documentation.

import { describe, type LineName, lineNames } from './lines.ts';
import { type Point, points } from './points.ts';

export type Cells = Partial<Record<LineName, Partial<Record<Point, string>>>>;

export function matrixTable(cells: Cells): string {
  const head = ['contract', ...points];
  const rows = lineNames.map((name) => [
    describe(name),
    ...points.map((point) => cells[name]?.[point] ?? '–'),
  ]);
  return markdownTable(head, rows);
}

/** Padded, so that it reads in a terminal too. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const all = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`,
  );
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}
