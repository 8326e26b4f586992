// `semel prune`: removes what has expired, or says how much that would be.

import { command } from '../command.ts';
import { toggle } from '../flags.ts';
import { ledgerFor } from '../ledger.ts';
import { print, printJson } from '../render/print.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'prune',
  takes: '[options]',
  about: `Removes expired records, of all namespaces of the ledger, with their history. What was done "ever" keeps its key and
loses only its result. What is running or in doubt stays, however old. Nothing depends on it: programs that use the
ledger prune it by themselves.`,
  flags: { 'dry-run': toggle('only count') },
  examples: ['semel prune --dry-run', 'semel prune'],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError('prune', 'it takes options only', 'One record is ended by: semel forget <id>.');
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
