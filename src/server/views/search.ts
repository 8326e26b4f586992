// "Did this happen?": finds records by whatever a person has in hand. Exact names are looked up; anything else is searched from
// the newest record on, a bounded number at a time, and the answer says how many were searched.

import { recordId } from '../../core/key/key.ts';
import { type RecordInfo, toRecordInfo } from '../../semel/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, type Read, text } from '../exchange/schema.ts';
import type { Space } from '../space.ts';
import { readNewest, readNewestKeys } from './newest.ts';
import { createQueue } from './queue.ts';

export const searchQuery = object(
  {
    q: text({
      max: 500,
      about:
        'A key or its beginning, an id or ref, a tool call id, the id that a target gave, or a text in the args or the result. Case matters.',
    }),
  },
  { after: text({ max: 2_000, about: 'The `next` of the answer before: searches older records.' }) },
);

interface Match {
  /** Without its result. */
  readonly record: object;
  /** Where the text was found: `key`, `id`, `toolCallId`, `args.order`. */
  readonly found: readonly string[];
  /** A whole value, not a part of one. */
  readonly isExact: boolean;
}

/** Rows per answer. Over a wire each is dearer. */
const maxRows = 10_000;
const maxRemoteRows = 500;
/** Held in memory at once, and looked at before other requests get their turn: each may have megabytes. */
const rowsAtOnce = 50;
/** Where those before were small, and did not match. */
const smallRowsAtOnce = 200;
const smallRowsMs = 3;
/** Large records take longer: an answer ends after about this time, and `next` goes on. */
const searchMs = 1_000;
const maxMatches = 50;
/** Open records are few; more than this are not looked through for an id. */
const maxOpen = 2_000;

const searches = createQueue(2);

export async function search(query: Read<typeof searchQuery>, context: Context): Promise<object> {
  return (await searches(() => find(query, context), context)) ?? {};
}

async function find(query: Read<typeof searchQuery>, { space, signal }: Context): Promise<object> {
  const q = query.q.trim();
  const [, id = ''] = /^([0-9a-z]{4,40})(@\d+(\.[0-9a-z]+)?)?$/.exec(q) ?? [];
  const matches = new Map<string, Match>();
  const add = (record: StoredRecord, found: readonly string[], isExact = true) => {
    if (found.length === 0 || matches.has(record.key)) return;
    const info = readable(record);
    if (info !== undefined) matches.set(record.key, { record: shortened(info, record), found, isExact });
  };
  const named = q.replace(/@\d+(\.[0-9a-z]+)?$/, '');
  if (query.after === undefined) {
    for (const record of await findByKey(space, named)) add(record, ['key']);
    if (id !== '') for (const record of await findOpen(space, id)) add(record, ['id']);
  }
  const isName = matches.size > 0;
  // A name that was found needs no search.
  if (isName) return { matches: [...matches.values()], looked: 0, next: undefined, isNewest: true };
  const startedAt = performance.now();
  let looked = 0;
  let next = query.after;
  let isNewest = true;
  let rows = rowsAtOnce;
  do {
    const pageAt = performance.now();
    const page = await readNewest(space, { before: next, rows, text: named });
    for (const { record } of page.items) {
      if (matches.size === maxMatches) break;
      const { places, isExact } = placesOf(record, named);
      add(record, places, isExact);
    }
    looked += page.looked;
    ({ next, isNewest } = page);
    const isSmall = page.items.length === 0 && performance.now() - pageAt < smallRowsMs;
    rows = Math.min(isSmall ? smallRowsAtOnce : rowsAtOnce, Math.max(1, maxRows - looked));
    await new Promise((resolve) => setImmediate(resolve));
  } while (
    next !== undefined &&
    looked < (isNewest ? maxRows : maxRemoteRows) &&
    matches.size < maxMatches &&
    performance.now() - startedAt < searchMs &&
    !signal.aborted
  );
  if (id !== '') {
    const { keys } = await readNewestKeys(space, { before: query.after, rows: Math.max(1, looked) });
    const { store, namespace } = space.engine;
    const meant = keys.filter((key) => recordId(namespace, key).startsWith(id)).slice(0, maxMatches);
    for (const key of meant) {
      const record = await store.read(namespace, key);
      if (record !== undefined) add(record, ['id']);
    }
  }
  return {
    matches: [...matches.values()].sort((a, b) => Number(b.isExact) - Number(a.isExact)),
    looked,
    next,
    isNewest,
    ...(matches.size >= maxMatches ? { isCut: true } : {}),
  };
}

