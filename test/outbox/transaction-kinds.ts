// Every kind of transaction that semel takes, opened with the real library.

import { sql as drizzleSql } from 'drizzle-orm';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { openPrisma, type PrismaTransaction } from './prisma-client.ts';

/** Sends one statement through the transaction, as a user of the library would. */
type Send = (tx: never, text: string) => Promise<unknown>;

export interface Kind {
  readonly name: string;
  readonly send: Send;
  open(url: string): Promise<Opened>;
}

export interface Opened {
  /** Commits when `work` resolves, rolls back when it rejects. */
  transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T>;
  /** What a user might pass by mistake: a pool, or a database without a transaction. */
  readonly outside: unknown;
  end(): Promise<void>;
}

const plainPg = (url: string) => {
  const pool = new pg.Pool({ connectionString: url, max: 12 });
  pool.on('error', () => {});
  return pool;
};

async function inPgTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

const sendPg: Send = (tx: pg.PoolClient, text) => tx.query(text);

export const kinds: readonly Kind[] = [
  {
    name: 'pg',
    send: sendPg,
    async open(url) {
      const pool = plainPg(url);
      return {
        transaction: (work) => inPgTransaction(pool, work),
        outside: pool,
        end: () => pool.end(),
      };
    },
  },
  {
    name: 'an object with query that shows no state',
    send: (tx: { query(text: string): Promise<unknown> }, text) => tx.query(text),
    async open(url) {
      const pool = plainPg(url);
      const wrap = (client: pg.Pool | pg.PoolClient) => ({
        query: async (text: string, values?: unknown[]) => (await client.query(text, values)).rows,
      });
      return {
        transaction: (work) => inPgTransaction(pool, (client) => work(wrap(client))),
        outside: wrap(pool),
        end: () => pool.end(),
      };
    },
  },
  {
    name: 'postgres.js',
    send: (tx: postgres.TransactionSql, text) => tx.unsafe(text),
    async open(url) {
      const sql = postgres(url, { max: 12, onnotice: () => {} });
      return {
        transaction: (work) => sql.begin((tx) => work(tx)) as never,
        outside: sql,
        end: () => sql.end(),
      };
    },
  },
  {
    name: 'Drizzle on pg',
    send: (tx: { execute(query: unknown): Promise<unknown> }, text) => tx.execute(drizzleSql.raw(text)),
    async open(url) {
      const pool = plainPg(url);
      const db = drizzleNodePostgres(pool);
      return { transaction: (work) => db.transaction(work), outside: db, end: () => pool.end() };
    },
  },
  {
    name: 'Drizzle on postgres.js',
    send: (tx: { execute(query: unknown): Promise<unknown> }, text) => tx.execute(drizzleSql.raw(text)),
    async open(url) {
      const sql = postgres(url, { max: 12, onnotice: () => {} });
      const db = drizzlePostgresJs(sql);
      return { transaction: (work) => db.transaction(work), outside: db, end: () => sql.end() };
    },
  },
  {
    name: 'Kysely',
    send: (tx: Kysely<unknown>, text) => tx.executeQuery(CompiledQuery.raw(text)),
    async open(url) {
      const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: plainPg(url) }) });
      return {
        transaction: (work) => db.transaction().execute(work),
        outside: db,
        end: () => db.destroy(),
      };
    },
  },
  {
    name: 'Prisma',
    send: (tx: PrismaTransaction, text) => tx.$executeRawUnsafe(text),
    async open(url) {
      const client = openPrisma(url);
      // Its own limits are a few seconds.
      const limits = { timeout: 120_000, maxWait: 120_000 };
      return {
        transaction: (work) => client.$transaction(work, limits),
        outside: client,
        end: () => client.$disconnect(),
      };
    },
  },
  {
    // By its documented signatures.
    name: 'Prisma before version 7, by its shape',
    send: (tx: PrismaTransaction, text) => tx.$executeRawUnsafe(text),
    async open(url) {
      const pool = plainPg(url);
      const raw = (client: pg.Pool | pg.PoolClient) => ({
        $queryRawUnsafe: async (text: string, ...values: unknown[]) =>
          (await client.query(text, values)).rows,
        $executeRawUnsafe: async (text: string, ...values: unknown[]) =>
          (await client.query(text, values)).rowCount ?? 0,
      });
      const nothing = async () => undefined;
      return {
        transaction: (work) => inPgTransaction(pool, (client) => work(raw(client))),
        outside: { ...raw(pool), $connect: nothing, $disconnect: nothing, $transaction: nothing },
        end: () => pool.end(),
      };
    },
  },
];
