// `semel store backup` and `restore`, for SQLite ledgers: copies one while programs use it, and puts a copy back. Effects
// since the backup are not in it, so the restored ledger stays closed until a person accepts that.

import { resolve } from 'node:path';
import { SemelError } from '../../../core/errors.ts';
import { shellWord } from '../../../core/visible.ts';
import { loginName } from '../../../semel/index.ts';
import { type Restoring, restoreLedger, sqliteStore } from '../../../stores/sqlite/index.ts';
import { confirm } from '../../args/confirm.ts';
import { mustBeOperator } from '../../caller.ts';
import { ledgerPath } from '../../ledger.ts';
import { complain, print, printable, printJson } from '../../render/print.ts';
import type { StoreValues } from './values.ts';

export async function backup(values: StoreValues, file: string): Promise<number> {
  const store = sqliteStore({ path: ledgerFile(values, 'backup') });
  try {
    const made = await store.backup(resolve(file));
    if (values.json) printJson({ path: made.path, records: made.records, at: new Date(made.at ?? 0) });
    else print(printable(`Made ${made.path}: ${made.records} records.`));
    return 0;
  } finally {
    await store.close();
  }
}

export async function restore(values: StoreValues, file: string): Promise<number> {
  mustBeOperator('store', '`restore`');
  const path = resolve(ledgerFile(values, 'restore'));
  const restoring = await restoreLedger(path, resolve(file));
  try {
    if (restoring.damage.length > 0) {
      complain(`${file} is damaged: ${restoring.damage.join('; ')}. Nothing was changed.`);
      return 1;
    }
    if (!values.yes)
      complain(printable(`${aboutText(restoring, file)} Stop all programs that use the ledger first.`));
    if (!(await confirm(`Put it in place of ${path}?`, { command: 'store', yes: values.yes }))) {
      print('Nothing was changed.');
      return 70;
    }
    const kept = restoring.put();
    const isOpen = await isOpened(restoring, path, values);
    if (values.json) printJson({ restored: path, kept, records: restoring.records, open: isOpen });
    else print(...endingOf(restoring, path, kept, isOpen).map(printable));
    return 0;
  } finally {
    restoring.drop();
  }
}

/** Nothing is missing, or the operator says that nothing was done. */
async function isOpened({ writesSince }: Restoring, path: string, values: StoreValues): Promise<boolean> {
  if (writesSince === 0) return true;
  if (!values['nothing-since']) return false;
  const store = sqliteStore({ path });
  try {
    await store.acceptLoss({
      by: loginName(),
      note: values.note ?? 'restored; nothing was done since the backup',
    });
  } finally {
    await store.close();
  }
  return true;
}

function aboutText({ at, records, writesSince }: Restoring, file: string): string {
  const made = at === undefined ? 'at an unknown time' : `at ${new Date(at).toISOString()}`;
  const since =
    writesSince === undefined
      ? 'It is unknown what was done since then'
      : `The ledger has had ${writesSince === 1 ? '1 write' : `${writesSince} writes`} since then`;
  return `${file} was made ${made} and has ${records} records. ${since}: what it recorded would be done again.`;
}

function endingOf(
  restoring: Restoring,
  path: string,
  kept: string | undefined,
  isOpen: boolean,
): readonly string[] {
  return [
    `Restored ${path}: ${restoring.records} records.`,
    ...(kept === undefined ? [] : [`What was there is kept as ${kept}.`]),
    ...(isOpen
      ? []
      : [
          'It stays closed to programs: effects since the backup are not in it, and would be repeated. Check what was done since',
          `(\`semel export\` from what was kept, if it can be read). Then, before any program is started:`,
          `  semel store accept-loss --store ${shellWord(`sqlite:${path}`)}   and \`semel import\` what you know`,
        ]),
  ];
}

function ledgerFile(values: StoreValues, word: string): string {
  const path = ledgerPath(values);
  if (path !== undefined) return path;
  throw new SemelError('INVALID_ARGS', `\`semel store ${word}\` is for SQLite ledgers.`, {
    next: 'Use the tools of the server that keeps this ledger (pg_dump, a snapshot of Redis, a backup of the DynamoDB table), or `semel export`.',
  });
}
