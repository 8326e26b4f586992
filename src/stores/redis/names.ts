// The Redis keys of a ledger, and how to find them. The part in braces is the bucket: all of its keys share a cluster slot.

import { SemelError } from '../../core/errors.ts';
import type { Node, Reply } from './client.ts';

export interface Names {
  readonly buckets: number;
  bucketOf(namespace: string, key: string): number;
  record(bucket: number, name: string): string;
  /** Where the name starts in a record's key, counted from one. */
  readonly nameStart: (bucket: number) => number;
  events(bucket: number, name: string): string;
  meta(bucket: number): string;
  /** The time slots that have a due list. */
  slots(bucket: number): string;
  namespaces(bucket: number): string;
  due(bucket: number, slot: string): string;
  /** For SCAN: records whose names start like this. */
  pattern(start: string): string;
  /** The record's name; undefined if it is not a record's key. */
  parseRecordKey(key: string): string | undefined;
}

/** Buckets in a cluster; elsewhere one is enough. */
export const clusterBuckets = 256;

export function checkPrefix(prefix: string): string {
  if (/^[\w.:/-]{1,64}$/.test(prefix)) return prefix;
  throw new SemelError(
    'CONTRACT_INVALID',
    `${JSON.stringify(prefix)} is not a valid prefix for Redis keys.`,
    {
      path: 'prefix',
      next: 'Use letters, digits and _ . : / -, at most 64.',
    },
  );
}

export function createNames(prefix: string, buckets: number): Names {
  const within = (bucket: number, rest: string) => `${prefix}{${bucket}}${rest}`;
  const ofRecord = new RegExp(`^${prefix.replaceAll('.', '\\.')}\\{\\d+\\}r:([^]*)$`);
  return {
    buckets,
    bucketOf: (namespace, key) => (buckets === 1 ? 0 : hash(joinName(namespace, key)) % buckets),
    record: (bucket, name) => within(bucket, `r:${name}`),
    nameStart: (bucket) => Buffer.byteLength(within(bucket, 'r:')) + 1,
    events: (bucket, name) => within(bucket, `e:${name}`),
    meta: (bucket) => within(bucket, 'meta'),
    slots: (bucket) => within(bucket, 'slots'),
    namespaces: (bucket) => within(bucket, 'namespaces'),
    due: (bucket, slot) => within(bucket, `due:${slot}`),
    pattern: (start) => `${prefix}{*}r:${start.replace(/[\\*?[\]^-]/g, '\\$&')}*`,
    parseRecordKey: (key) => ofRecord.exec(key)?.[1],
  };
}

export function joinName(namespace: string, key: string): string {
  return `${namespace}\0${key}`;
}

export function splitName(name: string): [namespace: string, key: string] {
  const end = name.indexOf('\0');
  return [name.slice(0, end), name.slice(end + 1)];
}

/** FNV-1a. It decides where records are stored, so it must never change. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}

const count = '2000';

/** The names of all records that start like this, in any order, perhaps with duplicates. Scans the whole database. */
export async function* scan(
  nodes: readonly Node[],
  names: Names,
  start = '',
): AsyncGenerator<readonly string[], void> {
  const pattern = names.pattern(start);
  for (const node of nodes) {
    for (let cursor = '0'; ; ) {
      const reply = await node('scan', cursor, 'match', pattern, 'count', count);
      const [next, keys] = reply as [Reply, readonly string[]];
      yield keys
        .map((key) => names.parseRecordKey(key))
        .filter((name) => name?.startsWith(start)) as string[];
      cursor = String(next);
      if (cursor === '0') break;
    }
  }
}
