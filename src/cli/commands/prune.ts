// `semel prune`: removes expired records, or counts them.

import { command } from '../command.ts';
import { toggle } from '../flags.ts';
import { ledgerFor } from '../ledger.ts';
import { print, printJson } from '../render/print.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'prune',
  takes: '[options]',
  about: `Removes expired records of all namespaces, with their history. Records with \`per: 'ever'\` keep their key and lose only
their result. Records that are running or in doubt stay, however old. It is optional: programs that use the ledger prune it
themselves.`,
  flags: { 'dry-run': toggle('only count them') },
  examples: ['semel prune --dry-run', 'semel prune'],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError('prune', 'takes options only', 'To expire one record: semel forget <id>.');
    const dryRun = values['dry-run'] ?? false;
    await using semel = ledgerFor(values);
    const count = await semel.records.prune({ dryRun });
    if (values.json) printJson(dryRun ? { expired: count } : { pruned: count });
    else print(sentence(count, dryRun));
    return 0;
  },
});

function sentence(count: number, dryRun: boolean): string {
  if (count === 0) return 'Nothing has expired.';
  const records = count === 1 ? '1 record' : `${count} records`;
  return dryRun
    ? `${records} ${count === 1 ? 'has' : 'have'} expired. To remove: semel prune`
    : `Pruned ${records}.`;
}
