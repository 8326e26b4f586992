// What `exchange` in exchange-function.ts is asked, and what it answers. The ordinary first claims and settlements of a batch go
// as lists, which cost the database least; everything else as JSON.

import { columnsOf, isOpen } from '../../store/columns.ts';
import type { Found, Swap, Swapped, Write } from '../../store/remote/backend.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import { arrayOf, type Value } from './array.ts';
import { claimLists, kinds, settleLists } from './exchange-function.ts';
import { decode, itemOf, type Selected } from './rows.ts';
import { schemaVersion } from './schema.ts';

interface Asked {
  readonly kind: number;
  readonly namespace: string;
  readonly key: string;
  readonly write: Write;
  readonly row: Row;
}

/** One pair of instants stands for all that is in the lists: decisions that are about to turn, or that were made later, do not go there. */
const leastMs = 1_000;
const apartMs = 100;

/** How long a locked row is waited for. */
const longestMs = 50;
const shortestMs = 20;

/** As the function takes them. */
export function valuesOf(swaps: readonly Swap[]): unknown[] {
  const asked: Asked[] = [];
  const looked: Swap[] = [];
  let noted: object[] | undefined;
  let beside: object[] | undefined;
  let earliest = Number.POSITIVE_INFINITY;
  for (const swap of swaps) {
    const { namespace, key, write } = swap;
    if (write === undefined) {
      looked.push(swap);
      continue;
    }
    if (write.row !== undefined) {
      asked.push({ kind: kindOf(write, write.row), namespace, key, write, row: write.row });
      if (write.at < earliest) earliest = write.at;
    }
    if (write.events.length > 0) noted = [...(noted ?? []), ...notedOf(write)];
    if (write.beside.length > 0) beside = [...(beside ?? []), ...besideOf(swap, write)];
  }
  // All who write many at once do so in one order: a kind is not divided between lists and JSON.
  if (asked.length > 1) asked.sort(inOrder);
  const isOrdinary = (one: Asked) =>
    one.write.events.length === 0 &&
    one.write.beside.length === 0 &&
    one.write.at - earliest < apartMs &&
    one.write.until - earliest > leastMs &&
    (one.kind === kinds.fresh ? isFirst(one.row) : isSettlement(one));
  const areOrdinary = (kind: number) => asked.every((one) => one.kind !== kind || isOrdinary(one));
  const hasClaims = areOrdinary(kinds.fresh);
  const hasSettlements = areOrdinary(kinds.ended);

  const claims: Value[][] = claimLists.map(() => []);
  const settlements: Value[][] = settleLists.map(() => []);
  const rest: object[] = [];
  let at = 0;
  let until = Number.MAX_SAFE_INTEGER;
  for (const one of asked) {
    const { kind, write } = one;
    if (kind === kinds.fresh && hasClaims) addClaim(claims, one);
    else if (kind === kinds.ended && hasSettlements) addSettlement(settlements, one);
    else {
      rest.push(restOf(one));
      continue;
    }
    if (write.at > at) at = write.at;
    if (write.until < until) until = write.until;
  }
  return [
    ...claims.map(listOf),
    ...settlements.map(listOf),
    listOf(looked.map(({ namespace }) => namespace)),
    listOf(looked.map(({ key }) => key)),
    at,
    until,
    rest.length === 0 ? null : JSON.stringify(rest),
    noted === undefined ? null : JSON.stringify(noted),
    beside === undefined ? null : JSON.stringify(beside),
    // The fewer there are, the fewer wait for nothing; and to divide a batch until the locked one is alone takes not long.
    `${Math.min(longestMs, Math.max(shortestMs, swaps.length))}ms`,
    schemaVersion,
  ];
}

/** As `look` takes them. */
export function lookedFor(swaps: readonly Swap[]): unknown[] {
  return [
    arrayOf(swaps.map(({ namespace }) => namespace)),
    arrayOf(swaps.map(({ key }) => key)),
    schemaVersion,
  ];
}

