// `semel doubt`: lists what needs a decision, grouped by tool and error, oldest first, and what may need one soon.

import { formatDuration } from '../../../core/contract/duration.ts';
import { shellWord } from '../../../core/visible.ts';
import { rerunsByItself, shownOwner } from '../../../jobs/index.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import type { StoreFacts } from '../../../store/store.ts';
import { flagReader } from '../../args/flag-values.ts';
import { joinNames, type Namespaces, namespacesFor } from '../../args/namespaces.ts';
import { everyDoubt, everyRecord } from '../../args/records.ts';
import { isAgent, personDecides } from '../../caller.ts';
import { command } from '../../command.ts';
import { text, toggle } from '../../flags.ts';
import { ledgerOptions } from '../../ledger.ts';
import { deadHolders } from '../../render/dead-holders.ts';
import { warnIfEmpty } from '../../render/elsewhere.ts';
import { print, printable, printJson } from '../../render/print.ts';
import {
  ageMs,
  argsText,
  contractsOf,
  isJobLock,
  isStep,
  nameOf,
  remoteRefText,
} from '../../render/state.ts';
import { usageError } from '../../usage.ts';
import { verdictToChoose } from '../resolve/verdict.ts';
import { contractLine, errorMatcher, type Group, groupCommand, groupsOf } from './groups.ts';

export default command({
  name: 'doubt',
  takes: '[options]',
  about: `Lists records in doubt, which may or may not have landed, in all namespaces unless you choose one, and abandoned ones: their
process crashed before it dispatched anything. Decide with: semel resolve <id@fence> landed, not-landed, run-again or
abandon. A call whose process is known to be dead is listed at once, otherwise when its lease is over.`,
  flags: {
    tool: text('<name>', 'only this contract, or this job'),
    error: text('<text>', 'only records with this error, as printed; * matches any text'),
    older: text('<duration>', 'only records in doubt for longer than this: 10m'),
    'exit-code': toggle('exit with 1 if anything needs a decision, for monitoring'),
  },
  examples: ['semel doubt', 'semel doubt --exit-code --older 10m', 'semel doubt --json | jq -r ".[].ref"'],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError(
        'doubt',
        'takes options only',
        `Write: semel doubt --tool ${shellWord(positionals[0] ?? '')}`,
      );
    const olderMs = flagReader('doubt', values).duration('older', 0);
    await using ledger = namespacesFor(values);
    const now = Date.now();
    const hasError = values.error === undefined ? () => true : errorMatcher(values.error);
    const items: RecordInfo[] = [];
    let younger = 0;
    const add = (item: RecordInfo) => {
      if (!hasError(item)) return;
      if (ageMs(item, now) >= olderMs) items.push(item);
      else younger += 1;
    };
    // Before the doubts: what somebody notices meanwhile is among those.
    const running = await findRunning(ledger, values.tool, now);
    const listed = new Set<string>();
    for await (const semel of ledger.each())
      for await (const item of everyDoubt(semel, values.tool)) {
        listed.add(nameIn(item));
        add(item);
      }
    for (const item of running.died) if (!listed.has(nameIn(item))) add(item);
    const groups = [
      ...groupsOf(
        items.filter((item) => !hasDied(item)),
        now,
      ),
      ...groupsOf(items.filter(hasDied), now),
    ];
    // Monitoring a namespace that no program writes to would always report that all is well.
    if (items.length === 0) await warnIfEmpty(ledger);
    if (values.json)
      printJson(
        items
          .sort((a, b) => ageMs(b, now) - ageMs(a, now))
          .map((item) => (hasDied(item) ? { ...item, processGone: true } : item)),
      );
    else {
      const names = await ledger.names();
      const facts = await ledger.open();
      const advice = new Set<string>();
      const pageOf = (group: Group) => {
        const lines = [
          ...groupLines(group, names.length === 1, facts, now),
          ...newAdvice(group, advice, now),
        ];
        return lines.at(-1) === '' ? lines : [...lines, ''];
      };
      print(
        ...(groups.length === 0
          ? [describeNothing(joinNames(names), values, younger)]
          : groups.flatMap(pageOf)),
        ...(await runningNow(ledger, running, now)),
      );
    }
    return values['exit-code'] && items.some((item) => needsDecision(item, now)) ? 1 : 0;
  },
});

function needsDecision(item: RecordInfo, now: number): boolean {
  return hasDied(item) || (item.inDoubt && !rerunsByItself(item, now));
}

/** Of all that is listed, only such an attempt has a lease that runs. */
function hasDied({ status, lapsed }: RecordInfo): boolean {
  return status === 'running' && !lapsed;
}

function nameIn({ namespace, id }: RecordInfo): string {
  return `${namespace} ${id}`;
}

/** Per group; a command lists the others. */
const maxMembers = 10;

/** Names the filters, so that nothing unseen is reported as well. */
function describeNothing(
  where: string,
  { tool, older, error }: { readonly [Name in 'tool' | 'older' | 'error']: string | undefined },
  younger: number,
): string {
  const of = tool === undefined ? '' : ` of ${tool}`;
  const since = older === undefined ? '' : ` for longer than ${older}`;
  const others = younger === 0 ? '' : ` ${younger} for less.`;
  const cause = error === undefined ? '' : ' with this error';
  return printable(`Nothing${of}${cause} is in doubt in ${where}${since}.${others}`);
}

