// `semel resolve --tool … --error … <verdict>`: one verdict for all records with one cause.

import type { ActOptions, RecordInfo } from '../../../semel/index.ts';
import { confirm } from '../../args/confirm.ts';
import type { Namespaces } from '../../args/namespaces.ts';
import { everyDoubt } from '../../args/records.ts';
import { complain, print, printAside, printJson } from '../../render/print.ts';
import { ageText, argsText, nameOf } from '../../render/state.ts';
import { usageError } from '../../usage.ts';
import { errorMatcher, errorText } from '../doubt/groups.ts';
import { type Decision, printReport, type Report, settleMany, summarize } from './many.ts';
import { describeVerdict, resolutionOf, type VerdictOptions } from './verdict.ts';

interface GroupChoice extends VerdictOptions {
  readonly tool: string | undefined;
  readonly error: string | undefined;
  readonly 'dry-run': boolean | undefined;
  readonly yes: boolean | undefined;
  readonly json: boolean | undefined;
}

/** Listed before the confirmation. */
const maxExamples = 10;

export async function resolveGroup(
  ledger: Namespaces,
  verdict: string,
  choice: GroupChoice,
  act: ActOptions,
  options: string,
): Promise<number> {
  if (verdict === 'died')
    throw usageError(
      'resolve',
      'died is a verdict about one record',
      'List them with `semel ls --status running`, then: semel resolve <ref> died',
    );
  if (choice.ref !== undefined)
    throw usageError('resolve', '--ref is the id of one effect', 'Decide these one by one, or use --from.');
  const resolution = resolutionOf(verdict, choice);
  const found = await membersOf(ledger, choice);
  if (found.length === 0) {
    if (choice.json) printJson([]);
    else print(`Nothing in doubt matches. To list all: semel doubt ${options}`);
    return 0;
  }
  complain(`${found.length} in doubt, to be settled as: ${verdict}.`);
  for (const { line } of found.slice(0, maxExamples)) printAside(`  ${line}`);
  if (found.length > maxExamples) printAside(`  … and ${found.length - maxExamples} more`);
  printAside(`  For each: ${describeVerdict(verdict, choice)}.`);
  if (choice['dry-run']) {
    const reports = found.map(({ ref, contract }): Report => ({ ref, contract, outcome: 'would settle' }));
    if (choice.json) printJson(reports);
    else print('Nothing was changed. Leave out --dry-run to settle.');
    return 0;
  }
  if (!(await confirm(`Settle ${found.length}?`, { command: 'resolve', yes: choice.yes }))) {
    print('Nothing was changed.');
    return 70;
  }
  const decisions = found.map(
    ({ namespace, key, ref, contract }): Decision => ({
      namespace,
      key,
      ref,
      contract,
      resolution,
      note: undefined,
      because: '',
    }),
  );
  const reports = await settleMany(ledger, decisions, act, choice.json ? () => undefined : printReport);
  return summarize(reports, choice.json, `semel doubt ${options}`);
}

interface Member {
  readonly namespace: string;
  readonly key: string;
  readonly ref: string;
  readonly contract: string;
  readonly line: string;
}

/** As they are now: a record that changes before it is settled is refused by its ref. */
async function membersOf(ledger: Namespaces, { tool, error }: GroupChoice): Promise<readonly Member[]> {
  const isMeant = error === undefined ? () => true : errorMatcher(error);
  const found: Member[] = [];
  const isOneNamespace = (await ledger.names()).length === 1;
  for await (const semel of ledger.each())
    for await (const record of everyDoubt(semel, tool)) {
      if (!record.inDoubt || !isMeant(record)) continue;
      const { namespace, key, ref, contract } = record;
      const line = isOneNamespace ? lineOf(record) : `${lineOf(record)}  (${namespace})`;
      found.push({ namespace, key, ref, contract, line });
    }
  return found;
}

function lineOf(record: RecordInfo): string {
  const parts = [record.ref, nameOf(record), ageText(record), errorText(record), argsText(record, 80)];
  return parts.filter((part) => part !== '').join('  ');
}
