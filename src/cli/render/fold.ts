// Breaks long lines between words, to the terminal's width. Without a terminal, lines stay whole.

import { stripVTControlCharacters } from 'node:util';

export function terminalWidth(): number {
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
}

/** Continues below the text: after the indentation, a bar, and a label that two spaces follow. */
export function fold(line: string, width = terminalWidth()): readonly string[] {
  return foldAt(line, line.split(' '), width, '');
}

/** For a line with a command: continues with a backslash, so that it can be copied, and never inside quotes. */
export function foldCommand(line: string, width = terminalWidth()): readonly string[] {
  return foldAt(line, line.split(/ (?=(?:[^'"]|'[^']*'|"[^"]*")*$)/), width, ' \\');
}

/** Help texts are written in lines of up to 120 characters: lines without indentation are joined first. */
export function foldText(text: string, width = terminalWidth()): string {
  if (width === Number.POSITIVE_INFINITY) return text;
  const lines = text.replaceAll(/(?<=^\S.*)\n(?=\S)/gm, ' ').split('\n');
  return lines.flatMap((line) => fold(line, Math.min(width, 120))).join('\n');
}

function foldAt(line: string, words: readonly string[], width: number, mark: string): readonly string[] {
  const text = stripVTControlCharacters(line);
  if (text.length <= width) return [line];
  const rest = continuation(text, width);
  const lines: string[] = [];
  let current: string | undefined;
  let used = 0;
  for (const word of words) {
    const size = stripVTControlCharacters(word).length;
    const isFull = used + 1 + size + mark.length > width && used > rest.length;
    if (current === undefined) {
      current = word;
      used = size;
    } else if (isFull && word !== '') {
      lines.push(`${current.trimEnd()}${mark}`);
      current = `${rest}${word}`;
      used = rest.length + size;
    } else {
      current += ` ${word}`;
      used += 1 + size;
    }
  }
  return [...lines, current ?? ''];
}

/** A label wider than this share of the line would leave too little room beside it. */
const maxLabelShare = 0.6;

function continuation(text: string, width: number): string {
  const [indent = ''] = /^ *(?:\| )?/.exec(text) ?? [];
  const gaps = [...text.matchAll(/(?<=\S) {2,}(?=\S)/g)].map(({ index, 0: gap }) => index + gap.length);
  const label = gaps.findLast((at) => at <= width * maxLabelShare);
  return label === undefined ? indent : indent + ' '.repeat(label - indent.length);
}
