// A ledger on Postgres that tells what it did: statements, each of which is a transaction, and how long each took.

import pg from 'pg';
import { postgresStore } from '../src/stores/postgres/index.ts';
import { type Bench, type BenchOptions, benchOn } from './calls.ts';

export interface PostgresBench extends Bench {
  readonly counts: { statements: number };
  /** From the question to the answer, in milliseconds; each is a batch. */
  readonly batchMs: number[];
}

export function ledgerIn(url: string, schema: string, options: BenchOptions): PostgresBench {
  const counts = { statements: 0 };
  const batchMs: number[] = [];
  // A pool, and not an object of its shape: only a pool keeps statements prepared, as semel's own does.
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  const query = pool.query.bind(pool) as (...question: unknown[]) => Promise<unknown>;
  const counted = async (...question: unknown[]) => {
    counts.statements += 1;
    const askedAt = performance.now();
    const answer = await query(...question);
    batchMs.push(performance.now() - askedAt);
    return answer;
  };
  const bench = benchOn(postgresStore({ client: Object.assign(pool, { query: counted }), schema }), options);
  return {
    ...bench,
    counts,
    batchMs,
    async close() {
      await bench.close();
      await pool.end();
    },
  };
}
