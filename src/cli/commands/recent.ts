// `semel recent`: recent work, one line each, for a prompt.

import { isBlank } from '../../core/plain.ts';
import { readField, recentWork } from '../../jobs/index.ts';
import { flagReader } from '../args/flag-values.ts';
import { command } from '../command.ts';
import { text } from '../flags.ts';
import { ledgerFor } from '../ledger.ts';
import { oneLine, printable, printJson, printRows } from '../render/print.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'recent',
  takes: '<name> [-n 10] [--field slug]',
  about:
    'The name is that of a `semel once`, a step or a pick. Newest first; lists only what is known to be done.',
  flags: {
    limit: text('<count>', 'maximum number of results (default: 10)', 'n'),
    field: text('<path>', 'print one field of the result (if it is JSON) or of the ids'),
  },
  examples: ['semel recent publish -n 5 --field slug', 'echo "Do not repeat: $(semel recent publish)" | llm'],
  async run({ values, positionals }) {
    const [name] = positionals;
    if (name === undefined || isBlank(name) || positionals.length > 1)
      throw usageError('recent', 'expects one name');
    const most = flagReader('recent', values).whole('limit', 10, { from: 1, to: 9_999 });
    await using semel = ledgerFor(values);
    const done = await recentWork(semel, name, most);
    const { field } = values;
    const shown =
      field === undefined ? done : done.map((each) => ({ ...each, [field]: readField(each, field) }));
    if (values.json) printJson(shown);
    else
      printRows(
        ...done
          .map((each) => (field === undefined ? (each.result ?? each.args) : readField(each, field)))
          .filter((each) => each !== undefined && each !== '')
          .map((each) => printable(oneLine(each, 1_000))),
      );
    return 0;
  },
});
