// `semel retry`: a failure no longer answers for its key, and what was given up is an open question again.

import { commandOptions } from '../semel/index.ts';
import { actFlags, actOnEach, actOptions } from './act.ts';
import { mustBeOperator } from './caller.ts';
import { command } from './command.ts';
import { ledgerFor } from './ledger.ts';
import { usageError } from './usage.ts';

export default command({
  name: 'retry',
  takes: '<id>… [-m note] [options]',
  about: `Reopens failures: the target refused, or attempts died again and again. The next call executes; nothing runs by itself.
What a person gave up ("abandon") becomes an open question again, since it may have landed.`,
  flags: actFlags,
  examples: ['semel retry 7f3a0c -m "the card was renewed"', 'semel ls --status failed --newer 1h'],
  async run({ values, positionals }) {
    mustBeOperator('retry', 'Deciding about a record');
    if (positionals.length === 0)
      throw usageError(
        'retry',
        'it takes at least one record',
        'Write: semel retry <id>. `semel ls --status failed` lists them.',
      );
    await using semel = ledgerFor(values);
    const options = commandOptions(semel.namespace, await semel.open()) ?? '';
    return await actOnEach('retry', semel, positionals, values, {
      act: (ref) => semel.records.reopen(ref, actOptions(values)),
      said: (record) =>
        record.inDoubt
          ? `in doubt again. Decide: semel resolve ${record.ref} landed|not-landed|run-again|abandon ${options}`
          : 'released: the next call executes. Nothing runs by itself: make the call again',
    });
  },
});
