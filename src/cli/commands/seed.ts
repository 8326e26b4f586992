// `semel seed`: what a shell agent can start from, the same in every attempt of its slot.

import { shellWord } from '../../core/visible.ts';
import { picksOf, recentWork, seedOf, seedWords, weekdayOf } from '../../jobs/index.ts';
import { command } from '../command.ts';
import { texts } from '../flags.ts';
import { ledgerFor } from '../ledger.ts';
import { jsonText } from '../render/json-text.ts';
import { printable, printJson, printRows } from '../render/print.ts';
import { requireRun } from '../run-context.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'seed',
  takes: '[--recent <name>]… [--json]',
  about: `Inside \`semel run\`: prints slot, date, weekday, zone, a random-looking number, the picks of this slot, and recent work
under the given names. The same in every attempt of the slot: the run's own work is left out.`,
  flags: {
    recent: texts('<name>', 'include the last 10 results of this `semel once`; repeatable'),
  },
  examples: ['semel seed --json --recent publish | llm "write the post"'],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError(
        'seed',
        'takes options only',
        `Write: semel seed --recent ${shellWord(positionals[0] ?? '')}`,
      );
    const run = requireRun('seed');
    await using semel = ledgerFor(values);
    const { job, slot, ids } = run.id;
    const recent: Record<string, unknown> = {};
    for (const name of values.recent ?? [])
      recent[name] = (await recentWork(semel, name, 10, { run: run.text })).map(
        ({ result, args }) => result ?? args,
      );
    const seed = {
      job,
      slot,
      ids,
      date: run.date,
      weekday: weekdayOf(run.date),
      zone: run.zone,
      seed: seedOf(...seedWords(run), 'seed'),
      picks: await picksOf(semel, run),
      recent,
    };
    if (values.json) printJson(seed);
    else
      printRows(
        ...Object.entries(seed).map(([name, value]) =>
          printable(`${name}: ${typeof value === 'object' ? jsonText(value) : value}`),
        ),
      );
    return 0;
  },
});
