// The store in a DynamoDB table: one item per record, replaced by conditional writes.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { dynamodbExample, readAddress } from '../../store/address.ts';
import { type AwsOptions, createClient, findPlace, judgeAws } from '../../store/aws/index.ts';
import { type CellBackendOptions, cellBackend, dateClock, dateMarginMs } from '../../store/cells/index.ts';
import type { RemoteBackend } from '../../store/remote/backend.ts';
import { remoteStore } from '../../store/remote/remote-store.ts';
import type { Store } from '../../store/store.ts';
import { createDynamodbCells } from './cells.ts';
import { openTable } from './open.ts';
import { createAsk, parseError } from './requests.ts';

export interface DynamodbStoreOptions extends AwsOptions {
  /** `dynamodb://table?region=…&endpoint=…`; other options take precedence. */
  readonly url?: string;
  /** @default 'semel' */
  readonly table?: string;
  /** Create the table when the store is opened, if it is missing. @default true */
  readonly migrate?: boolean;
  /** How often programs remove expired records by themselves, all together: it reads the whole table. @default 3_600_000 */
  readonly pruneEveryMs?: number;
  /** Timeout per request, with its retries, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

export function dynamodbStore(options: DynamodbStoreOptions = {}): Store {
  const { clock = systemClock, random = systemRandom } = options;
  return remoteStore(dynamodbBackend(options), { clock, random, clockMarginMs: dateMarginMs });
}

export function dynamodbBackend(
  options: DynamodbStoreOptions & Pick<CellBackendOptions, 'refreshMs'>,
): RemoteBackend {
  const {
    clock = systemClock,
    random = systemRandom,
    timeoutMs = 10_000,
    pruneEveryMs = 3_600_000,
    migrate: mayCreate = true,
  } = options;
  const given = options.url === undefined ? {} : parseUrl(options.url);
  const table = checkTable(options.table ?? given.table ?? 'semel');
  const place = findPlace('dynamodb', { ...given, ...dropUndefined(options) });
  const where = `the DynamoDB table ${table} in ${place.region}`;
  const dates = dateClock();
  const ask = createAsk(
    createClient({
      ...place,
      service: 'dynamodb',
      fetch: options.fetch ?? globalThis.fetch,
      clock,
      random,
      dates,
      timeoutMs,
      parseError,
    }),
  );
  return cellBackend({
    cells: {
      ...createDynamodbCells({ ask, table, clock, random }),
      async open() {
        await openTable({ ask, table, where, mayCreate, clock });
        return {
          kind: 'dynamodb',
          location: `${table} (${place.endpoint})`,
          address: options.url,
          forgets: undefined,
        };
      },
      async close() {},
    },
    clock,
    random,
    dates,
    where,
    pruneEveryMs,
    refreshMs: options.refreshMs,
    judge: (error) => judgeAws(error, { where: capitalize(where), permissions }),
  });
}

const permissions =
  '`dynamodb:` DescribeTable, DescribeTimeToLive, BatchGetItem, PutItem, DeleteItem, Query, and CreateTable if semel is to create the table';

function parseUrl(url: string): { table?: string; region?: string; endpoint?: string } {
  const { hostname, pathname, searchParams, username, password } = readAddress(url, dynamodbExample);
  // A name in capital letters would be another table: not every parser keeps them.
  const [, table = ''] = /^dynamodb:\/\/([^/?#]*)/.exec(url) ?? [];
  const known = ['region', 'endpoint'];
  const unknown = [...searchParams.keys()].find((name) => !known.includes(name));
  const isBare = username === '' && password === '' && (pathname === '' || pathname === '/');
  if (hostname === '' || !isBare || unknown !== undefined)
    throw new SemelError('CONTRACT_INVALID', 'The URL of the store cannot be read.', {
      path: 'store',
      next: "Write 'dynamodb://table?region=eu-central-1'; besides `region`, only `endpoint` is known. Credentials are not part of it.",
    });
  const region = searchParams.get('region');
  const endpoint = searchParams.get('endpoint');
  return {
    table,
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint }),
  };
}

function checkTable(name: string): string {
  if (/^[\w.-]{3,255}$/.test(name)) return name;
  throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(name)} is not a name of a DynamoDB table.`, {
    path: 'store',
    next: 'Use 3 to 255 letters, digits and _ . -',
  });
}

function dropUndefined({ region, endpoint, credentials }: AwsOptions): AwsOptions {
  return {
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  };
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
