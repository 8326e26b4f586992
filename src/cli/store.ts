// `semel store`: what keeps the records, as a whole: looked at, made, moved.

import { command } from './command.ts';
import { acceptLoss } from './store/accept-loss.ts';
import { check } from './store/check.ts';
import { copy } from './store/copy.ts';
import { migrate } from './store/migrate.ts';
import { usageError } from './usage.ts';

const words = { check, migrate, copy, 'accept-loss': acceptLoss };

export default command({
  name: 'store',
  takes: 'check|migrate|copy|accept-loss [options]',
  about: `check        opens the store, tells what is true of it and what is in it, and measures what it costs
migrate      makes its schema, or brings it up to date, for programs that may not do so themselves
copy         moves a ledger to another store: copies it while it is in use, seals it (programs get STORE_MOVED with the new
             address), copies what changed since, compares every record, and opens the new one. Interrupted, the same
             command goes on. No open question is lost, and whoever still runs can settle at the new store
accept-loss  lets a store be used again that has noticed that it forgot something`,
  flags: {
    from: { type: 'string', value: '<url>', help: 'copy: the ledger that is in use' },
    to: {
      type: 'string',
      value: '<url>',
      help: 'copy: where it goes; made if it is missing, refused if it has records',
    },
    'dry-run': { type: 'boolean', help: 'copy, migrate: only tell what would be done' },
    unseal: { type: 'boolean', help: 'copy: give it up; the ledger of --from is in use again. Asks first' },
    note: { type: 'string', short: 'm', value: '<text>', help: 'accept-loss: why' },
    yes: { type: 'boolean', short: 'y', help: 'do not ask' },
  },
  examples: [
    'semel store check',
    'semel store migrate --store postgres://ledger@db.example/shop --dry-run',
    'semel store copy --from sqlite: --to postgres://ledger@db.example/shop',
    'semel store copy --from sqlite: --to postgres://ledger@db.example/shop --unseal',
  ],
  async run({ values, positionals }) {
    const [word, ...more] = positionals;
    if (word === undefined || !Object.hasOwn(words, word) || more.length > 0)
      throw usageError('store', `it takes one of ${Object.keys(words).join(', ')}`);
    return words[word as keyof typeof words](values);
  },
});
