// The Postgres store keeps its contract through a pooler that gives every statement another session.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { concurrencyCases } from '../../src/testing/store-contract/concurrency.ts';
import { whySkipped } from '../../src/testing/store-contract/index.ts';
import { repeatedCallCases } from '../../src/testing/store-contract/repeated-calls.ts';
import { type PgbouncerServer, startPgbouncer } from '../servers/pgbouncer.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { movableTime } from './movable-time.ts';
import { type MovableLedger, movableLedger } from './postgres-ledger.ts';

let server: PostgresServer;
let pooler: PgbouncerServer | undefined;
let ledger: MovableLedger;

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPgbouncer(server);
  if (pooler !== undefined) ledger = await movableLedger(pooler.url);
});

afterAll(async () => {
  await ledger?.end();
  await pooler?.stop();
  await server?.stop();
});

describe('through PgBouncer in transaction mode', () => {
  for (const contractCase of [...concurrencyCases, ...repeatedCallCases]) {
    test(contractCase.name, async (context) => {
      if (pooler === undefined) return context.skip('no PgBouncer can be had');
      const { time, advance } = movableTime();
      const local = movableTime();
      const told = () => ledger.setClock(time().wall);
      const harness = {
        clock: 'movable' as const,
        async create() {
          await ledger.empty();
          await told();
          return ledger.open({ clock: local.clock });
        },
        second: () => ledger.open({ clock: local.clock }),
        async advance(ms: number) {
          advance(ms);
          local.advance(ms);
          await told();
        },
      };
      const reason = whySkipped(contractCase, harness);
      if (reason !== undefined) context.skip(reason);
      await contractCase.run(harness);
    });
  }
});
