// Builds the keys and arguments of the `swap` script for one bucket. Ordinary writes (a new record; a swap that changes only
// its record) go in bulk, all others one by one.

import type { Found, Swap, Write } from '../../../store/remote/backend.ts';
import type { Row } from '../../../store/store.ts';
import type { KnownBucket } from '../meta.ts';
import { joinName, type Names } from '../names.ts';
import { encodeHead, pack, packNoted } from '../rows.ts';
import { commonStart, slotToFile } from './due.ts';
import { layoutVersion } from './scripts.ts';

/** A swap, and the Redis key of its record. */
export interface PlacedSwap extends Swap {
  readonly bucket: number;
  readonly name: string;
  readonly record: string;
  /** Its index in the caller's list. */
  readonly n: number;
}

export interface PlacedWrite extends PlacedSwap {
  readonly write: Write;
}

interface BatchOptions {
  readonly names: Names;
  readonly bucket: number;
  readonly known: KnownBucket;
  /** In a cluster, a script cannot read records of other buckets. */
  readonly isCluster: boolean;
  /** Create new records only if the server has evicted nothing. */
  readonly mustKeep: boolean;
}

interface Batch {
  readonly keys: string[];
  readonly args: string[];
  /** The writes in the script's numbering. */
  readonly order: readonly PlacedWrite[];
}

/** Bulk writes share one time window. A write decided this much later than the first is sent separately. */
const togetherMs = 100;
/** A write that expires sooner than this would shorten the window of all others. */
const ampleMs = 1_000;

export function buildBatch(writes: readonly PlacedWrite[], options: BatchOptions): Batch {
  const { names, bucket, known, mustKeep } = options;
  const from = names.nameStart(bucket);
  const { fresh, swapped, rest, at, until } = sortWrites(writes);
  const namespaces = new Set<string>();
  for (const { namespace, write } of writes) if (write.before === undefined) namespaces.add(namespace);
  const lists: string[] = [];
  const groups: string[] = [];
  const order: PlacedWrite[] = [];
  const records: string[] = [];
  const rows: string[] = [];
  let lowest = Number.MAX_SAFE_INTEGER;
  for (const [slot, some] of fresh) {
    const common = commonStart(some.map(({ name }) => name));
    lists.push(names.due(bucket, String(slot)));
    groups.push(String(slot), String(some.length), String(from + Buffer.byteLength(common)));
    for (const one of some) {
      const { row, revision } = one.write as Write & { row: Row };
      if (row.fence < lowest) lowest = row.fence;
      order.push(one);
      records.push(one.record);
      rows.push(pack(row, revision));
    }
  }
  const countOfNew = order.length;
  for (const one of swapped) {
    const { before, row, revision } = one.write as Write & { before: Found; row: Row };
    order.push(one);
    records.push(one.record);
    rows.push(encodeHead(before.revision), pack(row, revision));
  }
  const batch = {
    keys: [names.slots(bucket), names.meta(bucket), names.namespaces(bucket), ...lists, ...records],
    args: [
      known.id,
      String(known.seq),
      String(layoutVersion),
      mustKeep && namespaces.size > 0 ? '1' : '',
      String(from),
      String(at),
      String(until),
      String(lowest),
      String(namespaces.size),
      String(lists.length),
      String(countOfNew),
      String(swapped.length),
      ...namespaces,
      ...groups,
      ...rows,
    ],
    order,
  };
  for (const one of rest) {
    order.push(one);
    addOne(batch, one, options);
  }
  return batch;
}

interface Sorted {
  /** New records, by the slot in which to file them. */
  readonly fresh: ReadonlyMap<number, readonly PlacedWrite[]>;
  readonly swapped: readonly PlacedWrite[];
  readonly rest: readonly PlacedWrite[];
  readonly at: number;
  readonly until: number;
}

function sortWrites(writes: readonly PlacedWrite[]): Sorted {
  const fresh = new Map<number, PlacedWrite[]>();
  const swapped: PlacedWrite[] = [];
  const rest: PlacedWrite[] = [];
  // MSETNX writes all new records, and would let two claims of one key both win: only one per key goes in bulk.
  const taken = new Set<string>();
  let earliest = Number.MAX_SAFE_INTEGER;
  for (const { write } of writes) if (write.at < earliest) earliest = write.at;
  let at = 0;
  let until = Number.MAX_SAFE_INTEGER;
  for (const one of writes) {
    const { before, row, events, beside, at: from, until: to } = one.write;
    const isTimely = from <= earliest + togetherMs && to >= earliest + ampleMs;
    const isPlain = row !== undefined && events.length === 0 && beside.length === 0;
    const slot = isPlain ? slotToFile(before?.row, row, one.write) : undefined;
    const isOrdinary =
      isTimely && isPlain && !taken.has(one.key) && (before === undefined) === (slot !== undefined);
    if (!isOrdinary) {
      rest.push(one);
      continue;
    }
    taken.add(one.key);
    if (from > at) at = from;
    if (to < until) until = to;
    if (slot === undefined) swapped.push(one);
    else {
      const together = fresh.get(slot);
      if (together === undefined) fresh.set(slot, [one]);
      else together.push(one);
    }
  }
  return { fresh, swapped, rest, at, until };
}

function addOne({ keys, args }: Batch, one: PlacedWrite, { names, bucket, isCluster }: BatchOptions): void {
  const { namespace, name, record, write } = one;
  const { before, row, revision, events, at, until, beside } = write;
  const slot = row && slotToFile(before?.row, row, write);
  keys.push(
    record,
    slot === undefined ? record : names.due(bucket, String(slot)),
    names.events(bucket, name),
  );
  args.push(
    encodeExpectedHead(before?.revision),
    String(at),
    String(until),
    String(row?.fence ?? 0),
    slot === undefined ? '' : String(slot),
    row === undefined ? '' : pack(row, revision),
    String(events.length),
    ...events.map(packNoted),
  );
  const near = beside.filter(({ key }) => !isCluster || names.bucketOf(namespace, key) === bucket);
  args.push(String(near.length));
  for (const other of near) {
    keys.push(names.record(bucket, joinName(namespace, other.key)));
    args.push(encodeExpectedHead(other.revision));
  }
}

/** Empty if no record is expected. */
function encodeExpectedHead(revision: number | undefined): string {
  return revision === undefined ? '' : encodeHead(revision);
}