function groupLines(
  group: Group,
  isOneNamespace: boolean,
  facts: StoreFacts,
  now: number,
): readonly string[] {
  const { namespace, contract, error, members } = group;
  const options = ledgerOptions(namespace, facts);
  const open = members.filter(({ inDoubt }) => inDoubt);
  const name = `${contract}: ${error}${isOneNamespace ? '' : `  (${namespace})`}`;
  const more = members.length - maxMembers;
  const states = members.some(hasDied) ? '--status running' : '--status in-doubt --status abandoned';
  return [
    printable(members.length === 1 ? name : `${members.length} × ${name}`),
    ...members.slice(0, maxMembers).flatMap((item) => [...entry(item, options, now), '']),
    ...(more > 0
      ? [
          `  … and ${more} more: semel ls ${states} --tool ${shellWord(contract)} -n ${members.length} ${options}`,
        ]
      : []),
    ...(open.length > 1 && !isAgent() ? [printable(`  all of them: ${groupCommand(group, options)}`)] : []),
  ];
}

/** Many groups have one cause: the same advice is given once. */
function newAdvice(group: Group, given: Set<string>, now: number): readonly string[] {
  const line = contractLine(group);
  if (isAgent() || given.has(line) || !group.members.some((item) => needsDecision(item, now))) return [];
  given.add(line);
  return [printable(`  to avoid this next time: ${line}`)];
}

function entry(item: RecordInfo, options: string, now: number): readonly string[] {
  const died = hasDied(item);
  const state = item.abandoned
    ? 'abandoned: nothing was dispatched'
    : died
      ? 'its process died after it had dispatched: in doubt'
      : 'in doubt';
  const dispatched = item.lastDispatchedAt && `, dispatched ${item.lastDispatchedAt.toISOString()}`;
  const lines = [
    `  ${item.ref}  ${state} for ${formatDuration(ageMs(item, now))}`,
    `    key      ${item.key}`,
    `    args     ${item.args === undefined ? 'not stored' : argsText(item)}`,
    ...(item.run === undefined ? [] : [`    run      ${item.run}`]),
    `    attempts ${item.attempts}, last by ${shownOwner(item.owner)}${dispatched ?? ''}`,
  ];
  if (item.providerKey !== undefined) lines.push(`    sent key ${item.providerKey}`);
  const remoteRef = remoteRefText(item);
  if (remoteRef !== undefined) lines.push(`    remote   ${remoteRef}`);
  if (rerunsByItself(item, now))
    lines.push('    nothing to decide: the next start of the job takes care of it');
  else if ((item.inDoubt || died) && isAgent()) lines.push(`    ${personDecides}`);
  else if (died) {
    lines.push(
      '    the next call notices and decides as its contract says; without one, say so, then decide:',
    );
    lines.push(`    decide   semel resolve ${item.ref} died ${options}`);
  } else if (item.inDoubt) lines.push(`    decide   semel resolve ${item.ref} ${verdictToChoose} ${options}`);
  if (item.abandoned) lines.push('    nothing landed: repeat the call to execute it');
  return lines.map(printable);
}

const maxRunning = 5;

function mayHaveLanded(record: RecordInfo, now: number): boolean {
  if (isStep(record) || rerunsByItself({ ...record, inDoubt: true }, now)) return false;
  return record.firstDispatchedAt !== undefined || record.doubt;
}

interface Running {
  /** Dispatched by a process that is known to be gone: the ledger says so only when the next call or start notices. */
  readonly died: readonly RecordInfo[];
  readonly count: number;
  readonly oldest: readonly RecordInfo[];
  readonly isDead: (record: RecordInfo) => boolean;
}

async function findRunning(ledger: Namespaces, tool: string | undefined, now: number): Promise<Running> {
  const died: RecordInfo[] = [];
  const oldest: RecordInfo[] = [];
  let count = 0;
  const isDead = await deadHolders(ledger);
  for await (const semel of ledger.each())
    for (const contract of tool === undefined ? [undefined] : contractsOf(tool)) {
      const query = { status: 'running', ...(contract === undefined ? {} : { contract }) } as const;
      for await (const record of everyRecord(semel, query)) {
        if (record.lapsed || isJobLock(record)) continue;
        if (mayHaveLanded(record, now) && isDead(record)) {
          died.push(record);
          continue;
        }
        count += 1;
        oldest.push(record);
        oldest.sort((a, b) => ageMs(b, now) - ageMs(a, now));
        oldest.length = Math.min(oldest.length, maxRunning);
      }
    }
  return { died, count, oldest, isDead };
}

async function runningNow(
  ledger: Namespaces,
  { count, oldest, isDead }: Running,
  now: number,
): Promise<readonly string[]> {
  const [first] = oldest;
  if (first === undefined) return [];
  const endOf = (record: RecordInfo) =>
    isDead(record)
      ? 'whose process is gone: the next call or start notices'
      : `lease ends in ${formatDuration(record.leaseLeftMs)} unless renewed`;
  const options = await ledger.optionsFor();
  const died = isAgent()
    ? ''
    : ` If its process is gone, you need not wait for its lease: semel resolve <ref> died ${options}`;
  return [
    `${count} running now, the oldest for ${formatDuration(ageMs(first, now))}.${died}`,
    ...oldest.map(
      (record) =>
        `  ${record.ref}  ${nameOf(record)}  for ${formatDuration(ageMs(record, now))} by ${shownOwner(record.owner)}, ${endOf(record)}`,
    ),
    ...(count > maxRunning
      ? [`  … and ${count - maxRunning} more: semel ls --status running ${options}`]
      : []),
  ].map(printable);
}
