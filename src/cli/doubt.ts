// `semel doubt`: what needs a decision, grouped by tool and error.

import { parseArgs } from 'node:util';
import { formatDuration } from '../core/duration.ts';
import { commandOptions, type RecordInfo } from '../semel/index.ts';
import { ledgerOptions, semelOf } from './ledger-options.ts';
import { printable, printableJson } from './printable.ts';

const help = `semel doubt: what is in doubt, and what was abandoned before it dispatched anything

Usage: semel doubt [--contract <name>] [--exit-code] [--json] [--store <url>] [--namespace <name>]

  --contract <name>   only this tool
  --exit-code         exit with 1 if anything is in doubt

Decide with: semel resolve <id@fence> landed|not-landed|run-again|abandon
`;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { ...ledgerOptions, contract: { type: 'string' }, 'exit-code': { type: 'boolean' } },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  await using semel = semelOf(values);
  const items: RecordInfo[] = [];
  for (let after: string | undefined; ; ) {
    const page = await semel.doubts.list({
      ...(values.contract === undefined ? {} : { contract: values.contract }),
      ...(after === undefined ? {} : { after }),
    });
    items.push(...page.items);
    if (page.next === undefined) break;
    after = page.next;
  }
  const options = commandOptions(semel.namespace, await semel.open()) ?? '';
  process.stdout.write(values.json ? printableJson(items) : page(items, semel.namespace, options));
  return values['exit-code'] && items.some((item) => item.inDoubt) ? 1 : 0;
}

function page(items: readonly RecordInfo[], namespace: string, options: string): string {
  if (items.length === 0)
    return `Nothing is in doubt in ${namespace}. (An application's namespace is its package name: --namespace.)\n`;
  return items.map((item) => `${entry(item, options)}\n`).join('\n');
}

function entry(item: RecordInfo, options: string): string {
  const age = formatDuration(Math.max(0, Date.now() - item.updatedAt.getTime()));
  const lines = [
    `${item.ref}  ${item.contract}  ${item.abandoned ? 'abandoned: nothing was dispatched' : 'in doubt'} for ${age}`,
    `  key      ${item.key}`,
    `  args     ${shown(item.args)}`,
    `  error    ${item.error?.message ?? 'the process that ran it ended without a word'}`,
    `  attempts ${item.attempts}, last by ${item.owner}${item.lastDispatchedAt === undefined ? '' : `, dispatched ${item.lastDispatchedAt.toISOString()}`}`,
  ];
  if (item.providerKey !== undefined) lines.push(`  sent key ${item.providerKey}`);
  if (item.remoteRef !== undefined) lines.push(`  remote   ${item.remoteRef}`);
  if (item.inDoubt)
    lines.push(`  decide   semel resolve ${item.ref} landed|not-landed|run-again|abandon ${options}`);
  return lines.map(printable).join('\n');
}

function shown(args: unknown): string {
  if (args === undefined) return 'not stored';
  const text = JSON.stringify(args) ?? String(args);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
