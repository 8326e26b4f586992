// What `semel store` asks of the file: how its schema would be made, and how much lies there.

import { existsSync } from 'node:fs';
import type { Migration } from '../../store/move/migration.ts';
import { type SqliteLike, single } from './driver.ts';
import { applicationId, migrations, openRows, schemaVersion, versionOf } from './schema.ts';

export interface MigrationOptions {
  readonly path: string;
  connect(path: string): Promise<SqliteLike>;
  unlocked<T>(run: () => T): Promise<T>;
  /** Opening a ledger brings it up to date. */
  open(): Promise<unknown>;
}

/** Looks without opening the ledger, which would make or change it. */
export async function migrationOf(options: MigrationOptions): Promise<Migration> {
  const from = await versionIn(options);
  const statements = migrations.slice(from).flat();
  return {
    from,
    to: schemaVersion,
    statements: from === 0 ? [...statements, `PRAGMA application_id = ${applicationId}`] : statements,
    async run() {
      await options.open();
    },
  };
}

async function versionIn({ path, connect, unlocked }: MigrationOptions): Promise<number> {
  if (!existsSync(path)) return 0;
  const database = await connect(path);
  try {
    return await unlocked(() => versionOf(database, path, schemaVersion));
  } finally {
    database.close();
  }
}

export function sizesIn(database: SqliteLike): { records: number; open: number; bytes: number } {
  const records = single(database, 'SELECT count(*) FROM records') as number;
  const open = single(database, `SELECT count(*) FROM records WHERE ${openRows}`) as number;
  const pages = single(database, 'PRAGMA page_count') as number;
  return { records, open, bytes: pages * (single(database, 'PRAGMA page_size') as number) };
}
