// `semel recent`: what was done lately, a line each, for a prompt.

import { fieldOf, recentWork } from '../jobs/index.ts';
import { command } from './command.ts';
import { ledgerFor } from './ledger.ts';
import { oneLine, print, printable, printJson } from './print.ts';
import { usageError } from './usage.ts';

export default command({
  name: 'recent',
  takes: '<name> [-n 10] [--field slug]',
  about: 'The name is that of a `semel once`, a step or a pick. Newest first; only what is known to be done.',
  flags: {
    n: { type: 'string', short: 'n', value: '<n>', help: 'how many (default: 10)' },
    field: {
      type: 'string',
      value: '<path>',
      help: 'one field of the result (where it is JSON) or of the ids',
    },
  },
  examples: ['semel recent publish -n 5 --field slug', 'echo "Do not repeat: $(semel recent publish)" | llm'],
  async run({ values, positionals }) {
    const [name] = positionals;
    if (name === undefined || name === '' || positionals.length > 1)
      throw usageError('recent', 'it takes one name');
    const most = values.n ?? '10';
    if (!/^[1-9]\d{0,3}$/.test(most)) throw usageError('recent', '-n is a whole number from 1');
    await using semel = ledgerFor(values);
    const done = await recentWork(semel, name, Number(most));
    const { field } = values;
    const shown =
      field === undefined ? done : done.map((each) => ({ ...each, [field]: fieldOf(each, field) }));
    if (values.json) printJson(shown);
    else
      print(
        ...done
          .map((each) => (field === undefined ? (each.result ?? each.args) : fieldOf(each, field)))
          .filter((each) => each !== undefined && each !== '')
          .map((each) => printable(oneLine(each, 1_000))),
      );
    return 0;
  },
});
