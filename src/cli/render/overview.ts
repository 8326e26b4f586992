// `semel --help`: all commands on one screen.

import { summaries } from '../commands/summaries.ts';

export function overview(): string {
  const groups = Map.groupBy(Object.entries(summaries), ([, { group }]) => group);
  const lines = [...groups].flatMap(([group, entries]) => [
    `${group}:`,
    ...entries.map(([name, { line }]) => `  ${name.padEnd(12)}${line}`),
    '',
  ]);
  return `semel: every effect lands once

Usage: semel <command> [options]

${lines.join('\n')}
Every command has --store <url>, --namespace <name>, --json and --help with examples.
semel --version prints the version.

Exit codes: 0 done or skipped, 1 a check found something, 64 usage, 69 store unavailable (nothing was run), 70 refused,
74 done but not recorded, 75 in flight, 76 in doubt, 124 timeout, 126 not executable, 127 not found; otherwise the
command's own.
`;
}
