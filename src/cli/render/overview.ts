// `semel --help`: all commands on one screen.

import { summaries } from '../commands/summaries.ts';
import { textWidth, wrap, wrapParagraphs } from './wrap.ts';

export function overview(width = textWidth()): string {
  const groups = Map.groupBy(Object.entries(summaries), ([, { group }]) => group);
  const lines = [
    'semel: every effect lands once',
    '',
    'Usage: semel <command> [options]',
    '',
    ...[...groups].flatMap(([group, entries]) => [
      `${group}:`,
      ...entries.flatMap(([name, { line }]) => wrap(line, width, `  ${name.padEnd(12)}`, ' '.repeat(14))),
      '',
    ]),
    ...wrapParagraphs(ending, width),
  ];
  return `${lines.join('\n')}\n`;
}

const ending = `
Every command has --store <url>, --namespace <name>, --json and --help with examples. semel --version prints the version.

Exit codes: 0 done or skipped, 1 a check found something, 64 usage, 69 store unavailable (nothing was run), 70 refused,
74 done but not recorded, 75 in flight, 76 in doubt, 124 timeout, 126 not executable, 127 not found; otherwise the
command's own.`;
