// The store in a bucket of S3, or of a service that speaks its protocol: one object per record, replaced by conditional
// writes.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { readAddress, s3Example } from '../../store/address.ts';
import { type AwsOptions, createClient, findPlace, judgeAws } from '../../store/aws/index.ts';
import { type CellBackendOptions, cellBackend, dateClock, dateMarginMs } from '../../store/cells/index.ts';
import type { RemoteBackend } from '../../store/remote/backend.ts';
import { remoteStore } from '../../store/remote/remote-store.ts';
import type { Store } from '../../store/store.ts';
import { createS3Cells } from './cells.ts';
import { ignoresConditionsError, openBucket } from './open.ts';
import { parseError } from './xml.ts';

export interface S3StoreOptions extends AwsOptions {
  /** `s3://bucket/prefix?region=…&endpoint=…`; other options take precedence. */
  readonly url?: string;
  readonly bucket?: string;
  /** Where in the bucket. @default 'semel' */
  readonly prefix?: string;
  /** How often programs remove expired records by themselves, all together: it reads every object. @default 86_400_000 */
  readonly pruneEveryMs?: number;
  /** Timeout per request, with its retries, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

export function s3Store(options: S3StoreOptions): Store {
  const { clock = systemClock, random = systemRandom } = options;
  return remoteStore(s3Backend(options), { clock, random, clockMarginMs: dateMarginMs });
}

export function s3Backend(options: S3StoreOptions & Pick<CellBackendOptions, 'refreshMs'>): RemoteBackend {
  const {
    clock = systemClock,
    random = systemRandom,
    timeoutMs = 10_000,
    pruneEveryMs = 86_400_000,
  } = options;
  const given = options.url === undefined ? {} : parseUrl(options.url);
  const bucket = checkBucket(options.bucket ?? given.bucket ?? '');
  const name = checkPrefix(options.prefix ?? given.prefix ?? 'semel');
  const { region = given.region, endpoint = given.endpoint, credentials } = options;
  const place = findPlace('s3', {
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  });
  const where = `The bucket ${bucket} (${name}) at ${new URL(place.endpoint).host}`;
  const dates = dateClock();
  const client = createClient({
    ...place,
    service: 's3',
    fetch: options.fetch ?? globalThis.fetch,
    clock,
    random,
    dates,
    timeoutMs,
    parseError,
  });
  const at = { client, bucket, prefix: `${name}/` };
  const cells = createS3Cells(at, () => ignoresConditionsError(where));
  return cellBackend({
    cells: {
      ...cells,
      async open() {
        const { forgets } = await openBucket(at, cells, where);
        return {
          kind: 's3',
          location: `${bucket}/${name} (${place.endpoint})`,
          address: options.url,
          forgets,
        };
      },
      async close() {},
    },
    clock,
    random,
    dates,
    where: `t${where.slice(1)}`,
    pruneEveryMs,
    refreshMs: options.refreshMs,
    judge: (error) => judgeAws(error, { where, permissions }),
  });
}

const permissions =
  '`s3:GetObject`, `s3:PutObject` and `s3:DeleteObject` on the objects, `s3:ListBucket` and `s3:GetLifecycleConfiguration` on the bucket';

function parseUrl(url: string): { bucket?: string; prefix?: string; region?: string; endpoint?: string } {
  const { pathname, searchParams, username, password } = readAddress(url, s3Example);
  const [, bucket = ''] = /^s3:\/\/([^/?#]*)/.exec(url) ?? [];
  const unknown = [...searchParams.keys()].find((name) => name !== 'region' && name !== 'endpoint');
  if (bucket === '' || username !== '' || password !== '' || unknown !== undefined)
    throw new SemelError('CONTRACT_INVALID', 'The URL of the store cannot be read.', {
      path: 'store',
      next: "Write 's3://bucket/prefix?region=eu-central-1'; besides `region`, only `endpoint` is known. Credentials are not part of it.",
    });
  const prefix = pathname.replace(/^\/+|\/+$/g, '');
  const region = searchParams.get('region');
  const endpoint = searchParams.get('endpoint');
  return {
    bucket,
    ...(prefix === '' ? {} : { prefix }),
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint }),
  };
}

function checkBucket(name: string): string {
  // A directory bucket lists in no order.
  if (/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.endsWith('--x-s3')) return name;
  throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(name)} is not a bucket that semel can use.`, {
    path: 'store',
    next: 'Name a general purpose bucket: 3 to 63 lower case letters, digits, dots and hyphens.',
  });
}

function checkPrefix(prefix: string): string {
  if (/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(prefix) && prefix.length <= 200) return prefix;
  throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(prefix)} is not a valid prefix for objects.`, {
    path: 'store',
    next: 'Use letters, digits, _ . - and single slashes, at most 200 characters.',
  });
}
