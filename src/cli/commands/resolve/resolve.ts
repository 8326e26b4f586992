// `semel resolve`: a person's verdict about a record in doubt, about a group of them, or about all that an export has.

import { SemelError } from '../../../core/errors.ts';
import { isOwnerAlive, livenessFolder } from '../../../jobs/index.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { actFlags, actOptions, checkReason } from '../../act.ts';
import { findRecord } from '../../args/named.ts';
import { type Namespaces, namespacesFor } from '../../args/namespaces.ts';
import { mustBeOperator } from '../../caller.ts';
import { command, type Input } from '../../command.ts';
import { text, texts, toggle } from '../../flags.ts';
import { complain, print, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { resolveFrom } from './from.ts';
import { resolveGroup } from './group.ts';
import { meaningOf, resolutionOf, verdicts, verdictToChoose } from './verdict.ts';

const flags = {
  result: text('<json>', 'what the call would have returned'),
  ref: text('<id>', "the provider's own id for what landed"),
  ...actFlags,
  force: toggle('also while it is being executed, or before "not landed" can be known'),
  tool: text('<name>', 'all in doubt of this contract'),
  error: text('<text>', 'all in doubt with this error; * stands for any text'),
  from: text('<file>', 'all that this export has: CSV, JSON lines, JSON array; - is stdin'),
  match: texts(
    '<column>[=<field>]',
    "the export's column, and what it is in the record: args.orderId (default: any of its names)",
  ),
  where: texts('<column>=<value>', 'count only rows that say so'),
  'result-field': text('<column>', 'the result is this field (default: the whole row)'),
  'ref-field': text('<column>', "the provider's own id is this field"),
  'dry-run': toggle('only say what would be settled'),
  yes: toggle('do not ask before many are settled', 'y'),
} as const;

export default command({
  name: 'resolve',
  takes: '<id@fence> <verdict> | --tool … --error … <verdict> | --from <file> --match <column>',
  about: `Verdicts:
  landed        it landed; later calls get --result, or undefined where none is given
  not-landed    it definitely did not land: the next call executes
  run-again     nobody knows, and a second effect is acceptable: the next call executes
  abandon       give it up; it may have landed, so it is not done again (-m says why)
  died          the process that runs it is gone: do not wait for its lease

With --tool and --error one verdict settles a group, in every namespace unless one is named, each record under the fence that was listed. With --from a provider's
export settles what it has: a row found is "landed" with that row as the result; what is not found stays open. A column
alone is compared with a record's provider key, remote ref, key and id; every --match has to fit. If a line of the file
is malformed, nothing is settled. Refusals do not stop the others; the exit code is then 70.`,
  flags,
  examples: [
    `semel resolve 7f3a0c2b9d@2 landed --result '{"id":"re_1"}' -m "seen in Stripe"`,
    `semel resolve --tool mail.send --error 'socket hang up' not-landed --dry-run`,
    'semel resolve --from refunds.csv --match idempotency_key --where status=succeeded --dry-run',
    'semel resolve --from orders.jsonl --match id=args.orderId --result-field receipt --yes',
  ],
  async run({ values, positionals }) {
    if (!values['dry-run']) mustBeOperator('resolve', 'Deciding about a record');
    checkReason('resolve', values);
    const isGroup = values.tool !== undefined || values.error !== undefined;
    if (values.from === undefined && !isGroup) return resolveOne(values, positionals);
    const [verdict, ...others] = positionals;
    if (others.length > 0)
      throw usageError(
        'resolve',
        'it takes one record, or a group by --tool, --error or --from, and not both',
        `Write: semel resolve --tool <name> <verdict>, with one of ${verdicts}.`,
      );
    if (values.from === undefined && verdict === undefined)
      throw usageError('resolve', 'the verdict is missing', `Write one of them at the end: ${verdicts}.`);
    if (values.from === undefined) refuseExportFlags(values);
    else if ((verdict ?? 'landed') !== 'landed' || values.result !== undefined || values.ref !== undefined)
      throw usageError(
        'resolve',
        'an export says what landed, with its rows as results',
        'Leave the verdict, --result and --ref out; --result-field and --ref-field name a column.',
      );
    await using ledger = namespacesFor(values);
    const options = await ledger.optionsFor();
    const act = { ...actOptions(values), ...(values.force === undefined ? {} : { force: values.force }) };
    return values.from === undefined
      ? await resolveGroup(ledger, verdict as string, values, act, options)
      : await resolveFrom(ledger, { ...values, from: values.from }, act, options);
  },
});

type Values = Input<typeof flags>['values'];

async function resolveOne(values: Values, positionals: readonly string[]): Promise<number> {
  const [ref, verdict] = positionals;
  if (ref === undefined || verdict === undefined || positionals.length > 2)
    throw usageError(
      'resolve',
      'it takes a record and a verdict',
      `Write: semel resolve <id@fence> <verdict>, with one of ${verdicts}. \`semel doubt\` lists what is in doubt.`,
    );
  refuseExportFlags(values);
  const resolution = resolutionOf(verdict, values);
  await using ledger = namespacesFor(values);
  if (values['dry-run'])
    throw usageError('resolve', '--dry-run is for groups', 'Look at one by: semel show <id>.');
  const at = ref.lastIndexOf('@');
  const seen = await findRecord(ledger, at < 0 ? ref : ref.slice(0, at));
  if (verdict === 'died' && !values.force) await refuseLiving(ledger, seen);
  const record = await ledger.in(seen.namespace).doubts.resolve(ref, resolution, {
    ...actOptions(values),
    ...(values.force === undefined ? {} : { force: values.force }),
  });
  if (verdict === 'landed' && values.result === undefined) complain(`${meaningOf(verdict, values)}.`);
  if (values.json) {
    printJson(record);
    return 0;
  }
  const options = await ledger.optionsFor(record.namespace);
  const next = record.inDoubt
    ? `in doubt. Decide: semel resolve ${record.ref} ${verdictToChoose} ${options}`
    : record.status === 'released'
      ? 'released: the next call executes'
      : record.status;
  print(`${record.ref}  ${record.contract}  ${next}`);
  return 0;
}

/** Where there is no export they would do nothing, and somebody relies on them. */
function refuseExportFlags(values: Values): void {
  for (const flag of ['match', 'where', 'result-field', 'ref-field'] as const)
    if (values[flag] !== undefined)
      throw usageError('resolve', `--${flag} is about an export`, 'Name it by --from <file>.');
}

/** On this machine the kernel knows better. */
async function refuseLiving(ledger: Namespaces, record: RecordInfo): Promise<void> {
  const { kind, location } = await ledger.open();
  if (isOwnerAlive(livenessFolder(kind, location), record.owner) !== true) return;
  throw new SemelError(
    'RESOLVE_STALE',
    `What runs ${record.contract} has not died: its processes are there.`,
    {
      next: 'End them first, or force it (--force) if they cannot do it any more.',
    },
  );
}
