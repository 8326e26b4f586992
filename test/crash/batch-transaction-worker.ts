// One start of a batch whose items are rows, each committed with its record; the process kills itself at one item.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { createSemel, type SemelOptions } from '../../src/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { dieHere, jobOf, print } from '../processes/child.ts';

export const points = ['in run', 'before commit', 'after commit'] as const;

export interface RowsJob {
  readonly database: { readonly path: string } | { readonly url: string; readonly schema: string };
  readonly items: number;
  readonly dieAt?: (typeof points)[number];
}

export interface RowsLine {
  readonly ok: boolean;
  readonly done: number;
  readonly executed: number;
  readonly text: string;
}

interface Rows {
  readonly store: NonNullable<SemelOptions['store']>;
  readonly concurrency: number;
  transaction<T>(work: (tx: unknown) => Promise<T>, beforeCommit: () => void): Promise<T>;
  insert(tx: unknown, id: number): Promise<unknown>;
}

function open({ database }: RowsJob): Rows {
  if ('path' in database) {
    const handle = new DatabaseSync(database.path);
    handle.exec('PRAGMA busy_timeout = 10000');
    return {
      store: `sqlite:${database.path}`,
      concurrency: 1,
      async transaction(work, beforeCommit) {
        handle.exec('BEGIN IMMEDIATE');
        try {
          const value = await work(handle);
          beforeCommit();
          handle.exec('COMMIT');
          return value;
        } catch (error) {
          handle.exec('ROLLBACK');
          throw error;
        }
      },
      insert: async (tx, id) => (tx as DatabaseSync).prepare('INSERT INTO rows VALUES (?)').run(id),
    };
  }
  const pool = new pg.Pool({ connectionString: database.url, max: 4 });
  return {
    store: postgresStore(database),
    concurrency: 4,
    async transaction(work, beforeCommit) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const value = await work(client);
        beforeCommit();
        await client.query('COMMIT');
        return value;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    insert: (tx, id) => (tx as pg.PoolClient).query(`INSERT INTO ${database.schema}.rows VALUES ($1)`, [id]),
  };
}

async function main(job: RowsJob): Promise<void> {
  const { store, concurrency, transaction, insert } = open(job);
  const semel = createSemel({ store, namespace: 'rows', onWarning: () => undefined });
  let commits = 0;
  const die = (point: RowsJob['dieAt'], isTime: boolean) => {
    if (job.dieAt === point && isTime) dieHere();
  };
  const half = Math.floor(job.items / 2);
  const report = await semel.batch(
    'row',
    Array.from({ length: job.items }, (_, id) => ({ id })),
    {
      id: ({ id }) => id,
      concurrency,
      async transaction(work) {
        const value = await transaction(work, () => die('before commit', commits >= half));
        commits += 1;
        die('after commit', commits >= half);
        return value;
      },
    },
    async ({ id }, ctx) => {
      await insert(ctx.tx, id);
      die('in run', id === half);
    },
  );
  const { ok, done, executed } = report;
  print({ ok, done, executed, text: String(report) } satisfies RowsLine);
  process.exit(0);
}

if (import.meta.main) await main(jobOf());
