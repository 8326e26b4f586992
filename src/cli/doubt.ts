// `semel doubt`: what needs a decision, grouped by tool and error, oldest first.

import { type Duration, durationMs, formatDuration } from '../core/duration.ts';
import { commandOptions, type RecordInfo, type Semel } from '../semel/index.ts';
import { command } from './command.ts';
import { ledgerFor } from './ledger.ts';
import { oneLine, print, printable, printJson } from './print.ts';

export default command({
  name: 'doubt',
  takes: '[options]',
  about: `Lists what is in doubt: it may have landed, and nobody knows. Also what was abandoned: its process died before it
dispatched anything, and nobody called it again. Decide with: semel resolve <id@fence> landed|not-landed|run-again|abandon`,
  flags: {
    tool: { type: 'string', value: '<name>', help: 'only this contract' },
    older: { type: 'string', value: '<duration>', help: 'only what has been open for longer: 10m' },
    'exit-code': { type: 'boolean', help: 'exit with 1 if anything is in doubt, for monitoring' },
  },
  examples: ['semel doubt', 'semel doubt --exit-code --older 10m', 'semel doubt --json | jq -r ".[].ref"'],
  async run({ values }) {
    const olderMs = values.older === undefined ? 0 : durationMs(values.older as Duration, '--older');
    await using semel = ledgerFor(values);
    const items = (await everyDoubt(semel, values.tool)).filter((item) => ageOf(item) >= olderMs);
    if (values.json) printJson(items);
    else print(...page(items, semel.namespace, commandOptions(semel.namespace, await semel.open()) ?? ''));
    return values['exit-code'] && items.some((item) => item.inDoubt) ? 1 : 0;
  },
});

/** Oldest first. */
export async function everyDoubt(semel: Semel, contract: string | undefined): Promise<readonly RecordInfo[]> {
  const items: RecordInfo[] = [];
  for (let after: string | undefined; ; ) {
    const page = await semel.doubts.list({
      ...(contract === undefined ? {} : { contract }),
      ...(after === undefined ? {} : { after }),
    });
    items.push(...page.items);
    if (page.next === undefined) break;
    after = page.next;
  }
  return items.sort((a, b) => ageOf(b) - ageOf(a));
}

export function errorOf(item: RecordInfo): string {
  return item.error?.message ?? 'the process that ran it ended without a word';
}

function ageOf(item: RecordInfo): number {
  return Math.max(0, Date.now() - (item.lastDispatchedAt ?? item.updatedAt).getTime());
}

function page(items: readonly RecordInfo[], namespace: string, options: string): readonly string[] {
  if (items.length === 0)
    return [
      `Nothing is in doubt in ${namespace}. (An application's namespace is its package name: --namespace.)`,
    ];
  const groups = Map.groupBy(items, (item) => `${item.contract}: ${errorOf(item)}`);
  return [...groups].flatMap(([name, members]) => [
    printable(members.length === 1 ? name : `${members.length} × ${name}`),
    ...members.flatMap((item) => [...entry(item, options), '']),
  ]);
}

function entry(item: RecordInfo, options: string): readonly string[] {
  const state = item.abandoned ? 'abandoned: nothing was dispatched' : 'in doubt';
  const dispatched = item.lastDispatchedAt && `, dispatched ${item.lastDispatchedAt.toISOString()}`;
  const lines = [
    `  ${item.ref}  ${state} for ${formatDuration(ageOf(item))}`,
    `    key      ${item.key}`,
    `    args     ${item.args === undefined ? 'not stored' : oneLine(item.args)}`,
    `    attempts ${item.attempts}, last by ${item.owner}${dispatched ?? ''}`,
  ];
  if (item.providerKey !== undefined) lines.push(`    sent key ${item.providerKey}`);
  if (item.remoteRef !== undefined) lines.push(`    remote   ${item.remoteRef}`);
  if (item.inDoubt)
    lines.push(`    decide   semel resolve ${item.ref} landed|not-landed|run-again|abandon ${options}`);
  return lines.map(printable);
}
