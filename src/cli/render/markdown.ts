// Markdown for a terminal: paragraphs, lists and quotes are wrapped, tables become lists, and link targets are left out.

import { wrap } from './wrap.ts';

export interface TableRow {
  readonly head: readonly string[];
  readonly cells: readonly string[];
}

export function readTables(markdown: string): readonly TableRow[] {
  const rows: TableRow[] = [];
  let head: readonly string[] | undefined;
  for (const line of markdown.split('\n')) {
    if (!/^\s*\|/.test(line)) head = undefined;
    else if (head === undefined) head = cellsOf(line);
    else if (!/^[\s|:-]+$/.test(line)) rows.push({ head, cells: cellsOf(line) });
  }
  return rows;
}

function cellsOf(line: string): readonly string[] {
  return line
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** Lines of at most `width` characters, unless a word or a line of code is longer. */
export function renderMarkdown(markdown: string, width: number): readonly string[] {
  const lines: string[] = [];
  let previous: Kind | undefined;
  for (const block of blocksOf(markdown)) {
    const follows = previous === 'item' && (block.kind === 'item' || block.kind === 'table');
    if (previous !== undefined && !follows) lines.push('');
    lines.push(...renderBlock(block, width));
    previous = block.kind;
  }
  return lines;
}

type Kind = 'paragraph' | 'item' | 'quote' | 'table' | 'code';

interface Block {
  readonly kind: Kind;
  readonly lines: readonly string[];
}

const itemStart = /^\s*(?:-|\d+\.) /;

function blocksOf(markdown: string): readonly Block[] {
  const blocks: { kind: Kind; lines: string[] }[] = [];
  let current: { kind: Kind; lines: string[] } | undefined;
  let isCode = false;
  for (const line of markdown.split('\n')) {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    if (!isCode && line.trim() === '') {
      current = undefined;
      continue;
    }
    const kind = isCode || isFence ? 'code' : kindOf(line, current?.kind);
    if (current?.kind !== kind || (kind === 'item' && itemStart.test(line))) {
      current = { kind, lines: [] };
      blocks.push(current);
    }
    if (!isFence) current.lines.push(line);
  }
  return blocks;
}

function kindOf(line: string, before: Kind | undefined): Kind {
  if (/^\s*\|/.test(line)) return 'table';
  if (/^\s*> /.test(line)) return 'quote';
  return itemStart.test(line) || before === 'item' ? 'item' : 'paragraph';
}

function renderBlock({ kind, lines }: Block, width: number): readonly string[] {
  const text = lines.map((line) => line.trim()).join(' ');
  switch (kind) {
    case 'code':
      return lines.map((line) => `    ${line}`);
    case 'quote':
      return wrap(plain(text.replaceAll(/(^| )> /g, '$1')), width, '  > ', '  > ');
    case 'item': {
      const mark = itemStart.exec(lines[0] as string)?.[0] ?? '';
      return wrap(plain(text.replace(itemStart, '')), width, mark, ' '.repeat(mark.length));
    }
    case 'table':
      return readTables(lines.join('\n')).flatMap((row) => renderRow(row, width));
    case 'paragraph':
      return wrap(plain(text), width);
  }
}

function renderRow({ head, cells: [first = '', ...others] }: TableRow, width: number): readonly string[] {
  return [
    ...wrap(plain(first), width, '   ', '   '),
    ...others.flatMap((cell, at) => {
      const name = head[at + 1] ?? '';
      return cell === ''
        ? []
        : wrap(plain(name === '' ? cell : `${name}: ${cell}`), width, '     ', '       ');
    }),
  ];
}

/** Without links and emphasis. Backticks stay: they show what is code. */
function plain(text: string): string {
  return text
    .replaceAll(/\[((?:`[^`]*`|[^\]`])*)\]\([^)\s]+\)/g, '$1')
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll(/\*{1,2}([^*]+)\*{1,2}/g, '$1')))
    .join('');
}
