// A database file of one's own that is also the ledger, through both SQLite libraries that semel knows.

import { DatabaseSync } from 'node:sqlite';
import Database from 'better-sqlite3';
import { createSemel, type SemelOptions } from '../../src/index.ts';
import { type SqliteLike, sqliteStore } from '../../src/stores/sqlite/index.ts';

export interface Library {
  readonly name: string;
  /** A handle as a user has it for their own tables. */
  open(path: string, options?: { readonly readOnly?: boolean }): SqliteLike;
  store(path: string): ReturnType<typeof sqliteStore>;
}

const storeHandles: { close(): unknown }[] = [];

export const libraries: readonly Library[] = [
  {
    name: 'node:sqlite',
    open: (path, { readOnly = false } = {}) => new DatabaseSync(path, { readOnly }),
    store: (path) => sqliteStore({ path }),
  },
  {
    name: 'better-sqlite3',
    open(path, { readOnly = false } = {}) {
      const database = new Database(path, { readonly: readOnly });
      database.pragma('synchronous = FULL');
      return database;
    },
    // In one process, only one library may open the file.
    store(path) {
      const database = new Database(path);
      storeHandles.push(database);
      return sqliteStore({ database });
    },
  },
];

export function closeStoreHandles(): void {
  for (const handle of storeHandles.splice(0)) handle.close();
}

export const rowsOf = (database: SqliteLike, sql: string) =>
  database.prepare(sql).all() as Record<string, unknown>[];

/** Commits when `work` resolves, rolls back when it rejects. */
export async function transaction<T>(
  database: SqliteLike,
  work: (tx: SqliteLike) => Promise<T>,
  begin = 'BEGIN IMMEDIATE',
): Promise<T> {
  database.exec(begin);
  try {
    const result = await work(database);
    database.exec('COMMIT');
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

export interface Order {
  readonly id: string;
  readonly cents: number;
}

/** The user's own table in the ledger's file, and a tool that writes to it. */
export async function shop(
  library: Library,
  path: string,
  namespace = 'shop',
  more: Pick<SemelOptions, 'mode'> = {},
) {
  const semel = createSemel({ store: library.store(path), namespace, prune: false, ...more });
  await semel.open();
  const database = library.open(path);
  database.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT, cents INTEGER CHECK (cents > 0))');
  const insert = (tx: unknown, { id, cents }: Order) =>
    void (tx as SqliteLike).prepare('INSERT INTO orders VALUES (?, ?)').run(id, cents);
  const define = (more: (order: Order, tx: SqliteLike) => unknown = () => 'placed') =>
    semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      identity: ['id'],
      async run(order: Order, ctx) {
        insert(ctx.tx, order);
        return more(order, ctx.tx as SqliteLike);
      },
    });
  const cents = (id: string) =>
    rowsOf(database, `SELECT cents FROM orders WHERE id = '${id}'`).map((row) => row.cents);
  const records = () => Number(rowsOf(database, 'SELECT count(*) AS n FROM records')[0]?.n);
  return {
    ...{ semel, database, insert, define, cents, records },
    async [Symbol.asyncDispose]() {
      await semel.close();
      database.close();
    },
  };
}
