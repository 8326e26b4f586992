// `semel forget`: ends the window of settled records, so that the next call executes. Asks first.

import { actFlags, actOnEach, actOptions } from '../act.ts';
import { confirmed } from '../args/confirm.ts';
import { namedRecord } from '../args/named.ts';
import { namespacesFor } from '../args/namespaces.ts';
import { mustBeOperator } from '../caller.ts';
import { command } from '../command.ts';
import { toggle } from '../flags.ts';
import { complain, oneLine, print, printAside } from '../render/print.ts';
import { ageText, nameOf, stateOf } from '../render/state.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'forget',
  takes: '<id>… [-m note] [options]',
  about: `Ends the window of settled records now. They no longer answer for their keys: the next call of each executes, and what had
landed lands a second time. What is in doubt cannot be forgotten: semel resolve decides it.`,
  flags: { ...actFlags, yes: toggle('do not ask', 'y') },
  examples: ['semel forget 7f3a0c -m "the customer wants it again"', 'semel forget 7f3a0c 81bd22 --yes'],
  async run({ values, positionals }) {
    mustBeOperator('forget', 'Deciding about a record');
    if (positionals.length === 0)
      throw usageError(
        'forget',
        'it takes at least one record',
        'Write: semel forget <id>. `semel ls` lists them.',
      );
    await using ledger = namespacesFor(values);
    const records = [];
    // Found before anybody is asked; what changes while they think is refused by its ref.
    for (const named of new Set(positionals)) records.push(await namedRecord('forget', ledger, named));
    if (!values.yes) {
      const lines = records.map(
        (record) =>
          `  ${record.ref}  ${nameOf(record)}  ${stateOf(record)} ${ageText(record)}  ${oneLine(record.args, 80)}`,
      );
      complain('the next call of each of these executes, whether it landed before or not:');
      printAside(...lines.map((line) => line.trimEnd()));
    }
    if (!(await confirmed('Forget?', { command: 'forget', yes: values.yes }))) {
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
        said: () => 'forgotten: the next call executes',
      },
    );
  },
});
