// `semel resolve`: a person's verdict about one record in doubt, a group of them, or all that an export contains.

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
import { describeVerdict, resolutionOf, verdicts, verdictToChoose } from './verdict.ts';

const flags = {
  result: text('<json>', 'what the call would have returned'),
  ref: text('<id>', "the provider's own id for what landed"),
  ...actFlags,
  force: toggle('decide even while it is running, or while a request may still be in flight'),
  tool: text('<name>', 'decide all in doubt of this contract'),
  error: text('<text>', 'decide all in doubt with this error; * matches any text'),
  from: text('<file>', 'settle what this export contains: CSV, JSON lines or a JSON array; - is stdin'),
  match: texts(
    '<column>[=<field>]',
    "the export's column, and the record's field: args.orderId (default: any of its ids and keys)",
  ),
  where: texts('<column>=<value>', 'use only rows with this value'),
  'result-field': text('<column>', 'take the result from this column (default: the whole row)'),
  'ref-field': text('<column>', "take the provider's own id from this column"),
  'dry-run': toggle('only show what would be settled'),
  yes: toggle('do not ask for confirmation', 'y'),
} as const;

export default command({
  name: 'resolve',
  takes: '<id@fence> <verdict> | --tool … --error … <verdict> | --from <file> --match <column>',
  about: `Verdicts:
  landed        it landed: with --result '<json>' later calls get that value, without it undefined
  not-landed    it definitely did not land: the next call executes
  run-again     unknown, and a second effect is acceptable: the next call executes
  abandon       give it up; it may have landed, so it is not done again (-m says why)
  died          its process is gone: do not wait for its lease

With --tool or --error one verdict settles a group, each record under the fence that was listed. With --from a provider's
export settles what it contains: a matching row means "landed", with that row as the result; records without a row stay
open. Every --match has to fit. If a line of the file is malformed, nothing is settled. A refusal does not stop the
others; the exit code is then 70.`,
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
        'expects one record, or a group (--tool, --error or --from), not both',
        `Write: semel resolve --tool <name> <verdict>, with one of ${verdicts}.`,
      );
    if (values.from === undefined && verdict === undefined)
      throw usageError('resolve', 'the verdict is missing', `Add one at the end: ${verdicts}.`);
    if (values.from === undefined) refuseExportFlags(values);
    else if ((verdict ?? 'landed') !== 'landed' || values.result !== undefined || values.ref !== undefined)
      throw usageError(
        'resolve',
        'with --from the verdict is always "landed", and the rows are the results',
        'Leave out the verdict, --result and --ref; use --result-field and --ref-field.',
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
      'expects a record and a verdict',
      `Write: semel resolve <id@fence> <verdict>, with one of ${verdicts}. \`semel doubt\` lists what is in doubt.`,
    );
  refuseExportFlags(values);
  const resolution = resolutionOf(verdict, values);
  await using ledger = namespacesFor(values);
  if (values['dry-run'])
    throw usageError('resolve', '--dry-run is for groups', 'To look at one record: semel show <id>.');
  const at = ref.lastIndexOf('@');
  const seen = await findRecord(ledger, at < 0 ? ref : ref.slice(0, at));
  if (verdict === 'died' && !values.force) await refuseIfAlive(ledger, seen);
  const record = await ledger.in(seen.namespace).doubts.resolve(ref, resolution, {
    ...actOptions(values),
    ...(values.force === undefined ? {} : { force: values.force }),
  });
  if (verdict === 'landed' && values.result === undefined) complain(`${describeVerdict(verdict, values)}.`);
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

/** Without --from they would have no effect, and the user relies on them. */
function refuseExportFlags(values: Values): void {
  for (const flag of ['match', 'where', 'result-field', 'ref-field'] as const)
    if (values[flag] !== undefined)
      throw usageError('resolve', `--${flag} needs an export`, 'Add --from <file>.');
}

/** On this machine the kernel knows whether it is alive. */
async function refuseIfAlive(ledger: Namespaces, record: RecordInfo): Promise<void> {
  const { kind, location } = await ledger.open();
  if (isOwnerAlive(livenessFolder(kind, location), record.owner) !== true) return;
  throw new SemelError('RESOLVE_STALE', `${record.contract} is still running: its processes are alive.`, {
    next: 'Stop them first, or add --force if they can no longer do anything.',
  });
}
