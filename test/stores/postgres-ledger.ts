// Ledgers in a real Postgres for tests: one schema each, and a server's clock that stands still until it is moved.

import pg from 'pg';
import type { Store } from '../../src/store/index.ts';
import { type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres/index.ts';
import { migration, qualify, schemaVersion } from '../../src/stores/postgres/schema.ts';

export interface MovableLedger {
  readonly schema: string;
  open(options?: Partial<PostgresStoreOptions>): Promise<Store>;
  /** As it was when it was made. */
  empty(): Promise<void>;
  setClock(ms: number): Promise<void>;
  sql(text: string): Promise<Record<string, unknown>[]>;
  end(): Promise<void>;
}

/** As a client would send it that writes nothing. */
export function emptyWrite(schema: string): string {
  return qualify(schema, `SELECT semel.write(patience => '50ms', writer => ${schemaVersion})`);
}

let schemas = 0;

export async function movableLedger(url: string): Promise<MovableLedger> {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on('error', () => {});
  schemas += 1;
  const schema = `ledger_${process.pid}_${schemas}`;
  const sql = async (text: string) =>
    (await pool.query(qualify(schema, text))).rows as Record<string, unknown>[];
  await pool.query(migration(schema));
  await sql('CREATE TABLE semel.test_clock (ms bigint NOT NULL)');
  await sql('INSERT INTO semel.test_clock VALUES (0)');
  await sql(`CREATE OR REPLACE FUNCTION semel.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT ms FROM semel.test_clock $$`);
  return {
    schema,
    sql,
    async open(options = {}) {
      const store = postgresStore({ client: pool, schema, ...options });
      await store.open();
      return store;
    },
    async empty() {
      await sql('TRUNCATE semel.records, semel.events; UPDATE semel.meta SET floor = 0, moved_to = NULL');
    },
    async setClock(ms) {
      await sql(`UPDATE semel.test_clock SET ms = ${ms}`);
    },
    end: () => pool.end(),
  };
}
