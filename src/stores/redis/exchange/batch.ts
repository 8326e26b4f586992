// The swaps of one bucket as keys and arguments of the script that does them. What is ordinary (a new record; a swap that
// changes nothing but its record) goes in bulk, and whatever else one by one.

import type { Found, Swap, Write } from '../../../store/remote/backend.ts';
import type { Row } from '../../../store/store.ts';
import type { Known } from '../meta.ts';
import { type Names, nameOf } from '../names.ts';
import { headOf, pack, packNoted } from '../rows.ts';
import { commonStart, slotToFile } from './due.ts';
import { layoutVersion } from './scripts.ts';

/** A swap, and where in Redis it is about. */
export interface Placed extends Swap {
  readonly bucket: number;
  readonly name: string;
  readonly record: string;
  /** Its place in what was asked. */
  readonly n: number;
}

export interface Writing extends Placed {
  readonly write: Write;
}

export interface BatchOptions {
  readonly names: Names;
  readonly bucket: number;
  readonly known: Known;
  /** Records of other buckets are out of the script's reach. */
  readonly isCluster: boolean;
  /** A new record is made only where the server has evicted nothing. */
  readonly mustKeep: boolean;
}

export interface Batch {
  readonly keys: string[];
  readonly args: string[];
  /** In the order in which the script numbers them. */
  readonly order: readonly Writing[];
}

/** Decisions of one batch are made together; one that is this far from the others is judged by its own time. */
const togetherMs = 100;
/** What must be done sooner than this would shorten the time of all others. */
const ampleMs = 1_000;

export function batchOf(writings: readonly Writing[], options: BatchOptions): Batch {
  const { names, bucket, known, mustKeep } = options;
  const from = names.nameStart(bucket);
  const { fresh, swapped, others, at, until } = sorted(writings);
  const namespaces = new Set<string>();
  for (const { namespace, write } of writings) if (write.before === undefined) namespaces.add(namespace);
  const lists: string[] = [];
  const groups: string[] = [];
  const order: Writing[] = [];
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
    rows.push(headOf(before.revision), pack(row, revision));
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
  for (const one of others) {
    order.push(one);
    addOne(batch, one, options);
  }
  return batch;
}

interface Sorted {
  /** By the slot in which they are filed. */
  readonly fresh: ReadonlyMap<number, readonly Writing[]>;
  readonly swapped: readonly Writing[];
  readonly others: readonly Writing[];
  readonly at: number;
  readonly until: number;
}

function sorted(writings: readonly Writing[]): Sorted {
  const fresh = new Map<number, Writing[]>();
  const swapped: Writing[] = [];
  const others: Writing[] = [];
  // One command writes all new records, and the last value of a key would win: two of one key do not go together.
  const taken = new Set<string>();
  let earliest = Number.MAX_SAFE_INTEGER;
  for (const { write } of writings) if (write.at < earliest) earliest = write.at;
  let at = 0;
  let until = Number.MAX_SAFE_INTEGER;
  for (const one of writings) {
    const { before, row, events, beside, at: from, until: to } = one.write;
    const isTimely = from <= earliest + togetherMs && to >= earliest + ampleMs;
    const isPlain = row !== undefined && events.length === 0 && beside.length === 0;
    const slot = isPlain ? slotToFile(before?.row, row, one.write) : undefined;
    const isOrdinary =
      isTimely && isPlain && !taken.has(one.key) && (before === undefined) === (slot !== undefined);
    if (!isOrdinary) {
      others.push(one);
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
  return { fresh, swapped, others, at, until };
}

function addOne({ keys, args }: Batch, one: Writing, { names, bucket, isCluster }: BatchOptions): void {
  const { namespace, name, record, write } = one;
  const { before, row, revision, events, at, until, beside } = write;
  const slot = row && slotToFile(before?.row, row, write);
  keys.push(
    record,
    slot === undefined ? record : names.due(bucket, String(slot)),
    names.events(bucket, name),
  );
  args.push(
    headIn(before?.revision),
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
    keys.push(names.record(bucket, nameOf(namespace, other.key)));
    args.push(headIn(other.revision));
  }
}

/** Empty: there should be none. */
function headIn(revision: number | undefined): string {
  return revision === undefined ? '' : headOf(revision);
}
