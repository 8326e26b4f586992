// `semel resolve --tool … --error … <verdict>`: one verdict about all that has one cause.

import type { ActOptions, RecordInfo } from '../../../semel/index.ts';
import { confirm } from '../../args/confirm.ts';
import type { Namespaces } from '../../args/namespaces.ts';
import { everyDoubt } from '../../args/records.ts';
import { complain, oneLine, print, printAside, printJson } from '../../render/print.ts';
import { ageText, nameOf } from '../../render/state.ts';
import { usageError } from '../../usage.ts';
import { errorMatcher, errorText } from '../doubt/groups.ts';
import { conclude, type Decision, printReport, type Report, settleMany } from './many.ts';
import { meaningOf, resolutionOf, type Words } from './verdict.ts';

interface GroupChoice extends Words {
  readonly tool: string | undefined;
  readonly error: string | undefined;
  readonly 'dry-run': boolean | undefined;
  readonly yes: boolean | undefined;
  readonly json: boolean | undefined;
}

/** Shown before somebody is asked; the number says how many more there are. */
const examples = 10;

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
      'that a process died is said of each record by itself',
      '`semel ls --status running` lists them: semel resolve <ref> died',
    );
  if (choice.ref !== undefined)
    throw usageError('resolve', '--ref is the id of one effect', 'Decide these one by one, or by --from.');
  const resolution = resolutionOf(verdict, choice);
  const found = await membersOf(ledger, choice);
  if (found.length === 0) {
    if (choice.json) printJson([]);
    else print(`Nothing in doubt is so. What there is: semel doubt ${options}`);
    return 0;
  }
  complain(`${found.length} in doubt ${found.length === 1 ? 'is' : 'are'} said to be: ${verdict}.`);
  for (const { line } of found.slice(0, examples)) printAside(`  ${line}`);
  if (found.length > examples) printAside(`  … and ${found.length - examples} more`);
  printAside(`  Of each: ${meaningOf(verdict, choice)}.`);
  if (choice['dry-run']) {
    const reports = found.map(({ ref, contract }): Report => ({ ref, contract, outcome: 'would settle' }));
    if (choice.json) printJson(reports);
    else print('Nothing was changed. Without --dry-run it is settled.');
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
  return conclude(reports, choice.json, `semel doubt ${options}`);
}

interface Member {
  readonly namespace: string;
  readonly key: string;
  readonly ref: string;
  readonly contract: string;
  readonly line: string;
}

/** As they are now: what changes before it is settled is refused by its ref. */
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
  const parts = [record.ref, nameOf(record), ageText(record), errorText(record), oneLine(record.args, 80)];
  return parts.filter((part) => part !== '').join('  ');
}
