// A ledger on SQLite that tells what it did: transactions and statements, and how long each transaction took.

import { DatabaseSync } from 'node:sqlite';
import { type SqliteLike, type SqliteStatement, sqliteStore } from '../src/stores/sqlite/index.ts';
import { type Bench, type BenchOptions, benchOn } from './calls.ts';

export interface SqliteBench extends Bench {
  readonly counts: { transactions: number; statements: number };
  /** From BEGIN to the end of COMMIT, in milliseconds; each is a batch. */
  readonly batchMs: number[];
}

interface CountedOptions extends BenchOptions {
  /** Every statement, at the price of a detour: not while times are taken. */
  readonly everyStatement?: boolean;
}

export function ledgerAt(path: string, { everyStatement = false, ...options }: CountedOptions): SqliteBench {
  const database = new DatabaseSync(path, { timeout: 0 });
  const counts = { transactions: 0, statements: 0 };
  const batchMs: number[] = [];
  let begunAt = 0;

  function counted(sql: string, statement: SqliteStatement): SqliteStatement {
    if (sql.startsWith('BEGIN')) {
      return instead(statement, ['run'], (run) => {
        counts.transactions += 1;
        begunAt = performance.now();
        return run();
      });
    }
    if (sql === 'COMMIT') {
      return instead(statement, ['run'], (run) => {
        const answer = run();
        batchMs.push(performance.now() - begunAt);
        return answer;
      });
    }
    if (!everyStatement) return statement;
    return instead(statement, ['run', 'get', 'all'], (run) => {
      counts.statements += 1;
      return run();
    });
  }

  const counting: SqliteLike = {
    prepare: (sql) => counted(sql, database.prepare(sql) as unknown as SqliteStatement),
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    get isTransaction() {
      return database.isTransaction;
    },
  };
  // As a ledger that semel opens itself: a handle of the user's is asked twice per transaction what it has changed.
  const store = sqliteStore({ path, machine: { connect: async () => counting } });
  return { ...benchOn(store, options), counts, batchMs };
}

function instead(
  statement: SqliteStatement,
  methods: readonly ('run' | 'get' | 'all')[],
  around: (run: () => unknown) => unknown,
): SqliteStatement {
  for (const method of methods) {
    const original = statement[method].bind(statement) as (...values: unknown[]) => unknown;
    Object.assign(statement, { [method]: (...values: unknown[]) => around(() => original(...values)) });
  }
  return statement;
}
