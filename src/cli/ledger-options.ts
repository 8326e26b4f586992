// The options that every command has: which ledger, which application, for whom to print.

import { existsSync } from 'node:fs';
import { SemelError } from '../core/errors.ts';
import { createSemel, type Semel } from '../semel/index.ts';
import { defaultPath } from '../stores/sqlite/index.ts';

export const ledgerOptions = {
  store: { type: 'string' },
  namespace: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/**
 * A command opens its ledger by what it was told, never by the folder it was started in. To look at a ledger that is
 * not there would make an empty one, and say that all is well.
 */
export function semelOf(values: { store?: string | undefined; namespace?: string | undefined }): Semel {
  const url = values.store ?? process.env.SEMEL_STORE ?? 'sqlite:';
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) || defaultPath() : undefined;
  if (path !== undefined && !existsSync(path)) {
    throw new SemelError('STORE_UNAVAILABLE', `There is no ledger at ${path}.`, {
      next: 'Name it by --store sqlite:<path>, or by SEMEL_STORE.',
    });
  }
  return createSemel({
    ...(values.store === undefined ? {} : { store: values.store }),
    namespace: values.namespace ?? process.env.SEMEL_NAMESPACE ?? 'default',
    onWarning: (message) => process.stderr.write(`semel: ${message}\n`),
  });
}
