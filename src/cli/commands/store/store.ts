// `semel store`: what keeps the records, as a whole: looked at, made, moved.

import { command } from '../../command.ts';
import { text, toggle } from '../../flags.ts';
import { usageError } from '../../usage.ts';
import { acceptLoss } from './accept-loss.ts';
import { backup } from './backup.ts';
import { check } from './check.ts';
import { copy } from './copy.ts';
import { migrate } from './migrate.ts';
import { restore } from './restore.ts';

const words = { check, migrate, copy, 'accept-loss': acceptLoss };
const wordsWithFile = { backup, restore };
const names: readonly string[] = [...Object.keys(words), ...Object.keys(wordsWithFile)];

export default command({
  name: 'store',
  takes: 'check|migrate|copy|accept-loss|backup|restore [<file>] [options]',
  about: `check        opens the store, tells what is true of it and what is in it, verifies every record of a SQLite ledger, and
             measures what it costs; exits with 1 if something is damaged
migrate      makes its schema, or brings it up to date, for programs that may not do so themselves
copy         moves a ledger to another store: copies it while it is in use, seals it (programs get STORE_MOVED with the new
             address), copies what changed since, compares every record, and opens the new one. Interrupted, the same
             command goes on. No open question is lost, and whoever still runs can settle at the new store
accept-loss  lets a store be used again that has noticed that it forgot something
backup       copies a SQLite ledger into a new file, also while programs use it
restore      puts a backup in place of a SQLite ledger and keeps what was there. What was done since the backup is not in it:
             the ledger stays closed until \`accept-loss\`, or opens at once with --nothing-since`,
  flags: {
    from: text('<url>', 'copy: the ledger that is in use'),
    to: text('<url>', 'copy: where it goes; made if it is missing, refused if it has records'),
    'dry-run': toggle('copy, migrate: only tell what would be done'),
    unseal: toggle('copy: give it up; the ledger of --from is in use again. Asks first'),
    'nothing-since': toggle('restore: nothing was done since the backup was made'),
    note: text('<text>', 'accept-loss, restore: why', 'm'),
    yes: toggle('do not ask', 'y'),
  },
  examples: [
    'semel store check',
    'semel store migrate --store postgres://ledger@db.example/shop --dry-run',
    'semel store copy --from sqlite: --to postgres://ledger@db.example/shop',
    'semel store copy --from sqlite: --to postgres://ledger@db.example/shop --unseal',
    'semel store backup ledger-2026-06-19.db',
    'semel store restore ledger-2026-06-19.db',
  ],
  async run({ values, positionals }) {
    const [word = '', file, ...more] = positionals;
    if (Object.hasOwn(wordsWithFile, word)) {
      if (file === undefined || more.length > 0) throw usageError('store', `${word} takes one file`);
      return wordsWithFile[word as keyof typeof wordsWithFile](values, file);
    }
    if (!Object.hasOwn(words, word) || file !== undefined)
      throw usageError('store', `it takes one of ${names.join(', ')}`);
    return words[word as keyof typeof words](values);
  },
});
