// Where retention looks: lists of names, one per minute in which their records may go. A batch files the names of its new
// records together, as one entry. A later write files its record again only where retention might miss it otherwise, so a
// name may stand in several lists; looking at a record that is gone, or that cannot go yet, costs nothing but the look.

import { isDue } from '../../../rules/prune.ts';
import { isSettled } from '../../../rules/state.ts';
import { isDamaged, readOrDamage } from '../../../store/damage.ts';
import type { Found } from '../../../store/remote/backend.ts';
import type { Row } from '../../../store/store.ts';
import type { Reply } from '../client.ts';
import type { Run } from '../meta.ts';
import { type Names, partsOf } from '../names.ts';
import { unpack } from '../rows.ts';
import { refile } from './scripts.ts';

export interface Ways {
  readonly names: Names;
  readonly run: Run;
  readonly send: (key: string, command: readonly string[]) => Promise<Reply>;
}

const slotMs = 60_000;
/** Entries that are read at once. */
const page = 16;
/** Names looked at in one go: a minute of many records is read in several. */
const most = 20_000;
const mostSlots = '1000';

function slotOf(instant: number): number {
  return Math.floor(instant / slotMs);
}

/**
 * From when on retention should look at it: never later than it can go. Of a running record it depends on nothing that a
 * renewal changes, and where something was sent it foresees a success. Undefined: only another write lets it go.
 */
export function dueSlot({ status, expiresAt, createdAt, retention, dispatched }: Row): number | undefined {
  if (status !== 'running') return expiresAt === null ? undefined : slotOf(expiresAt);
  if (retention === null) return slotOf(createdAt);
  if (!dispatched) return slotOf(createdAt + retention.failureWindowMs);
  const { periodEndsAt, windowMs } = retention;
  return slotOf(Math.min(Number.MAX_SAFE_INTEGER, Math.max(createdAt, periodEndsAt ?? 0) + windowMs));
}

/** Time alone never lets it go. */
function isStuck(row: Row): boolean {
  if (isSettled(row)) return false;
  const { status, doubtFence, news, dispatched } = row;
  return status === 'unknown' || doubtFence !== null || news !== null || (status === 'running' && dispatched);
}

/** A holder that dies now leaves it to retention. */
function isAbandonable(row: Row): boolean {
  return row.status === 'running' && !isStuck(row);
}

/**
 * The slot in which this write has to file its record; undefined: it is filed already, or need not be. `at` and `until`
 * enclose the instant of the write. Retention drops the name of a stuck record whose slot has begun, so a write that finds
 * it begun files the record anew; it never drops an abandonable one.
 */
export function slotToFile(
  before: Row | undefined,
  row: Row,
  { at, until }: { readonly at: number; readonly until: number },
): number | undefined {
  const slot = dueSlot(row);
  if (before === undefined || slot === undefined) return slot;
  if (isAbandonable(before) && isAbandonable(row)) return undefined;
  if (isStuck(row) && slot <= slotOf(at)) return undefined;
  const was = dueSlot(before);
  return was === undefined || slot < was || was <= slotOf(until) ? slot : undefined;
}

/** When to look at a record again that cannot go now; undefined: not before another write, which files it. */
function laterSlot(row: Row, now: number): number | undefined {
  const slot = isAbandonable(row)
    ? slotOf(Math.max(row.leaseUntil ?? 0, row.updatedAt + (row.retention?.failureWindowMs ?? 0)))
    : dueSlot(row);
  if (slot === undefined) return undefined;
  return slot > slotOf(now) || !isStuck(row) ? slot : undefined;
}

/** Those of the buckets' slots of time that have begun: all asked together, since most have none. */
export async function slotsDue(
  { names, send }: Ways,
  nowOf: (bucket: number) => Promise<number>,
): Promise<readonly { readonly bucket: number; readonly now: number; readonly slots: readonly string[] }[]> {
  return Promise.all(
    Array.from({ length: names.buckets }, async (_, bucket) => {
      const key = names.slots(bucket);
      const now = await nowOf(bucket);
      const begun = ['zrangebyscore', key, '-inf', String(slotOf(now)), 'limit', '0', mostSlots];
      return { bucket, now, slots: (await send(key, begun)) as readonly string[] };
    }),
  );
}

