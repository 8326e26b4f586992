// `semel stats`: what was executed, replayed and in doubt over time, from the records and their history.

import { day, hour } from '../../../core/contract/period.ts';
import { shellWord } from '../../../core/visible.ts';
import { flagReader } from '../../args/flag-values.ts';
import { namespacesFor } from '../../args/namespaces.ts';
import { everyRecord } from '../../args/records.ts';
import { command } from '../../command.ts';
import { choice, text, toggle } from '../../flags.ts';
import { print, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { page } from './chart.ts';
import { createTally } from './tally.ts';

export default command({
  name: 'stats',
  takes: '[options]',
  about: `Counts records and their history, of every namespace unless one is named: what was executed, how many calls were replayed instead, what is in doubt. With --observe:
what a semel that only observes would have prevented. What was pruned is not counted.`,
  flags: {
    since: text('<duration>', 'how far back (default 7d; with --by hour 24h)'),
    by: choice(['hour', 'day'], 'a line per day, or per hour (default day)'),
    tz: text('<zone>', 'the time zone of days and hours (default UTC)'),
    tool: text('<name>', 'only this contract'),
    observe: toggle('what observing would have prevented'),
  },
  examples: ['semel stats', 'semel stats --since 24h --by hour', 'semel stats --observe'],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError(
        'stats',
        'it takes options only',
        `Write: semel stats --tool ${shellWord(positionals[0] ?? '')}`,
      );
    const by = values.by ?? 'day';
    const slotMs = by === 'day' ? 86_400_000 : 3_600_000;
    const spanMs = flagReader('stats', values).duration('since', slotMs * (by === 'day' ? 7 : 24));
    if (spanMs === 0 || spanMs / slotMs > mostSlots)
      throw usageError(
        'stats',
        `--since ${values.since} makes ${spanMs === 0 ? 'no lines' : `more than ${mostSlots} lines`}`,
        by === 'hour' ? 'Take less, or --by day.' : 'Take another time.',
      );
    const { zone } = (by === 'day' ? day : hour)(values.tz ?? 'UTC');
    const now = Date.now();
    const tally = createTally(now - spanMs, now, { unit: by, zone });
    await using ledger = namespacesFor(values);
    const query = values.tool === undefined ? {} : { contract: values.tool };
    for await (const semel of ledger.each())
      for await (const record of everyRecord(semel, query))
        tally.add(record, await semel.records.history(record.key));
    const stats = tally.result();
    if (values.json) printJson(stats);
    else print(...page(stats, values.observe ?? false));
    return 0;
  },
});

const mostSlots = 400;
