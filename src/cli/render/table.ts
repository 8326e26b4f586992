// Tables that fit into a terminal: columns are cut or left out, the least important first. Elsewhere they stay whole.

import type { styleText } from 'node:util';
import { printable, styled } from './print.ts';
import { cut, cutStart, displayWidth, pad, terminalWidth } from './wrap.ts';

export interface Cell {
  readonly text: string;
  readonly style?: Parameters<typeof styleText>[0];
}

export interface Column {
  readonly name: string;
  /** May be cut to this width. */
  readonly min?: number;
  /** Which part of a text is the more telling one, where it is cut. @default 'start' */
  readonly keep?: 'start' | 'end';
  /** Left out if there is no room for it; the lowest number first. */
  readonly leaveOut?: number;
}

/** The last column may be cut unless another one says so itself. */
export function table(
  columns: readonly (string | Column)[],
  rows: readonly (readonly (string | Cell)[])[],
  room = terminalWidth(),
): readonly string[] {
  const named = columns.map((column) => (typeof column === 'string' ? { name: column } : column));
  const cells = rows.map((row) =>
    row.map((cell) =>
      typeof cell === 'string' ? { text: printable(cell) } : { ...cell, text: printable(cell.text) },
    ),
  );
  const natural = named.map(({ name }, at) =>
    cells.reduce((most, row) => Math.max(most, displayWidth(row[at]?.text ?? '')), displayWidth(name)),
  );
  const widths = room === undefined ? natural : fitWidths(named, natural, room);
  const line = (row: readonly Cell[]) =>
    row
      .flatMap(({ text, style }, at) => {
        const width = widths[at] ?? 0;
        if (width === 0) return [];
        const shown = named[at]?.keep === 'end' ? cutStart(text, width) : cut(text, width);
        const padded = at === row.length - 1 ? shown : pad(shown, width);
        return [style === undefined ? padded : styled(style, padded)];
      })
      .join(gap)
      .trimEnd();
  return [named.map(({ name }): Cell => ({ text: name, style: 'dim' })), ...cells].map(line);
}

const gap = '  ';

/** A width for each column; 0 if it is left out. */
function fitWidths(columns: readonly Column[], natural: readonly number[], room: number): readonly number[] {
  const hasMin = columns.some(({ min }) => min !== undefined);
  const widths = columns.map(({ min }, at) => {
    const least = min ?? (!hasMin && at === columns.length - 1 ? 1 : Number.POSITIVE_INFINITY);
    return Math.min(least, natural[at] ?? 0);
  });
  const used = () => widths.reduce((sum, width) => sum + (width === 0 ? 0 : width + gap.length), -gap.length);
  const spare = columns
    .map(({ leaveOut }, at) => ({ at, leaveOut }))
    .filter(({ leaveOut }) => leaveOut !== undefined)
    .sort((a, b) => Number(a.leaveOut) - Number(b.leaveOut));
  for (const { at } of spare) if (used() > room) widths[at] = 0;
  // The room that is left goes to the narrowest of the columns that were cut.
  for (let left = room - used(); left > 0; left -= 1) {
    const cutOnes = widths.filter((width, at) => width > 0 && width < (natural[at] ?? 0));
    if (cutOnes.length === 0) break;
    const least = Math.min(...cutOnes);
    widths[widths.findIndex((width, at) => width === least && width < (natural[at] ?? 0))] = least + 1;
  }
  // Nothing else can be left out: the rightmost columns are cut.
  for (let at = widths.length - 1; at >= 0 && used() > room; at -= 1) {
    const width = widths[at] ?? 0;
    const left = width - (used() - room);
    if (width > 0) widths[at] = left >= 1 ? left : 0;
  }
  return widths;
}
