// The due lists that pruning reads: names of records, one list per minute in which they may be removed. A batch files the
// names of its new records as one entry. A later write files its record again only if pruning could miss it otherwise, so a
// name may be in several lists; reading a record that is gone or cannot go yet is harmless.

import { isDue } from '../../../rules/prune.ts';
import { isSettled } from '../../../rules/state.ts';
import { isDamaged, readOrDamage } from '../../../store/damage.ts';
import type { Found } from '../../../store/remote/backend.ts';
import type { Row } from '../../../store/store.ts';
import type { Reply } from '../client.ts';
import type { Run } from '../meta.ts';
import { type Names, splitName } from '../names.ts';
import { unpack } from '../rows.ts';
import { refile } from './scripts.ts';

interface DueContext {
  readonly names: Names;
  readonly run: Run;
  readonly send: (key: string, command: readonly string[]) => Promise<Reply>;
}

const slotMs = 60_000;
/** Entries per query. */
const pageSize = 16;
/** Maximum number of names to check per call. */
const maxLooked = 20_000;
const mostSlots = '1000';

function toSlot(instant: number): number {
  return Math.floor(instant / slotMs);
}

/**
 * When pruning should check the record: never later than it can be removed. For a running record this must not depend on
 * anything that a renewal changes; if it was dispatched, assumes that it will succeed. Undefined if only another write can
 * make it removable.
 */
export function dueSlot({ status, expiresAt, createdAt, retention, dispatched }: Row): number | undefined {
  if (status !== 'running') return expiresAt === null ? undefined : toSlot(expiresAt);
  if (retention === null) return toSlot(createdAt);
  if (!dispatched) return toSlot(createdAt + retention.failureWindowMs);
  const { periodEndsAt, windowMs } = retention;
  return toSlot(Math.min(Number.MAX_SAFE_INTEGER, Math.max(createdAt, periodEndsAt ?? 0) + windowMs));
}

/** Time alone never makes it removable. */
function isStuck(row: Row): boolean {
  if (isSettled(row)) return false;
  const { status, doubtFence, news, dispatched } = row;
  return status === 'unknown' || doubtFence !== null || news !== null || (status === 'running' && dispatched);
}

/** If its worker dies now, pruning removes it. */
function isAbandonable(row: Row): boolean {
  return row.status === 'running' && !isStuck(row);
}

/**
 * The slot in which this write must file its record; undefined if it is already filed or need not be. The write happens
 * between `at` and `until`. Pruning drops the name of a stuck record whose slot has begun, so a later write files it again;
 * it never drops an abandonable record.
 */
export function slotToFile(
  before: Row | undefined,
  row: Row,
  { at, until }: { readonly at: number; readonly until: number },
): number | undefined {
  const slot = dueSlot(row);
  if (before === undefined || slot === undefined) return slot;
  if (isAbandonable(before) && isAbandonable(row)) return undefined;
  if (isStuck(row) && slot <= toSlot(at)) return undefined;
  const was = dueSlot(before);
  return was === undefined || slot < was || was <= toSlot(until) ? slot : undefined;
}

/** When to check again a record that cannot go now; undefined if the next write will file it. */
function laterSlot(row: Row, now: number): number | undefined {
  const slot = isAbandonable(row)
    ? toSlot(Math.max(row.leaseUntil ?? 0, row.updatedAt + (row.retention?.failureWindowMs ?? 0)))
    : dueSlot(row);
  if (slot === undefined) return undefined;
  return slot > toSlot(now) || !isStuck(row) ? slot : undefined;
}

/** Slots that have begun, of all buckets at once, because most have none. */
export async function findDueSlots(
  { names, send }: DueContext,
  readTime: (bucket: number) => Promise<number>,
): Promise<readonly { readonly bucket: number; readonly now: number; readonly slots: readonly string[] }[]> {
  return Promise.all(
    Array.from({ length: names.buckets }, async (_, bucket) => {
      const key = names.slots(bucket);
      const now = await readTime(bucket);
      const begun = ['zrangebyscore', key, '-inf', String(toSlot(now)), 'limit', '0', mostSlots];
      return { bucket, now, slots: (await send(key, begun)) as readonly string[] };
    }),
  );
}

/** Removable records of one bucket. An entry without any is dropped, and its names are filed again for later. */
export async function findDueRecords(
  context: DueContext,
  bucket: number,
  slots: readonly string[],
  limit: number,
  now: number,
): Promise<readonly Found[]> {
  const { names, send } = context;
  const found = new Map<string, Found>();
  let looked = 0;
  for (const slot of slots) {
    const list = names.due(bucket, slot);
    for (let start = 0; found.size < limit && looked < maxLooked; ) {
      const range = [String(start), String(start + pageSize - 1)];
      const entries = (await send(list, ['lrange', list, ...range])) as readonly string[];
      for (const entry of entries) {
        const filed = parseEntry(entry);
        looked += filed.length;
        const { due, later, stays } = await lookAt(context, bucket, slot, filed, now);
        for (const [name, one] of due) if (found.size < limit) found.set(name, one);
        if (due.length > 0 || stays) start += 1;
        else await dropEntry(context, bucket, slot, entry, later);
        if (found.size >= limit) break;
      }
      if (entries.length < pageSize) break;
    }
  }
  return [...found.values()];
}

interface Looked {
  readonly due: readonly (readonly [name: string, found: Found])[];
  readonly later: ReadonlyMap<number, readonly string[]>;
  /** A record of the entry cannot go yet, but can later in this slot. */
  readonly stays: boolean;
}

async function lookAt(
  { names, send }: DueContext,
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
    const found = readOrDamage(() => unpack(...splitName(name), value));
    // A damaged record stays for a person to look at, without blocking the others.
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
  { names, run }: DueContext,
  bucket: number,
  slot: string,
  entry: string,
  later: Looked['later'],
): Promise<Reply> {
  const slots = [...later.keys()];
  return run(
    refile,
    [names.slots(bucket), names.due(bucket, slot), ...slots.map((next) => names.due(bucket, String(next)))],
    [slot, entry, ...slots.flatMap((next) => [String(next), buildEntry(later.get(next) ?? [])])],
  );
}

/** The names' common prefix, then the rest of each name, every part after its length in bytes. */
function buildEntry(filed: readonly string[]): string {
  const start = commonStart(filed);
  return [start, ...filed.map((name) => name.slice(start.length))]
    .map((part) => `${Buffer.byteLength(part)}:${part}`)
    .join('');
}

function parseEntry(entry: string): readonly string[] {
  const bytes = Buffer.from(entry);
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const colon = bytes.indexOf(58, at);
    const size = colon < 0 ? '' : bytes.toString('latin1', at, colon);
    // Semel did not write this: ignore the rest, and drop the entry.
    if (!/^\d{1,9}$/.test(size)) break;
    const end = colon + 1 + Number(size);
    parts.push(bytes.toString('utf8', colon + 1, end));
    at = end;
  }
  const [start = '', ...rest] = parts;
  return rest.map((part) => start + part);
}

/** Never splits a character, so that every driver can read the rest as text. */
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
