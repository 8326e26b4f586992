// Sends a batch to the functions in exchange-functions.ts. Ordinary first claims and settlements go as arrays, which cost the
// database least; everything else as JSON.

import type { Found, RemoteBackend, Swap, Swapped, Write } from '../../store/remote/backend.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import type { Value } from './array.ts';
import { claimLists, type QuestionName, settleLists } from './exchange-functions.ts';
import { decodeFound, encode, type Packed } from './rows.ts';
import { schemaVersion } from './schema.ts';

interface RowWrite {
  readonly swap: Swap;
  readonly write: Write;
  readonly row: Row;
}

/** Calls one of the functions and returns its rows. Encodes lists as the connection needs them. */
export type Call = (
  name: QuestionName,
  values: readonly (Value | readonly Value[])[],
) => Promise<readonly (readonly unknown[])[]>;
type Exchanged = Awaited<ReturnType<RemoteBackend['exchange']>>;

const swapDone: Swapped = { done: true };

/**
 * Usually all writes succeed, and no second query is needed. Ordinary and other writes are two transactions: if only one
 * fails, its writes count as not done.
 */
export async function exchange(call: Call, swaps: readonly Swap[]): Promise<Exchanged> {
  const { looked, writes } = sortSwaps(swaps);
  const replies = await Promise.allSettled(writes.map(({ name, values }) => call(name, values)));
  let said: string | undefined;
  for (const [index, { swaps: asked }] of writes.entries()) {
    const reply = replies[index] as (typeof replies)[number];
    if (reply.status === 'rejected') looked.push(...asked);
    else {
      said = reply.value[0]?.[0] as string;
      const from = said.indexOf('[');
      if (from >= 0) looked.push(...findUndone(asked, JSON.parse(said.slice(from))));
    }
  }
  if (said === undefined) for (const reply of replies) if (reply.status === 'rejected') throw reply.reason;
  if (looked.length === 0) {
    const [now, floor] = (said ?? '').split(',', 2);
    return { now: Number(now), floor: Number(floor), answers: swaps.map(() => swapDone) };
  }

  const usual = (looked[0] as Swap).namespace;
  const [head, ...rows] = (await call('look', lookValues(looked))) as readonly [Packed, ...Packed[]];
  const [now, floor] = head[0].split(',');
  const found = new Map<string, Found>();
  for (const row of rows) found.set(joinName(row[2] ?? usual, row[1]), decodeFound(row, usual));
  const undone = looked.length === swaps.length ? undefined : new Set(looked);
  return {
    now: Number(now),
    floor: Number(floor),
    answers: swaps.map((swap) =>
      undone === undefined || undone.has(swap)
        ? { done: false, found: found.get(joinName(swap.namespace, swap.key)) }
        : swapDone,
    ),
  };
}

function findUndone(asked: readonly Swap[], done: readonly number[]): readonly Swap[] {
  const revisions = new Set(done);
  return asked.filter(({ write }) => write?.row !== undefined && !revisions.has(write.revision));
}

/** All writes in the lists share one time window, so those that expire soon or were decided later are sent apart. */
const leastMs = 1_000;
const apartMs = 100;

/** How long to wait for a locked row. */
const longestMs = 50;
const shortestMs = 20;

/** A batch, by how it is sent. */
interface SortedSwaps {
  readonly looked: Swap[];
  readonly writes: readonly {
    readonly name: QuestionName;
    readonly swaps: readonly Swap[];
    readonly values: Parameters<Call>[1];
  }[];
}

export function sortSwaps(swaps: readonly Swap[]): SortedSwaps {
  const asked: RowWrite[] = [];
  const looked: Swap[] = [];
  const others: Swap[] = [];
  let noted: object[] | undefined;
  let beside: object[] | undefined;
  let earliest = Number.POSITIVE_INFINITY;
  for (const swap of swaps) {
    const { write } = swap;
    if (write === undefined) {
      looked.push(swap);
      continue;
    }
    if (write.row !== undefined) {
      asked.push({ swap, write, row: write.row });
      if (write.at < earliest) earliest = write.at;
    } else others.push(swap);
    if (write.events.length > 0) noted = [...(noted ?? []), ...encodeEvents(write)];
    if (write.beside.length > 0) beside = [...(beside ?? []), ...encodeBeside(swap, write)];
  }
  // Every batch writes in the same order, which prevents deadlocks.
  if (asked.length > 1) asked.sort(compareWrites);

  const plain: Swap[] = [];
  const claimed: Value[][] = claimLists.map(() => []);
  const settled: Value[][] = settleLists.map(() => []);
  const rest: object[] = [];
  let at = 0;
  let until = Number.MAX_SAFE_INTEGER;
  for (const one of asked) {
    const { write, swap } = one;
    const isOrdinary =
      write.events.length === 0 &&
      write.beside.length === 0 &&
      write.at - earliest < apartMs &&
      write.until - earliest > leastMs;
    if (isOrdinary && isFirstClaim(one)) addClaim(claimed, one);
    else if (isOrdinary && isSettlement(one)) addSettlement(settled, one);
    else {
      others.push(swap);
      rest.push(encodeOther(one));
      continue;
    }
    plain.push(swap);
    if (write.at > at) at = write.at;
    if (write.until < until) until = write.until;
  }
  // A small batch waits less: fewer calls share the delay, and bisecting it is quick.
  const last = [`${Math.min(longestMs, Math.max(shortestMs, swaps.length))}ms`, schemaVersion];
  const writes: SortedSwaps['writes'][number][] = [];
  if (plain.length > 0) {
    const [claims = [], settlements = []] = [claimed[0], settled[0]];
    const name = settlements.length === 0 ? 'claim' : claims.length === 0 ? 'settle' : 'both';
    const lists = name === 'both' ? [...claimed, ...settled] : name === 'claim' ? claimed : settled;
    writes.push({ name, swaps: plain, values: [...lists, at, until, ...last] });
  }
  if (others.length > 0) {
    const values = [JSON.stringify(rest), toJson(noted), toJson(beside), ...last];
    writes.push({ name: 'swap', swaps: others, values });
  }
  return { looked, writes };
}