async function findByKey(space: Space, q: string): Promise<readonly StoredRecord[]> {
  const { store, namespace } = space.engine;
  if (!q.includes('/')) return [];
  const exact = await store.read(namespace, q);
  if (exact !== undefined) return [exact];
  return (await store.list({ namespace, prefix: q, limit: 20 })).items;
}

async function findOpen(space: Space, id: string): Promise<readonly StoredRecord[]> {
  const { store, namespace } = space.engine;
  const found: StoredRecord[] = [];
  for (const status of ['unknown', 'running'] as const) {
    let after: string | undefined;
    let looked = 0;
    do {
      const from = after === undefined ? {} : { after };
      const page = await store.list({ namespace, status, limit: rowsAtOnce, ...from });
      found.push(...page.items.filter(({ key }) => recordId(namespace, key).startsWith(id)));
      looked += page.items.length;
      after = page.next;
    } while (after !== undefined && looked < maxOpen && found.length < maxMatches);
  }
  return found.slice(0, maxMatches);
}

/** A record may have a megabyte; a list of results shows a line of it. */
const maxShown = 20_000;

function shortened({ value: _, ...record }: RecordInfo, { args }: StoredRecord): object {
  return (args?.length ?? 0) <= maxShown ? record : { ...record, args: undefined };
}

function readable(record: StoredRecord): RecordInfo | undefined {
  try {
    return toRecordInfo(record);
  } catch {
    // Listing reports what cannot be read.
    return undefined;
  }
}

interface Places {
  readonly places: readonly string[];
  readonly isExact: boolean;
}

const identityFields = ['toolCallId', 'conversation', 'turn', 'run', 'caller', 'owner'] as const;

function placesOf(record: StoredRecord, q: string): Places {
  const info = readable(record);
  const places: string[] = [];
  if (info === undefined) return { places, isExact: false };
  const check = (place: string, value: unknown) => {
    if (typeof value === 'string' && value.includes(q)) places.push(place);
  };
  check('key', info.key);
  for (const field of identityFields) check(field, info[field]);
  check('remoteRef', info.remoteRef);
  check('error', info.error?.message);
  walk('args', info.args, q, places, 0);
  walk('result', info.value, q, places, 0);
  const texts = [info.toolCallId, info.remoteRef, info.conversation, info.turn, info.run];
  const whole = JSON.stringify(q);
  const isExact =
    texts.includes(q) || (record.args ?? '').includes(whole) || (record.result?.text ?? '').includes(whole);
  return { places: places.slice(0, 5), isExact };
}

/** The store found it somewhere; what is deeper than a person reads is not looked for. */
function walk(place: string, value: unknown, q: string, places: string[], depth: number): void {
  if (places.length >= 5 || depth > 20) return;
  if (typeof value === 'string' ? value.includes(q) : isNumber(value) && String(value) === q)
    places.push(place);
  else if (Array.isArray(value))
    for (const [n, each] of value.entries()) walk(`${place}[${n}]`, each, q, places, depth + 1);
  else if (typeof value === 'object' && value !== null)
    for (const [name, each] of Object.entries(value)) {
      if (name === q) places.push(`${place}.${name}`);
      else walk(`${place}.${name}`, each, q, places, depth + 1);
    }
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint';
}
