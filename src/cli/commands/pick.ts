// `semel pick`: a choice that is the same in every attempt of the slot.

import { isBlank } from '../../core/plain.ts';
import { pick } from '../../jobs/index.ts';
import { flagReader } from '../args/flag-values.ts';
import { smallText } from '../args/input.ts';
import { command } from '../command.ts';
import { text } from '../flags.ts';
import { ledgerFor } from '../ledger.ts';
import { printJson } from '../render/print.ts';
import { requireRun } from '../run-context.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'pick',
  takes: '<name> --from a,b,c [--not-recent 3]',
  about: `Inside \`semel run\`. The choice depends only on job, slot, ids and name, and is stored on first use: every later
attempt of the slot gets it, even if the list changed.`,
  flags: {
    from: text('<a,b,c>', 'what to choose from; - reads one item per line from stdin'),
    'not-recent': text('<n>', 'avoid what the last n slots chose'),
  },
  examples: ['topic=$(semel pick topic --from launches,interviews,how-to --not-recent 2)'],
  async run({ values, positionals }) {
    const [name] = positionals;
    if (name === undefined || isBlank(name) || positionals.length > 1)
      throw usageError('pick', 'expects the name of one choice');
    const run = requireRun('pick');
    const from = parseList(values.from);
    if (from.length === 0) throw usageError('pick', 'there is nothing to choose from', 'Write --from a,b,c.');
    const notRecent = flagReader('pick', values).whole('not-recent', 0, { to: 9_999 });
    await using semel = ledgerFor(values, { make: true });
    const choice = await pick(semel, run, name, from, notRecent);
    if (values.json) printJson({ name, choice, slot: run.id.slot });
    // For a script: exactly as it was given.
    else process.stdout.write(`${typeof choice === 'string' ? choice : JSON.stringify(choice)}\n`);
    return 0;
  },
});

function parseList(given: string | undefined): readonly string[] {
  const items = given === '-' ? smallText('pick', '-').split('\n') : (given ?? '').split(',');
  return [...new Set(items.map((item) => item.trim()).filter((item) => item !== ''))];
}
