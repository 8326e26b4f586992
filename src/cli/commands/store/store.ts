// `semel store`: checks, migrates, moves, backs up and restores a store as a whole.

import { command } from '../../command.ts';
import { text, toggle } from '../../flags.ts';
import { usageError } from '../../usage.ts';
import { acceptLoss } from './accept-loss.ts';
import { backup, restore } from './backup.ts';
import { check } from './check.ts';
import { copy } from './copy.ts';
import { migrate } from './migrate.ts';

const words = { check, migrate, copy, 'accept-loss': acceptLoss };
const wordsWithFile = { backup, restore };
const names: readonly string[] = [...Object.keys(words), ...Object.keys(wordsWithFile)];

export default command({
  name: 'store',
  takes: 'check|migrate|copy|accept-loss|backup|restore [<file>] [options]',
  about: `What to do:
  check        shows the store's settings and contents, verifies every record of a SQLite ledger, and measures its speed; exits with 1 if something is damaged
  migrate      creates or updates the schema, for programs that lack the rights to do so
  copy         moves a ledger to another store while it is in use: copies it, seals it (programs get STORE_MOVED), compares every record, and opens the new one. If interrupted, run the same command again
  accept-loss  opens a store that has noticed that it lost records
  backup       copies a SQLite ledger to a new file, also while programs use it
  restore      replaces a SQLite ledger with a backup, and keeps the old files. Effects since the backup are not in it: the ledger stays closed until \`accept-loss\`, or opens at once with --nothing-since`,
  flags: {
    from: text('<url>', 'copy: the ledger in use'),
    to: text('<url>', 'copy: the new ledger; created if missing, refused if it has records'),
    'dry-run': toggle('copy, migrate: only show what would be done'),
    unseal: toggle('copy: cancel the move, so that the ledger of --from can be used again; asks first'),
    'nothing-since': toggle('restore: nothing was done since the backup was made'),
    note: text('<text>', 'accept-loss, restore: the reason', 'm'),
    yes: toggle('do not ask for confirmation', 'y'),
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
      throw usageError('store', `expects one of ${names.join(', ')}`);
    return words[word as keyof typeof words](values);
  },
});
