// Cells in a bucket: one object each, written only if its ETag has not changed.

import { createHash } from 'node:crypto';
import { SemelError } from '../../core/errors.ts';
import { type AwsAnswer, type AwsClient, encodeStrictly } from '../../store/aws/index.ts';
import {
  type CellName,
  type CellPage,
  type Cells,
  metaName,
  type StoredCell,
  shortenKey,
} from '../../store/cells/index.ts';
import { parseError, readTag, readTags } from './xml.ts';

/** A name may have 1,024 bytes. */
const maxNameBytes = 1_024;
/** Encoded: a key needs room too. */
const maxNamespaceBytes = 500;

export interface Bucket {
  readonly client: AwsClient;
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
}

export interface S3Cells extends Omit<Cells, 'open' | 'close'> {
  /** Throws if the service does not compare before it writes. */
  probe(): Promise<void>;
}

export function createS3Cells({ client, bucket, prefix }: Bucket, ignoresConditions: () => Error): S3Cells {
  /** Whether the service compares before it deletes; not all that compare before they write do. */
  let comparesDeletes: Promise<boolean> | undefined;

  return {
    read: (names) => Promise.all(names.map((name) => get(nameOf(name)))),
    swap: (name, text, tag) => put(nameOf(name), text, tag),
    async remove(name, tag) {
      comparesDeletes ??= probeDeletes();
      comparesDeletes.catch(() => {
        comparesDeletes = undefined;
      });
      return (await comparesDeletes) && isDone(await ask('DELETE', nameOf(name), { 'if-match': tag }));
    },
    list,
    async namespaces() {
      const found = new Set<string>();
      for (let from: string | undefined; ; ) {
        const before = found.size;
        const text = await listObjects({
          prefix: records(),
          delimiter: '/',
          ...(from === undefined ? {} : { 'continuation-token': from }),
        });
        for (const common of readTags(text, 'CommonPrefixes')) {
          const name = (readTag(common, 'Prefix') ?? '').slice(records().length, -1);
          const namespace = decode(name);
          // What semel did not write there does not concern it.
          if (namespace !== undefined && encodeName(namespace) === name) found.add(namespace);
        }
        from = readTag(text, 'NextContinuationToken');
        if (from === undefined) break;
        if (found.size === before) throw new Error('its list of namespaces does not continue');
      }
      found.delete(metaName.namespace);
      return [...found];
    },
    async probe() {
      const name = nameOf(probeName);
      // The second time it is there.
      const isHonoured =
        (await put(name, 'semel', undefined)) === undefined ||
        (await put(name, 'semel', undefined)) === undefined;
      if (!isHonoured) throw ignoresConditions();
      if ((await put(name, 'semel', '"00000000000000000000000000000000"')) !== undefined)
        throw ignoresConditions();
    },
  };

  async function probeDeletes(): Promise<boolean> {
    const name = nameOf(probeName);
    await put(name, 'semel', undefined);
    await ask('DELETE', name, { 'if-match': '"00000000000000000000000000000000"' });
    return (await get(name)) !== undefined;
  }

  function records(): string {
    return `${prefix}records/`;
  }

  function namespacePrefix(namespace: string): string {
    const name = encodeName(namespace);
    if (name.length > maxNamespaceBytes)
      throw new SemelError('CONTRACT_INVALID', 'The namespace is too long for a name in a bucket.', {
        path: 'namespace',
        next: `Use at most ${maxNamespaceBytes} letters and digits; every other byte counts as three.`,
      });
    return `${records()}${name}/`;
  }

  function nameOf({ namespace, key }: CellName): string {
    const start = namespacePrefix(namespace);
    return start + shortenKey(key, maxNameBytes - start.length, encodeName, digest);
  }

  async function get(name: string): Promise<StoredCell | undefined> {
    const { status, text, headers } = await ask('GET', name, {});
    return status === 404 ? undefined : { text, tag: headers.get('etag') ?? '' };
  }

  async function put(name: string, text: string, tag: string | undefined): Promise<string | undefined> {
    const condition = tag === undefined ? { 'if-none-match': '*' } : { 'if-match': tag };
    const answer = await ask('PUT', name, { 'content-type': 'application/json', ...condition }, text);
    if (!isDone(answer)) return undefined;
    const written = answer.headers.get('etag');
    if (written === null) throw new Error('the service did not answer with an ETag');
    return written;
  }

  async function list(
    namespace: string,
    {
      prefix: start,
      after,
      limit,
    }: { readonly prefix: string; readonly after: string | undefined; readonly limit: number },
  ): Promise<CellPage> {
    const within = namespacePrefix(namespace);
    const text = await listObjects({
      prefix: within + encodeName(start.slice(0, startCharacters).replace(/[\ud800-\udbff]$/, '')),
      'max-keys': String(Math.min(1_000, limit)),
      ...(after === undefined ? {} : { 'start-after': within + after }),
    });
    const names = readTags(text, 'Contents').map((one) => readTag(one, 'Key') ?? '');
    const next = readTag(text, 'IsTruncated') === 'true' ? names.at(-1) : undefined;
    // The same page again and again would never end.
    const isBehind = (name: string) => !name.startsWith(within) || name.slice(within.length) <= (after ?? '');
    const isStuck = next === undefined ? readTag(text, 'IsTruncated') === 'true' : isBehind(next);
    if (isStuck) throw new Error('its list of objects does not continue');
    // An object called like the folder is what consoles make of one.
    const ours = names.filter((name) => name !== within);
    const cells = await Promise.all(ours.map(get));
    return {
      cells: cells.flatMap((cell, n) =>
        cell === undefined ? [] : [{ ...cell, place: (ours[n] as string).slice(within.length) }],
      ),
      next: next?.slice(within.length),
    };
  }

  async function listObjects(query: Readonly<Record<string, string>>): Promise<string> {
    const asked = client({ method: 'GET', path: `/${bucket}`, query: { 'list-type': '2', ...query } });
    const { text } = await refuseMissing(asked);
    // Another page in its place would be a ledger without records.
    if (/<\/ListBucketResult>\s*$/.test(text)) return text;
    throw new Error('its list of objects is not one of S3');
  }

  function ask(
    method: string,
    name: string,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<AwsAnswer> {
    const path = `/${bucket}/${name.split('/').map(encodeStrictly).join('/')}`;
    return refuseMissing(client({ method, path, headers, ...(body === undefined ? {} : { body }) }));
  }
}

/** Only to find out what the service compares. */
const probeName: CellName = { ...metaName, key: 'probe' };

/** In fewer bytes than a long key keeps, encoded. */
const startCharacters = 30;

/** A missing object is an answer; a missing bucket is not, nor a 404 from a proxy in between. */
export async function refuseMissing(asked: Promise<AwsAnswer>): Promise<AwsAnswer> {
  const answer = await asked;
  if (answer.status !== 404) return answer;
  const error = parseError(answer);
  if (error.code === 'NoSuchBucket') throw error;
  if (!error.code.startsWith('NoSuch')) throw new Error('a 404 that is not one of S3');
  return answer;
}

/** An object that is gone does not match either. */
function isDone({ status }: AwsAnswer): boolean {
  return status !== 412 && status !== 404;
}

/**
 * One segment of a path that no URL parser changes: without slashes, and never `.` or `..`. Characters are escaped by bytes,
 * so that names sort like keys, as far as those have letters and digits only.
 */
function encodeName(text: string): string {
  return encodeStrictly(text).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length));
}

/** Undefined: semel did not write it. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
