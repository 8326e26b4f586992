// `semel store migrate`: creates or updates a store's schema, or prints the statements.

import { storeFor } from '../../ledger.ts';
import { complain, print, printJson, printRows } from '../../render/print.ts';
import type { StoreValues } from './values.ts';

export async function migrate(values: StoreValues): Promise<number> {
  const store = await storeFor(values, { make: true });
  try {
    const migration = await store.migration?.();
    if (migration === undefined) {
      if (values.json) printJson({ migrated: false });
      else print('This kind of store has no schema: there is nothing to do.');
      return 0;
    }
    const { from, to, statements } = migration;
    const dryRun = values['dry-run'] ?? false;
    const isCurrent = from === to;
    if (!dryRun && !isCurrent) await migration.run();
    if (values.json)
      printJson({ from, to, migrated: !dryRun && !isCurrent, ...(dryRun ? { statements } : {}) });
    else if (isCurrent) print(`The schema is already version ${to}.`);
    else if (dryRun) {
      complain(`this would run, from ${versionText(from)} to version ${to}:`);
      printRows(...statements.flatMap((statement) => `${statement};`.split('\n')));
    } else
      print(
        from === 0
          ? `Created the schema, version ${to}.`
          : `Updated the schema from version ${from} to ${to}.`,
      );
    return 0;
  } finally {
    await store.close();
  }
}

function versionText(version: number): string {
  return version === 0 ? 'nothing' : `version ${version}`;
}
