// `semel store backup`: a copy of a SQLite ledger in one file, made while programs use it.

import { resolve } from 'node:path';
import { sqliteStore } from '../../../stores/sqlite/index.ts';
import { print, printable, printJson } from '../../render/print.ts';
import { ledgerFile } from './ledger-file.ts';
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
