// The Postgres store keeps the contract of all stores.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type StoreHarness, storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { movableTime } from './movable-time.ts';
import { type MovableLedger, movableLedger } from './postgres-ledger.ts';

let server: PostgresServer;
let ledger: MovableLedger;

beforeAll(async () => {
  server = await startPostgres();
  ledger = await movableLedger(server.url);
});

afterAll(async () => {
  await ledger?.end();
  await server?.stop();
});

function harness(): StoreHarness {
  const { clock, time, advance, unsteady } = movableTime();
  const local = movableTime();
  // The worker's own clocks stay right when the server's goes wrong.
  const options = { clock: local.clock };
  const told = () => ledger.setClock(time().wall);
  void clock;
  return {
    clock: 'movable',
    async create() {
      await ledger.empty();
      await told();
      return ledger.open(options);
    },
    second: () => ledger.open(options),
    async advance(ms) {
      advance(ms);
      local.advance(ms);
      await told();
    },
    async unsteady(on, offMs) {
      unsteady(on, offMs);
      await told();
    },
  };
}

describe('the Postgres store keeps the contract', () => {
  for (const contractCase of storeContract()) {
    test(contractCase.name, async (context) => {
      const asked = harness();
      const reason = whySkipped(contractCase, asked);
      if (reason !== undefined) context.skip(reason);
      await contractCase.run(asked);
    });
  }
});
