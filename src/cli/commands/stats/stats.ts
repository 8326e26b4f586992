// `semel stats`: counts what was executed, replayed and in doubt over time, from records and their history.

import { day, hour } from '../../../core/contract/period.ts';
import { shellWord } from '../../../core/visible.ts';
import { createTally } from '../../../semel/index.ts';
import { flagReader } from '../../args/flag-values.ts';
import { namespacesFor } from '../../args/namespaces.ts';
import { everyRecord } from '../../args/records.ts';
import { command } from '../../command.ts';
import { choice, text, toggle } from '../../flags.ts';
import { print, printJson, printRows } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { chart, contracts, summary } from './chart.ts';

export default command({
  name: 'stats',
  takes: '[options]',
  about: `Counts what was executed, how many calls were replayed instead, and what is in doubt, in all namespaces unless you choose
one. With --observe: what observing programs would have prevented. Pruned records are not counted.`,
  flags: {
    since: text('<duration>', 'how far to look back (default: 7d; 24h with --by hour)'),
    by: choice(['hour', 'day'], 'one line per day or per hour (default: day)'),
    tz: text('<zone>', 'time zone of days and hours (default: UTC)'),
    tool: text('<name>', 'only this contract'),
    observe: toggle('show what observing programs would have prevented'),
  },
  examples: ['semel stats', 'semel stats --since 24h --by hour', 'semel stats --observe'],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError(
        'stats',
        'takes options only',
        `Write: semel stats --tool ${shellWord(positionals[0] ?? '')}`,
      );
    const by = values.by ?? 'day';
    const slotMs = by === 'day' ? 86_400_000 : 3_600_000;
    const spanMs = flagReader('stats', values).duration('since', slotMs * (by === 'day' ? 7 : 24));
    if (spanMs === 0 || spanMs / slotMs > maxSlots)
      throw usageError(
        'stats',
        `--since ${values.since} makes ${spanMs === 0 ? 'no lines' : `more than ${maxSlots} lines`}`,
        by === 'hour' ? 'Use a shorter time, or --by day.' : 'Use another time.',
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
    else {
      const observe = values.observe ?? false;
      print(...summary(stats, observe));
      printRows('', ...chart(stats, observe), '', ...contracts(stats, observe));
    }
    return 0;
  },
});

const maxSlots = 400;
