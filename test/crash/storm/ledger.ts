// The ledger that the processes of a storm share, the server it lies on, and what can be done to that server.

import { type Clock, systemClock, systemRandom } from '../../../src/index.ts';
import { storeOf } from '../../../src/semel/store-of.ts';
import type { Store } from '../../../src/store/index.ts';
import { sqliteStore } from '../../../src/stores/sqlite/index.ts';
import { movableClock } from '../../processes/movable-clock.ts';
import { startPostgres } from '../../servers/postgres.ts';
import { startRedis } from '../../servers/redis.ts';
import type { Server } from '../../servers/server.ts';

export const storeNames = ['sqlite', 'postgres', 'redis'] as const;
/** Those with a server of their own. */
export const farStoreNames = storeNames.filter((name) => name !== 'sqlite');
export type StoreName = (typeof storeNames)[number];

export function isStoreName(name: string): name is StoreName {
  return (storeNames as readonly string[]).includes(name);
}

export interface StormLedger extends AsyncDisposable {
  readonly store: StoreName;
  /** As in `createSemel({ store })`; every process gets it. */
  readonly address: string;
  /** For people. */
  readonly place: string;
  readonly server: Server | undefined;
  /** For when no process of the storm is left: opened so long after it that nothing can still be on its way. */
  after(quietMs: number): Promise<{ readonly store: Store; readonly clock: Clock }>;
}

export async function startLedger(store: StoreName, path: string): Promise<StormLedger> {
  if (store === 'sqlite') return sqliteLedger(path);
  if (store === 'postgres') {
    const server = await startPostgres();
    return farLedger(store, server.url, `Postgres ${server.version}`, server);
  }
  const server = await startRedis();
  if (server === undefined) throw new Error('A storm on Redis needs a Redis.');
  return farLedger(store, server.url, 'Redis, every write synced', server);
}

function sqliteLedger(path: string): StormLedger {
  return {
    store: 'sqlite',
    address: `sqlite:${path}`,
    place: 'SQLite on disk',
    server: undefined,
    async after(quietMs) {
      const clock = movableClock(quietMs);
      return { store: sqliteStore({ path, clock, machine: { uptimeMs: () => clock.mono() } }), clock };
    },
    async [Symbol.asyncDispose]() {},
  };
}

function farLedger(store: StoreName, address: string, place: string, server: Server): StormLedger {
  return {
    store,
    address,
    place,
    server,
    async after(quietMs) {
      // Its clock is its own: there is nothing to do but wait.
      await new Promise((resolve) => setTimeout(resolve, quietMs));
      return { store: storeOf(address, systemClock, systemRandom), clock: systemClock };
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
