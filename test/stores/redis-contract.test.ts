// The Redis store keeps the contract of all stores, with either driver.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type StoreHarness, storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';
import { movableTime } from './movable-time.ts';
import { type Driver, movableLedger, type RedisLedger } from './redis-ledger.ts';

let server: RedisServer | undefined;
const ledgers = new Map<Driver, RedisLedger>();
const drivers: readonly Driver[] = ['ioredis', 'redis'];

beforeAll(async () => {
  server = await startRedis();
  if (server === undefined) return;
  for (const driver of drivers) ledgers.set(driver, await movableLedger(server.url, driver));
});

afterAll(async () => {
  for (const ledger of ledgers.values()) await ledger.end();
  await server?.stop();
});

function harness(ledger: RedisLedger): StoreHarness {
  const { time, advance, unsteady } = movableTime();
  const local = movableTime();
  // The worker's own clocks stay right when the server's goes wrong.
  const options = { clock: local.clock };
  const told = () => ledger.setClock(time().wall);
  return {
    clock: 'movable',
    async create() {
      told();
      await ledger.empty();
      return ledger.open(options);
    },
    second: () => ledger.open(options),
    advance(ms) {
      advance(ms);
      local.advance(ms);
      told();
    },
    unsteady(on, offMs) {
      unsteady(on, offMs);
      told();
    },
  };
}

for (const driver of drivers) {
  describe(`the Redis store keeps the contract with ${driver}`, () => {
    for (const contractCase of storeContract()) {
      test(contractCase.name, async (context) => {
        const ledger = ledgers.get(driver);
        if (ledger === undefined) return context.skip('there is no Redis');
        const asked = harness(ledger);
        const reason = whySkipped(contractCase, asked);
        if (reason !== undefined) context.skip(reason);
        await contractCase.run(asked);
      });
    }
  });
}
