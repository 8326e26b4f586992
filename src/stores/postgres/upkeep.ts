// What `semel store migrate` asks of the database: how the schema would be made.

import type { Migration } from '../../store/move/migration.ts';
import type { Connection } from './client.ts';
import { judge } from './failure.ts';
import { isNewer, versionOf } from './open.ts';
import { migration, migrations, schemaVersion } from './schema.ts';

export interface MigrationOptions {
  readonly query: Connection['query'];
  readonly schema: string;
  readonly where: string;
  /** With the schema made or brought up to date. */
  open(): Promise<unknown>;
}

export async function migrationOf({ query, schema, where, open }: MigrationOptions): Promise<Migration> {
  const from = await asked(() => versionOf({ query, end: async () => {} }, schema));
  if (from > schemaVersion) throw isNewer(where);
  return {
    from,
    to: schemaVersion,
    // One statement under one lock: whoever runs it by hand does what `run` does.
    statements: from < migrations.length ? [migration(schema)] : [],
    run: () => asked(async () => void (await open())),
  };

  async function asked<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      throw judge(error, where).error;
    }
  }
}
