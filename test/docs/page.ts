// A page as the tests of the documentation see it: headings with their anchors, links, rows of tables, prose.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');

export interface Page {
  readonly path: string;
  readonly text: string;
  /** Without fenced blocks. */
  readonly unfenced: string;
  /** Without fenced blocks, code and link targets: what people read as sentences. */
  readonly prose: string;
}

export function readPage(path: string): Page {
  const text = readFileSync(join(root, path), 'utf8');
  const unfenced = text.replaceAll(/^ *(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\1 *$/gm, '');
  const prose = unfenced.replaceAll(/`[^`\n]*`/g, '').replaceAll(/\]\([^)]*\)/g, ']');
  return { path, text, unfenced, prose };
}

export function allPages(): Page[] {
  return globSync(['*.md', 'docs/**/*.md', 'examples/*.md'], { cwd: root }).sort().map(readPage);
}

export function headings({ unfenced }: Page, level?: number): string[] {
  return [...unfenced.matchAll(/^(#+) (.*)$/gm)]
    .filter(([, marks]) => level === undefined || marks!.length === level)
    .map(([, , title]) => title!);
}

/** As GitHub makes it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

export function links({ unfenced }: Page): string[] {
  return [...unfenced.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
}

/** The cells of all tables under these headings, or of the whole page. */
export function rows(page: Page, ...under: string[]): string[][] {
  return sections(page, under)
    .split('\n')
    .filter((line) => /^\s*\|/.test(line))
    .map((line) =>
      line
        .trim()
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
    .filter(([first]) => !/^-*$/.test(first!));
}

/** The names in backticks that open a row. */
export function firstNames(page: Page, ...under: string[]): string[] {
  return rows(page, ...under).flatMap(([first]) => /^`([\w.$]+)(?:\(\w*\))?`$/.exec(first!)?.[1] ?? []);
}

export function sections({ unfenced }: Page, titles: readonly string[]): string {
  if (titles.length === 0) return unfenced;
  return titles
    .map((title) => {
      const [, body] = new RegExp(`^#+ ${title}$([\\s\\S]*?)(?=^#+ |(?![\\s\\S]))`, 'm').exec(unfenced) ?? [];
      if (body === undefined) throw new Error(`no heading "${title}"`);
      return body;
    })
    .join('\n');
}
