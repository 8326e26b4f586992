// Where retention looks: lists of names, one per minute in which their records may go. A name is there before its
// record is written, and a record that cannot go yet is filed anew; names of records that are gone are dropped.

import { isRemovable, isTombstoneDue } from '../../store/rules/prune.ts';
import type { Row } from '../../store/store.ts';
import type { Reply } from './client.ts';
import type { Run } from './incarnation.ts';
import { type Names, partsOf } from './names.ts';
import { type Filed, short, slotOf, unpack } from './rows.ts';
import { file } from './scripts.ts';

export interface Ways {
  readonly names: Names;
  readonly run: Run;
  readonly send: (key: string, command: readonly string[]) => Promise<Reply>;
}

const chunk = 250;
/** Looked at in one go: a minute of many records is read in several. */
const most = 20_000;
const mostSlots = '1000';

/** Those of the buckets' slots of time that have begun: all asked together, since most have none. */
export async function slotsDue(
  { names, send }: Ways,
  nowOf: (bucket: number) => Promise<number>,
): Promise<readonly { readonly bucket: number; readonly now: number; readonly slots: readonly string[] }[]> {
  return Promise.all(
    Array.from({ length: names.buckets }, async (_, bucket) => {
      const key = names.slots(bucket);
      const now = await nowOf(bucket);
      const slots = await send(key, [
        'zrangebyscore',
        key,
        '-inf',
        String(slotOf(now)),
        'limit',
        '0',
        mostSlots,
      ]);
      return { bucket, now, slots: slots as readonly string[] };
    }),
  );
}

/** What can go of one bucket, at most so many. */
export async function dueIn(
  ways: Ways,
  bucket: number,
  slots: readonly string[],
  limit: number,
  now: number,
): Promise<readonly Filed[]> {
  const { names, send } = ways;
  const found: Filed[] = [];
  let looked = 0;
  for (const slot of slots) {
    const list = names.due(bucket, slot);
    const [first] = (await send(list, ['lrange', list, '0', '0'])) as readonly string[];
    if (first === undefined) continue;
    const common = Buffer.from(first).subarray(1);
    for (let start = 1; found.length < limit && looked < most; ) {
      const stop = String(start + Math.min(chunk, limit - found.length) - 1);
      const listed = (await send(list, ['lrange', list, String(start), stop])) as readonly string[];
      if (listed.length === 0) break;
      const those = new Set(listed.map((entry) => nameIn(entry, common)));
      const part = await lookAt(ways, bucket, slot, [...those], now);
      found.push(...part.due);
      looked += listed.length;
      start += listed.length - part.moved;
    }
  }
  return found;
}

/** Its first character tells how many bytes it has in common with the list's first line. */
function nameIn(entry: string, common: Buffer): string {
  return common.subarray(0, entry.charCodeAt(0)).toString() + entry.slice(1);
}

async function lookAt(
  { names, run, send }: Ways,
  bucket: number,
  slot: string,
  listed: readonly string[],
  now: number,
): Promise<{ due: readonly Filed[]; moved: number }> {
  const keys = listed.map((name) => names.record(bucket, name));
  const values = (await send(keys[0] as string, ['mget', ...keys])) as readonly (string | null)[];
  const time = { wall: now, mono: now, boot: 'store', steady: true };
  const due: Filed[] = [];
  const moves: Promise<Reply>[] = [];
  for (const [index, value] of values.entries()) {
    const filed = value === null ? undefined : unpack(...partsOf(listed[index] as string), value);
    const isHere = filed !== undefined && short(filed.slot) === slot;
    if (isHere && (isRemovable(filed.row, time) || isTombstoneDue(filed.row, time))) {
      due.push(filed);
      continue;
    }
    const later = isHere ? short(slotOf(laterOf(filed.row, now))) : '';
    if (isHere && later === slot) continue;
    moves.push(
      run(
        file,
        [keys[index] as string, names.due(bucket, slot), names.due(bucket, later), names.slots(bucket)],
        [short(filed?.revision), slot, later, String(names.nameStart(bucket))],
      ),
    );
  }
  const moved = await Promise.all(moves);
  return { due, moved: moved.filter((answer) => answer === 1).length };
}

/** When to look again; null: what makes it removable is a write, and that files it. */
function laterOf(row: Row, now: number): number | null {
  const isOpen = row.doubtSince !== null || row.news !== null || (row.status === 'running' && row.dispatched);
  const later =
    row.status !== 'running'
      ? row.expiresAt
      : isOpen
        ? null
        : Math.max(row.leaseUntil ?? 0, row.updatedAt + (row.retention?.failureWindowMs ?? 0));
  return later === null || later <= now ? null : later;
}
