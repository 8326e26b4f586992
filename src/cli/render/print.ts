// Output for people and programs: text, times, colours on a terminal, and JSON.

import { styleText } from 'node:util';
import { formatDuration } from '../../core/contract/duration.ts';
import { escapeInvisible } from '../../core/visible.ts';
import { redactSecrets } from '../../store/address.ts';
import { jsonText } from './json-text.ts';
import { cut, terminalWidth, textWidth, wrapLine } from './wrap.ts';

/** Makes untrusted text safe for one line. Every printed line gets it; use it for text that is measured or styled. */
export const printable: typeof escapeInvisible = escapeInvisible;

/** The escape sequences of `styled`. */
const styles = new RegExp(`(${String.fromCharCode(27)}\\[(?:1|2|22|31|32|33|36|39)m)`);

/** Text for people: wrapped between words on a terminal, whole elsewhere. */
export function print(...lines: readonly string[]): void {
  printRows(...wrapFor(process.stdout, lines.map(withoutControls)));
}

/** Lines that must stay as they are: data, and tables, which fit already. */
export function printRows(...lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${withoutControls(line)}\n`);
}

/** Only our own colours reach the terminal as control sequences. */
function withoutControls(line: string): string {
  return line
    .split(styles)
    .map((part) => (styles.test(part) ? part : escapeInvisible(part)))
    .join('');
}

export function printJson(value: unknown): void {
  printRows(...jsonText(value, 2).split('\n'));
}

/** One value per line, for streams. */
export function printJsonLine(value: unknown): void {
  printRows(jsonText(value));
}

/** A message on stderr. */
export function complain(message: string): void {
  printAside(`semel: ${message}`);
}

export function printAside(...lines: readonly string[]): void {
  const safe = lines.map((line) => escapeInvisible(withoutTyped(line)));
  const shown = wrapFor(process.stderr, safe);
  process.stderr.write(shown.map((line) => `${line}\n`).join(''));
}

function wrapFor(stream: NodeJS.WriteStream, lines: readonly string[]): readonly string[] {
  if (terminalWidth(stream) === undefined) return lines;
  return lines.flatMap((line) => wrapLine(line, textWidth(stream)));
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

/** Stored args or results in one line. */
export function oneLine(value: unknown, most = 200): string {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? value : jsonText(value);
  return cut(text, most);
}
