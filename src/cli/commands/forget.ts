// `semel forget`: expires settled records, so that the next call executes. Asks first.

import { actFlags, actOnEach, actOptions } from '../act.ts';
import { confirm } from '../args/confirm.ts';
import { namedRecord } from '../args/named.ts';
import { namespacesFor } from '../args/namespaces.ts';
import { mustBeOperator } from '../caller.ts';
import { command } from '../command.ts';
import { toggle } from '../flags.ts';
import { complain, print, printAside } from '../render/print.ts';
import { ageText, argsText, nameOf, stateOf } from '../render/state.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'forget',
  takes: '<id>… [-m note] [options]',
  about: `Expires settled records now: the next call of each executes, and what had landed lands a second time. Records in doubt
cannot be forgotten: use semel resolve.`,
  flags: { ...actFlags, yes: toggle('do not ask for confirmation', 'y') },
  examples: ['semel forget 7f3a0c -m "the customer wants it again"', 'semel forget 7f3a0c 81bd22 --yes'],
  async run({ values, positionals }) {
    mustBeOperator('forget', 'Deciding about a record');
    if (positionals.length === 0)
      throw usageError(
        'forget',
        'expects at least one record',
        'Write: semel forget <id>. `semel ls` lists them.',
      );
    await using ledger = namespacesFor(values);
    const records = [];
    // Read before asking: a record that changes in the meantime is refused by its ref.
    for (const named of new Set(positionals)) records.push(await namedRecord('forget', ledger, named));
    if (!values.yes) {
      const lines = records.map(
        (record) =>
          `  ${record.ref}  ${nameOf(record)}  ${stateOf(record)} ${ageText(record)}  ${argsText(record, 80)}`,
      );
      complain('the next call of each of these executes, whether it landed before or not:');
      printAside(...lines.map((line) => line.trimEnd()));
    }
    if (!(await confirm('Forget?', { command: 'forget', yes: values.yes }))) {
      print('Nothing was changed.');
      return 70;
    }
    return await actOnEach(
      'forget',
      ledger,
      records.map(({ ref }) => ref),
      values,
      {
        act: ({ namespace, ref }) => ledger.in(namespace).records.forget(ref, actOptions(values)),
        describe: () => 'forgotten: the next call executes',
      },
    );
  },
});
