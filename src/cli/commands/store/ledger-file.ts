// The file of the SQLite ledger that a command is about.

import { SemelError } from '../../../core/errors.ts';
import { ledgerPath } from '../../ledger.ts';
import type { StoreValues } from './values.ts';

export function ledgerFile(values: StoreValues, word: string): string {
  const path = ledgerPath(values);
  if (path !== undefined) return path;
  throw new SemelError('INVALID_ARGS', `\`semel store ${word}\` is for SQLite ledgers.`, {
    next: 'Use the tools of the server that keeps this ledger (pg_dump, a snapshot of Redis), or `semel export`.',
  });
}
