// The ledger that the processes of a storm share, the server it lies on, and what can be done to that server.

import { type Clock, systemClock, systemRandom } from '../../../src/index.ts';
import { resolveStore } from '../../../src/semel/place/store-choice.ts';
import type { Store } from '../../../src/store/index.ts';
import { sqliteStore } from '../../../src/stores/sqlite/index.ts';
import { movableClock } from '../../processes/movable-clock.ts';
import { startDynamodb, testCredentials, testRegion } from '../../servers/dynamodb.ts';
import { startPgbouncer } from '../../servers/pgbouncer.ts';
import { startPostgres } from '../../servers/postgres.ts';
import { startRedis } from '../../servers/redis.ts';
import { startS3 } from '../../servers/s3.ts';
import type { Server } from '../../servers/server.ts';

export const storeNames = ['sqlite', 'postgres', 'redis'] as const;
/** Every request to these is one over HTTP: they get through less in the same time. */
export const cellStoreNames = ['dynamodb', 's3'] as const;
/** The last is not a store, but another way to one. */
export const placeNames = [...storeNames, ...cellStoreNames, 'pgbouncer'] as const;
export type StoreName = (typeof storeNames)[number];
export type PlaceName = (typeof placeNames)[number];

export function isPlaceName(name: string): name is PlaceName {
  return (placeNames as readonly string[]).includes(name);
}

export interface StormLedger extends AsyncDisposable {
  readonly store: PlaceName;
  /** As in `createSemel({ store })`; every process gets it. */
  readonly address: string;
  /** For people. */
  readonly place: string;
  readonly server: Server | undefined;
  /** For when no process of the storm is left: opened so long after it that nothing can still be on its way. */
  after(inFlightForMs: number): Promise<{ readonly store: Store; readonly clock: Clock }>;
}

export interface LedgerOptions {
  /** The clock of the server can be moved. */
  readonly movableClock?: boolean;
}

export async function startLedger(
  store: PlaceName,
  path: string,
  { movableClock = false }: LedgerOptions = {},
): Promise<StormLedger> {
  if (store === 'sqlite') return sqliteLedger(path);
  if (store === 'redis') {
    const server = await startRedis({ movableClock });
    if (server === undefined) throw new Error('A storm on Redis needs a Redis.');
    return farLedger(store, server.url, 'Redis, every write synced', server);
  }
  if (store === 'dynamodb') {
    const server = await startDynamodb();
    return cellLedger(
      store,
      `dynamodb://storm?region=${testRegion}&endpoint=${server.endpoint}`,
      'DynamoDB (dynalite, in memory)',
      server,
    );
  }
  if (store === 's3') {
    const server = await startS3();
    const address = `s3://storm/ledger?region=${testRegion}&endpoint=${server.endpoint}`;
    return cellLedger(store, address, 'S3 (a stand-in, in memory)', server);
  }
  const server = await startPostgres({ movableClock });
  const place = `Postgres ${server.version}`;
  if (store === 'postgres') return farLedger(store, server.url, place, server);
  const pooler = await startPgbouncer(server);
  if (pooler === undefined) {
    await server.stop();
    throw new Error('A storm through PgBouncer needs a PgBouncer.');
  }
  const ledger = farLedger(store, pooler.url, `${place} behind PgBouncer in transaction mode`, server);
  return {
    ...ledger,
    async [Symbol.asyncDispose]() {
      await pooler.stop();
      await server.stop();
    },
  };
}

function sqliteLedger(path: string): StormLedger {
  return {
    store: 'sqlite',
    address: `sqlite:${path}`,
    place: 'SQLite on disk',
    server: undefined,
    async after(inFlightForMs) {
      const clock = movableClock(inFlightForMs);
      return { store: sqliteStore({ path, clock, machine: { uptimeMs: () => clock.mono() } }), clock };
    },
    async [Symbol.asyncDispose]() {},
  };
}

/** The service is one of ours: it is not killed. */
function cellLedger(
  store: PlaceName,
  address: string,
  place: string,
  service: { stop(): Promise<void> },
): StormLedger {
  process.env.AWS_ACCESS_KEY_ID = testCredentials.accessKeyId;
  process.env.AWS_SECRET_ACCESS_KEY = testCredentials.secretAccessKey;
  return {
    ...ledgerAt(store, address, place),
    server: undefined,
    [Symbol.asyncDispose]: () => service.stop(),
  };
}

function farLedger(store: PlaceName, address: string, place: string, server: Server): StormLedger {
  return { ...ledgerAt(store, address, place), server, [Symbol.asyncDispose]: () => server.stop() };
}

function ledgerAt(store: PlaceName, address: string, place: string) {
  return {
    store,
    address,
    place,
    async after(inFlightForMs: number) {
      // Its clock is its own: there is nothing to do but wait.
      await new Promise((resolve) => setTimeout(resolve, inFlightForMs));
      return { store: resolveStore(address, systemClock, systemRandom), clock: systemClock };
    },
  };
}