/** What can go of one bucket, at most so many. An entry of which nothing can go is dropped, and its names filed later. */
export async function dueIn(
  ways: Ways,
  bucket: number,
  slots: readonly string[],
  limit: number,
  now: number,
): Promise<readonly Found[]> {
  const { names, send } = ways;
  const found = new Map<string, Found>();
  let looked = 0;
  for (const slot of slots) {
    const list = names.due(bucket, slot);
    for (let start = 0; found.size < limit && looked < most; ) {
      const range = [String(start), String(start + page - 1)];
      const entries = (await send(list, ['lrange', list, ...range])) as readonly string[];
      for (const entry of entries) {
        const filed = namesIn(entry);
        looked += filed.length;
        const { due, later, stays } = await lookAt(ways, bucket, slot, filed, now);
        for (const [name, one] of due) if (found.size < limit) found.set(name, one);
        if (due.length > 0 || stays) start += 1;
        else await dropEntry(ways, bucket, slot, entry, later);
        if (found.size >= limit) break;
      }
      if (entries.length < page) break;
    }
  }
  return [...found.values()];
}

interface Looked {
  readonly due: readonly (readonly [name: string, found: Found])[];
  readonly later: ReadonlyMap<number, readonly string[]>;
  /** A record of it cannot go yet, but will in this minute. */
  readonly stays: boolean;
}

async function lookAt(
  { names, send }: Ways,
  bucket: number,
  slot: string,
  filed: readonly string[],
  now: number,
): Promise<Looked> {
  if (filed.length === 0) return { due: [], later: new Map(), stays: false };
  const keys = filed.map((name) => names.record(bucket, name));
  const values = (await send(keys[0] as string, ['mget', ...keys])) as readonly (string | null)[];
  const time = { wall: now, mono: now, boot: 'store', steady: true };
  const due: [string, Found][] = [];
  const later = new Map<number, string[]>();
  let stays = false;
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    const name = filed[index] as string;
    const found = readOrDamage(() => unpack(...partsOf(name), value));
    // It stays until a person has looked at it, and must not keep the others from going.
    if (isDamaged(found)) continue;
    if (isDue(found.row, time)) {
      due.push([name, found]);
      continue;
    }
    const next = laterSlot(found.row, now);
    if (next === undefined) continue;
    if (next <= Number(slot)) stays = true;
    else if (later.has(next)) later.get(next)?.push(name);
    else later.set(next, [name]);
  }
  return { due, later, stays };
}

function dropEntry(
  { names, run }: Ways,
  bucket: number,
  slot: string,
  entry: string,
  later: Looked['later'],
): Promise<Reply> {
  const slots = [...later.keys()];
  return run(
    refile,
    [names.slots(bucket), names.due(bucket, slot), ...slots.map((next) => names.due(bucket, String(next)))],
    [slot, entry, ...slots.flatMap((next) => [String(next), entryOf(later.get(next) ?? [])])],
  );
}

/** Names one after the other, each behind its length in bytes: the first is what all others start with. */
function entryOf(filed: readonly string[]): string {
  const start = commonStart(filed);
  return [start, ...filed.map((name) => name.slice(start.length))]
    .map((part) => `${Buffer.byteLength(part)}:${part}`)
    .join('');
}

function namesIn(entry: string): readonly string[] {
  const bytes = Buffer.from(entry);
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const colon = bytes.indexOf(58, at);
    const size = colon < 0 ? '' : bytes.toString('latin1', at, colon);
    // Not ours: what cannot be read is left out, and the entry is dropped.
    if (!/^\d{1,9}$/.test(size)) break;
    const end = colon + 1 + Number(size);
    parts.push(bytes.toString('utf8', colon + 1, end));
    at = end;
  }
  const [start = '', ...rest] = parts;
  return rest.map((part) => start + part);
}

/** Never half a character, so that every driver can read the rest as text. */
export function commonStart(filed: readonly string[]): string {
  let [start = ''] = filed;
  for (const name of filed) {
    if (name.startsWith(start)) continue;
    let end = 0;
    while (name.charCodeAt(end) === start.charCodeAt(end)) end += 1;
    start = start.slice(0, end);
  }
  const last = start.charCodeAt(start.length - 1);
  return last >= 0xd800 && last < 0xdc00 ? start.slice(0, -1) : start;
}
