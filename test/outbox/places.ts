// An outbox in each of the stores that have one, for tests that must hold in all of them.

import pg from 'pg';
import { createSemel, type Semel, type SemelOptions } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { ownSchema } from '../servers/own-place.ts';
import { newPath } from '../stores/sqlite-folder.ts';
import { libraries, transaction as sqliteTransaction } from './sqlite-place.ts';

export interface Place {
  readonly semel: Semel;
  readonly store: Store;
  /** Commits when `work` resolves. */
  transaction<T>(work: (tx: unknown) => Promise<T>, begin?: string): Promise<T>;
  /** Rows of the outbox. */
  rows(): Promise<Record<string, unknown>[]>;
  /** `outbox` stands for the table. */
  change(sql: string): Promise<unknown>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PlaceOptions extends Omit<SemelOptions, 'store' | 'namespace'> {
  readonly wrap?: (store: Store) => Store;
}

export const places: readonly { name: string; open(options?: PlaceOptions): Promise<Place> }[] = [
  { name: 'Postgres', open: openPostgres },
  { name: 'SQLite', open: openSqlite },
];

async function openPostgres({ wrap = (store) => store, ...options }: PlaceOptions = {}): Promise<Place> {
  const { url, schema } = await ownSchema();
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  const store = wrap(postgresStore({ url, schema }));
  const semel = createSemel({ store, namespace: 'shop', prune: false, ...options });
  await semel.open();
  return {
    semel,
    store,
    async transaction(work, begin = 'BEGIN') {
      const client = await pool.connect();
      try {
        await client.query(begin);
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    rows: async () => (await pool.query(`SELECT * FROM ${schema}.outbox ORDER BY n`)).rows,
    // `ready` is due without loans.
    change: (sql) =>
      pool.query(sql.replace('outbox', `${schema}.outbox`).replace('due = 0', 'due = 0, ready = 0')),
    async [Symbol.asyncDispose]() {
      await semel.close();
      await pool.end();
    },
  };
}

async function openSqlite({ wrap = (store) => store, ...options }: PlaceOptions = {}): Promise<Place> {
  const path = newPath();
  const [library] = libraries;
  const store = wrap(library!.store(path));
  const semel = createSemel({ store, namespace: 'shop', prune: false, ...options });
  await semel.open();
  const database = library!.open(path);
  return {
    semel,
    store,
    transaction: (work) => sqliteTransaction(database, work),
    rows: async () => database.prepare('SELECT * FROM outbox ORDER BY n').all() as Record<string, unknown>[],
    change: async (sql) => database.exec(sql),
    async [Symbol.asyncDispose]() {
      await semel.close();
      database.close();
    },
  };
}