/** Parameters of `look`, with each namespace once. */
function lookValues(swaps: readonly Swap[]): Parameters<Call>[1] {
  const namespaces = new Set<string>();
  const keys: string[] = [];
  for (const { namespace, key } of swaps) {
    namespaces.add(namespace);
    keys.push(key);
  }
  return [[...namespaces], keys, schemaVersion];
}

function compareWrites(a: RowWrite, b: RowWrite): number {
  const isFresh = a.write.before === undefined;
  if (isFresh !== (b.write.before === undefined)) return isFresh ? -1 : 1;
  const [one, other] = [a.swap, b.swap];
  if (one.namespace !== other.namespace) return one.namespace < other.namespace ? -1 : 1;
  return one.key < other.key ? -1 : 1;
}

/** `claimLists` has all of its columns. */
function isFirstClaim({ write, row }: RowWrite): boolean {
  return (
    write.before === undefined &&
    row.status === 'running' &&
    row.settledAt === null &&
    row.expiresAt === null &&
    row.result === null
  );
}

/** `settleLists` has all columns that it changes. */
function isSettlement({ write, row }: RowWrite): boolean {
  const was = write.before?.row;
  return (
    was !== undefined &&
    row.fence === was.fence &&
    row.createdAt === was.createdAt &&
    row.token === was.token &&
    row.version === was.version &&
    row.owner === was.owner &&
    row.args === was.args &&
    row.content === was.content &&
    row.conversation === was.conversation &&
    row.turn === was.turn &&
    row.toolCallId === was.toolCallId &&
    row.run === was.run &&
    row.again === was.again &&
    row.caller === was.caller
  );
}

/** In the order of `claimLists`. */
function addClaim(lists: Value[][], { swap: { namespace, key }, write, row }: RowWrite): void {
  const { fence, created, sum, flags, token, version, owner, args, content, asker, more } = encode(row);
  const head = [namespace, key, write.revision, fence, created, sum, flags];
  addEach(lists, [...head, token, version, owner, args, content, asker, more]);
}

/** In the order of `settleLists`. */
function addSettlement(lists: Value[][], { swap: { namespace, key }, write, row }: RowWrite): void {
  const { expires, settled, sum, status, flags, result, more } = encode(row);
  const head = [namespace, key, write.before?.revision as number, write.revision];
  addEach(lists, [...head, expires, settled, sum, status, flags, result, more]);
}

function addEach(lists: Value[][], values: readonly Value[]): void {
  for (let n = 0; n < values.length; n += 1) (lists[n] as Value[]).push(values[n] as Value);
}

function encodeOther({ swap: { namespace, key }, write, row }: RowWrite): object {
  const { revision, at, until, before } = write;
  return { namespace, key, revision, at, until, old: before?.revision ?? null, ...encode(row) };
}

function joinName(namespace: string, key: string): string {
  return `${namespace}\0${key}`;
}

function toJson(list: readonly object[] | undefined): string | null {
  return list === undefined ? null : JSON.stringify(list);
}

function encodeEvents({ row, revision, events }: Write): readonly object[] {
  return events.map((event, i) => ({
    i,
    revision: row === undefined ? null : revision,
    at: event.at,
    ...encodeEvent(event),
  }));
}

function encodeBeside({ namespace, key }: Swap, { beside, revision }: Write): readonly object[] {
  // One lock per key, in sorted order: another claim may share just one of these keys.
  const locks = [key, ...beside.map((other) => other.key)].sort();
  return locks.map((lock, index) => {
    const other = beside[Math.min(index, beside.length - 1)] as Write['beside'][number];
    return { revision, namespace, key: other.key, was: other.revision ?? null, first: lock };
  });
}

export function encodeEvent({
  namespace,
  key,
  generation,
  fence,
  type,
  detail,
}: Omit<StoreEvent, 'at'>): object {
  return { namespace, key, generation, fence, type, detail: JSON.stringify(detail) };
}
