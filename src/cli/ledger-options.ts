// The options that every command has: which ledger, which application, for whom to print.

import { createSemel, type Semel } from '../semel/index.ts';

export const ledgerOptions = {
  store: { type: 'string' },
  namespace: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** A command opens its ledger by what it was told, never by the folder it was started in. */
export function semelOf(values: { store?: string | undefined; namespace?: string | undefined }): Semel {
  return createSemel({
    ...(values.store === undefined ? {} : { store: values.store }),
    namespace: values.namespace ?? process.env.SEMEL_NAMESPACE ?? 'default',
    onWarning: (message) => process.stderr.write(`semel: ${message}\n`),
  });
}
