// Ledgers on services of cells for tests. The Date of every answer is the test's, so that the service's clock stands still
// until it is moved.

import { systemClock, systemRandom } from '../../src/core/clock.ts';
import { createClient, findPlace } from '../../src/store/aws/index.ts';
import { dateClock, metaName } from '../../src/store/cells/index.ts';
import { encodeMeta } from '../../src/store/cells/meta.ts';
import type { Store } from '../../src/store/index.ts';
import { remoteStore } from '../../src/store/remote/remote-store.ts';
import { createDynamodbCells } from '../../src/stores/dynamodb/cells.ts';
import { createAsk, parseError } from '../../src/stores/dynamodb/requests.ts';
import {
  type DynamodbStoreOptions,
  dynamodbBackend,
  dynamodbStore,
} from '../../src/stores/dynamodb/store.ts';
import { s3Backend } from '../../src/stores/s3/store.ts';
import { testCredentials, testRegion } from '../servers/dynamodb.ts';
import type { S3Server } from '../servers/s3.ts';

export interface CellLedger {
  /** Another, empty place, whose fences start at one. */
  empty(): Promise<void>;
  open(options?: Pick<DynamodbStoreOptions, 'clock' | 'random' | 'fetch'>): Promise<Store>;
  setClock(ms: number): void;
}

let places = 0;

/** With a precision that no service has: a handle that is opened later knows the time as well as the others. */
export function withDate(now: () => number, fetch: typeof globalThis.fetch = globalThis.fetch): typeof fetch {
  return async (...args) => {
    const at = now();
    const answer = await fetch(...args);
    const headers = new Headers(answer.headers);
    headers.set('date', new Date(at).toISOString());
    const text = await answer.text();
    return new Response(text === '' ? null : text, { status: answer.status, headers });
  };
}

export function dynamodbLedger(endpoint: string): CellLedger {
  let now = Date.now();
  let table = '';
  const place = { region: testRegion, endpoint, credentials: testCredentials };
  const fetch = withDate(() => now);
  const ask = createAsk(
    createClient({
      ...findPlace('dynamodb', place),
      service: 'dynamodb',
      fetch: globalThis.fetch,
      clock: systemClock,
      random: systemRandom,
      dates: dateClock(),
      // For busy machines.
      timeoutMs: 60_000,
      parseError,
    }),
  );
  const cells = () => createDynamodbCells({ ask, table, clock: systemClock, random: systemRandom });
  return {
    async empty() {
      places += 1;
      table = `ledger-${process.pid}-${places}`;
      const store = dynamodbStore({ ...place, table, fetch, timeoutMs: 60_000 });
      await store.open();
      await store.close();
      const [meta] = await cells().read([metaName]);
      await cells().swap(metaName, encodeMeta({ id: `${places}`, floor: 0, prunedAt: 0 }), meta?.tag);
    },
    async open(options = {}) {
      // As exact as the other stores: the ledger's own cell is read each time, and no lease is longer.
      const backend = dynamodbBackend({ ...place, table, fetch, refreshMs: 0, ...options });
      const store = remoteStore(backend, options);
      await store.open();
      return store;
    },
    setClock(ms) {
      now = ms;
    },
  };
}

export function s3Ledger(server: S3Server): CellLedger {
  let now = Date.now();
  let prefix = '';
  server.now = () => now;
  const place = {
    region: testRegion,
    endpoint: server.endpoint,
    credentials: testCredentials,
    bucket: 'ledgers',
  };
  const fetch = withDate(() => now);
  return {
    async empty() {
      places += 1;
      prefix = `ledger-${process.pid}-${places}`;
      // By the same clock as the service: a signature of another time is refused.
      const meta = { text: encodeMeta({ id: `${places}`, floor: 0, prunedAt: 0 }), etag: '"first"' };
      server.objects.set(`ledgers/${prefix}/records/%01semel/ledger`, meta);
    },
    async open(options = {}) {
      const backend = s3Backend({ ...place, prefix, fetch, refreshMs: 0, ...options });
      const store = remoteStore(backend, options);
      await store.open();
      return store;
    },
    setClock(ms) {
      now = ms;
    },
  };
}