function kindOf({ before }: Write, row: Row): number {
  if (before === undefined) return kinds.fresh;
  if (isOpen(before.row.status)) return isOpen(row.status) ? kinds.held : kinds.ended;
  return isOpen(row.status) ? kinds.taken : kinds.told;
}

function inOrder(a: Asked, b: Asked): number {
  if (a.kind !== b.kind) return a.kind - b.kind;
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}

/** It has nothing that the list of claims leaves out. */
function isFirst(row: Row): boolean {
  return row.status === 'running' && row.settledAt === null && row.expiresAt === null && row.result === null;
}

/** It changes nothing that the list of settlements leaves out. */
function isSettlement({ write, row }: Asked): boolean {
  const was = write.before?.row as Row;
  return (
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
function addClaim(lists: Value[][], { namespace, key, write, row }: Asked): void {
  const [, flags, fence, token, version, owner, created, , , args, content, , asker, more] = columnsOf(row);
  let next = 0;
  const add = (value: Value) => (lists[next++] as Value[]).push(value);
  add(namespace);
  add(key);
  add(write.revision);
  add(fence);
  add(created);
  add(flags);
  add(token);
  add(version);
  add(owner);
  add(args);
  add(content);
  add(asker);
  add(more);
}

/** In the order of `settleLists`. */
function addSettlement(lists: Value[][], { namespace, key, write, row }: Asked): void {
  const [status, flags, , , , , , settled, , , , result, , more] = columnsOf(row);
  let next = 0;
  const add = (value: Value) => (lists[next++] as Value[]).push(value);
  add(namespace);
  add(key);
  add(write.before?.revision as number);
  add(write.revision);
  add(row.expiresAt);
  add(settled);
  add(status);
  add(flags);
  add(result);
  add(more);
}

function restOf({ kind, namespace, key, write, row }: Asked): object {
  const { revision, at, until, before } = write;
  return { kind, namespace, key, revision, at, until, old: before?.revision ?? null, ...itemOf(row) };
}

function listOf(values: readonly Value[]): string | null {
  return values.length === 0 ? null : arrayOf(values);
}

function notedOf({ row, revision, events }: Write): readonly object[] {
  return events.map((event, i) => ({
    i,
    revision: row === undefined ? null : revision,
    at: event.at,
    ...eventOf(event),
  }));
}

function besideOf({ namespace, key }: Swap, { beside, revision }: Write): readonly object[] {
  // A lock for each key, in one order: another claim may share only one of these forms with this one.
  const locks = [key, ...beside.map((other) => other.key)].sort();
  return locks.map((lock, index) => {
    const other = beside[Math.min(index, beside.length - 1)] as Write['beside'][number];
    return { revision, namespace, key: other.key, was: other.revision ?? null, first: lock };
  });
}

export function eventOf({ namespace, key, generation, fence, type, detail }: Omit<StoreEvent, 'at'>): object {
  return { namespace, key, generation, fence, type, detail: JSON.stringify(detail) };
}

const swapDone: Swapped = { done: true };

/** `done`: which writes were, by their revisions; null: all. `seen`: what is there where one was not. */
export function answersOf(
  swaps: readonly Swap[],
  { done, seen }: { readonly done?: unknown; readonly seen?: unknown },
): readonly Swapped[] {
  if (typeof done !== 'string') return swaps.map(() => swapDone);
  const revisions = new Set(JSON.parse(done) as number[]);
  const rows = new Map<string, Found>();
  if (typeof seen === 'string')
    for (const [namespace, key, ...selected] of JSON.parse(seen) as [string, string, ...Selected][])
      rows.set(`${namespace}\0${key}`, foundIn(namespace, key, selected));
  return swaps.map(({ namespace, key, write }) =>
    write !== undefined && (write.row === undefined || revisions.has(write.revision))
      ? swapDone
      : { done: false, found: rows.get(`${namespace}\0${key}`) },
  );
}

export function foundIn(namespace: string, key: string, selected: Selected): Found {
  return { row: decode(namespace, key, selected), revision: selected[0] };
}
