// `semel retry`: reopens failures, and makes what was abandoned an open question again.

import { actFlags, actOnEach, actOptions } from '../act.ts';
import { namespacesFor } from '../args/namespaces.ts';
import { mustBeOperator } from '../caller.ts';
import { command } from '../command.ts';
import { ledgerOptions } from '../ledger.ts';
import { usageError } from '../usage.ts';
import { verdictToChoose } from './resolve/verdict.ts';

export default command({
  name: 'retry',
  takes: '<id>… [-m note] [options]',
  about: `Reopens failures: the target refused, or every attempt crashed. The next call executes; nothing runs by itself. What a
person abandoned is in doubt again, since it may have landed.`,
  flags: actFlags,
  examples: ['semel retry 7f3a0c -m "the card was renewed"', 'semel ls --status failed --newer 1h'],
  async run({ values, positionals }) {
    mustBeOperator('retry', 'Deciding about a record');
    if (positionals.length === 0)
      throw usageError(
        'retry',
        'expects at least one record',
        'Write: semel retry <id>. `semel ls --status failed` lists them.',
      );
    await using ledger = namespacesFor(values);
    const facts = await ledger.open();
    return await actOnEach('retry', ledger, positionals, values, {
      act: ({ namespace, ref }) => ledger.in(namespace).records.reopen(ref, actOptions(values)),
      describe: (record) =>
        record.inDoubt
          ? `in doubt again. Decide: semel resolve ${record.ref} ${verdictToChoose} ${ledgerOptions(record.namespace, facts)}`
          : 'released: the next call executes. Nothing runs by itself: make the call again',
    });
  },
});
