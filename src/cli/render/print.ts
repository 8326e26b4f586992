// Output for people and programs: tables, times, colours on a terminal, and JSON.

import { styleText } from 'node:util';
import { formatDuration } from '../../core/contract/duration.ts';
import { escapeInvisible } from '../../core/visible.ts';
import { redactSecrets } from '../../store/address.ts';
import { terminalWidth } from './fold.ts';
import { jsonText } from './json-text.ts';

/** Makes untrusted text safe for one line. Every printed line gets it; use it for text that is measured or styled. */
export const printable: typeof escapeInvisible = escapeInvisible;

/** The escape sequences of `styled`. */
const styles = new RegExp(`(${String.fromCharCode(27)}\\[(?:1|2|22|31|32|33|36|39)m)`);

/** Only our own colours reach the terminal as control sequences. */
export function print(...lines: readonly string[]): void {
  for (const line of lines)
    process.stdout.write(
      `${line
        .split(styles)
        .map((part) => (styles.test(part) ? part : escapeInvisible(part)))
        .join('')}\n`,
    );
}

export function printJson(value: unknown): void {
  print(...jsonText(value, 2).split('\n'));
}

/** One value per line, for streams. */
export function printJsonLine(value: unknown): void {
  print(jsonText(value));
}

/** A message on stderr. */
export function complain(message: string): void {
  printAside(`semel: ${message}`);
}

export function printAside(...lines: readonly string[]): void {
  process.stderr.write(lines.map((line) => `${escapeInvisible(withoutTyped(line))}\n`).join(''));
}

/** Messages repeat the command line, where a store's address may stand in the wrong place. */
function withoutTyped(text: string): string {
  const words = process.argv.slice(2);
  const addresses = words.flatMap((word, at) => {
    const [, flag, value] = /^(?:--(store|from|to)(?:=|$))?(.*)$/s.exec(word) ?? [];
    if (flag !== undefined) return [value || (words[at + 1] ?? '')];
    return /^[a-z][a-z0-9+.-]*:\/\//i.test(word) ? [word] : [];
  });
  return redactSecrets(text, [...addresses, process.env.SEMEL_STORE ?? '']);
}

type Style = Parameters<typeof styleText>[0];

/** `styleText` respects NO_COLOR and FORCE_COLOR. */
export function styled(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** `3m ago`, `in 2h`. */
export function relative(at: Date, now = Date.now()): string {
  const ms = now - at.getTime();
  const shown = formatDuration(Math.round(Math.abs(ms) / 1000) * 1000);
  if (Math.abs(ms) < 500) return 'now';
  return ms >= 0 ? `${shown} ago` : `in ${shown}`;
}

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

/** The last column is cut to the terminal's width; if it gets too little room, so is the column that yields. */
export function table(
  head: readonly string[],
  rows: readonly (readonly (string | Cell)[])[],
  yielding?: string,
): readonly string[] {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? { text: cell } : cell)));
  const shown = cells.map((row) => row.map(({ text }) => printable(text)));
  const widths = head.map((name, at) =>
    shown.reduce((most, row) => Math.max(most, (row[at] ?? '').length), name.length),
  );
  const room = terminalWidth();
  if (yielding !== undefined) shrink(widths, head.indexOf(yielding), room);
  const line = (texts: readonly string[], style: (at: number, text: string) => string) => {
    let used = 0;
    return texts
      .map((text, at) => {
        const isLast = at === texts.length - 1;
        const width = widths[at] as number;
        const padded = isLast ? cut(text, room - used) : cut(text, width).padEnd(width);
        used += padded.length + 2;
        return style(at, padded);
      })
      .join('  ')
      .trimEnd();
  };
  return [
    line(head, (_, text) => styled('dim', text)),
    ...shown.map((row, n) =>
      line(row, (at, text) => {
        const style = cells[n]?.[at]?.style;
        return style === undefined ? text : styled(style, text);
      }),
    ),
  ];
}

/** Below this, a column says too little. */
const minLast = 16;
const minOther = 12;

/** Takes room from one column for the last one. */
function shrink(widths: number[], at: number, room: number): void {
  const others = widths.reduce((sum, width, n) => (n === widths.length - 1 ? sum : sum + width + 2), 0);
  const missing = others + Math.min(widths.at(-1) ?? 0, minLast) - room;
  const width = widths[at];
  if (width !== undefined && missing > 0) widths[at] = Math.min(width, Math.max(minOther, width - missing));
}

export function cut(text: string, width: number): string {
  // Never inside a surrogate pair.
  return text.length <= width
    ? text
    : `${text.slice(0, Math.max(0, width - 1)).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Stored args or results in one line. */
export function oneLine(value: unknown, most = 200): string {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? value : jsonText(value);
  return cut(text, most);
}
