// Fits text into a terminal: measures it in columns, cuts it, and wraps it between words. Pure but for `terminalWidth`.

interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** A terminal that claims to be narrower is treated as this wide: it wraps, but nothing disappears. */
const minWidth = 20;
/** Longer lines are hard to read. */
const maxTextWidth = 100;
/** Width of help that is not printed on a terminal, and so of docs/reference/cli.md. */
export const fileWidth = 80;

/** Undefined if it is not a terminal, or one that does not know its width. */
export function terminalWidth({ isTTY, columns }: Stream = process.stdout): number | undefined {
  return isTTY && columns ? Math.max(columns, minWidth) : undefined;
}

export function textWidth(stream?: Stream): number {
  return Math.min(terminalWidth(stream) ?? fileWidth, maxTextWidth);
}

/** The escape sequences of `styled`. */
const styles = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');
// Made when needed: character classes are slow to compile. East Asian scripts and emoji take two columns each.
const double = () =>
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2fb}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|(?!\p{Regional_Indicator})\p{Emoji_Presentation}/u;
const combining = () => /[\p{Mn}\p{Me}]/u;
let patterns: { readonly double: RegExp; readonly combining: RegExp } | undefined;

function characterWidth(character: string): number {
  if (character < '\u0300') return 1;
  patterns ??= { double: double(), combining: combining() };
  if (patterns.combining.test(character)) return 0;
  return patterns.double.test(character) ? 2 : 1;
}

/** In columns of a terminal. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text.replace(styles, '')) width += characterWidth(character);
  return width;
}

/** At most `width` columns. Ends with `…` if something is missing. */
export function cut(text: string, width: number): string {
  if (text.length * 2 <= width) return text;
  let used = 0;
  let end = 0;
  let at = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > width) return width < 1 ? '' : `${text.slice(0, end)}…`;
    at += character.length;
    if (used <= width - 1) end = at;
  }
  return text;
}

/** The same, but keeps the end. */
export function cutStart(text: string, width: number): string {
  const reversed = (each: string) => Array.from(each).reverse().join('');
  return reversed(cut(reversed(text), width));
}

export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

/** Breaks between words. A command that starts with `semel` is broken only as a shell reads it, so it can still be copied. */
export function wrap(text: string, width: number, first = '', rest = first): string[] {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const { gap, piece } of piecesOf(text.trim(), width)) {
    const used = displayWidth(line) + gap.length;
    // A new line helps only if it starts further to the left.
    if (!isEmpty && used > rest.length && used + displayWidth(piece) > width) {
      lines.push(line);
      line = rest;
      isEmpty = true;
    }
    const [start = '', ...more] = isCommand(piece)
      ? breakCommand(piece, width, isEmpty ? line : line + gap, rest)
      : [piece];
    line += isEmpty ? start : gap + start;
    for (const part of more) {
      lines.push(line);
      line = part;
    }
    isEmpty = false;
  }
  return isEmpty ? lines : [...lines, line];
}

const commandStart = new RegExp(`^(?:${styles.source})?semel `);

function isCommand(piece: string): boolean {
  return commandStart.test(piece);
}

/** Breaks a command that is too long before its options and after `--`, with a backslash at the end of each line. */
export function breakCommand(command: string, width: number, first: string, rest: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  let room = width - displayWidth(first);
  const parts = partsOf(command);
  for (const [at, part] of parts.entries()) {
    const end = at === parts.length - 1 ? '' : ' \\';
    if (line !== '' && displayWidth(`${line} ${part}${end}`) > room) {
      lines.push(`${line} \\`);
      line = `${rest}  ${part}`;
      room = width;
    } else line += line === '' ? part : ` ${part}`;
  }
  return [...lines, line];
}

/** The command's words; an option stays with its value, and all that follows `--` is one part. */
function partsOf(command: string): readonly string[] {
  const words: readonly string[] = command.match(shellWords) ?? [];
  const end = words.indexOf('--');
  const own = end < 0 ? words : words.slice(0, end + 1);
  const parts: string[] = [];
  for (const each of own) {
    if (parts.length > 0 && !each.startsWith('-')) parts.push(`${parts.pop()} ${each}`);
    else parts.push(each);
  }
  return end < 0 || end === words.length - 1 ? parts : [...parts, words.slice(end + 1).join(' ')];
}

/** A label wider than this share of the line would leave too little room beside it. */
const maxLabelShare = 0.6;

/** Wraps a line under its own text: a label that spaces follow stays alone in its column, if there is room for that. */
export function wrapLine(line: string, width: number): readonly string[] {
  if (displayWidth(line) <= width) return [line];
  const plain = line.replace(styles, '');
  // A bar marks the output of a program.
  const [, indent = '', bar = ''] = /^( *)(\| )?/.exec(plain) ?? [];
  const under = wrap(line, width, indent, bar === '' ? `${indent}  ` : indent + bar);
  const [label = ''] = /^ *\S.* {2,}/.exec(plain.slice(0, Math.floor(width * maxLabelShare))) ?? [];
  if (label === '') return under;
  const beside = wrap(line, width, indent, ' '.repeat(displayWidth(label)));
  return widest(beside) > Math.max(width, widest(under)) ? under : beside;
}

function widest(lines: readonly string[]): number {
  return Math.max(...lines.map(displayWidth));
}

/** Paragraphs are filled; lines that are indented keep their own line. */
export function wrapParagraphs(text: string, width: number): readonly string[] {
  return text
    .trim()
    .replaceAll(/(?<=\S)\n(?=[^\s])/g, (end, at: number, all: string) =>
      all.slice(all.lastIndexOf('\n', at - 1) + 1).startsWith(' ') ? end : ' ',
    )
    .split('\n')
    .flatMap((line) => (/^ /.test(line) ? wrapLine(line, width) : line === '' ? [''] : wrap(line, width)));
}

interface Piece {
  readonly gap: string;
  readonly piece: string;
}

const space = / */y;
const shellWord = /(?:'[^']*'|"[^"]*"|\S)+/y;
const shellWords = new RegExp(shellWord.source, 'g');
const quoted = /[^\s`]*`[^`]+`\S*/y;
const word = /\S+/y;

/** Words, whole commands, and code in backticks, which stays in one line. */
function* piecesOf(text: string, width: number): Generator<Piece> {
  let at = 0;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const [found = ''] = pattern.exec(text) ?? [];
    at += found.length;
    return found;
  };
  while (at < text.length) {
    const gap = take(space);
    const before = text.slice(0, at).replace(styles, '');
    let piece = take(word);
    if (/^(?:\W\[\d+m)?semel$/.test(piece) && (gap.length !== 1 || /: $/.test(before))) {
      while (at < text.length && !/[.,;:]$/.test(piece) && !text.startsWith(' (', at))
        piece += take(space) + take(shellWord);
    } else if (piece.includes('`')) {
      at -= piece.length;
      const code = take(quoted);
      if (code !== '' && displayWidth(code) <= width) piece = code;
      else at += piece.length - code.length;
    }
    yield { gap, piece };
  }
}
