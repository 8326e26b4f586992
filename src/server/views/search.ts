// "Did this happen?": finds records by whatever a person has in hand. A whole name (a key, an id, a ref) ends the search. Anything
// else is searched from the newest record on, a bounded number at a time; `next` says that the ledger has more to search.

import { recordId } from '../../core/key/key.ts';
import {
  findTextPlaces,
  inKey,
  isInKey,
  isRecordId,
  type RecordInfo,
  toRecordInfo,
  withoutFence,
} from '../../semel/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, type Read, text } from '../exchange/schema.ts';
import type { Space } from '../space.ts';
import { listContracts } from './contracts.ts';
import { readNewest } from './newest.ts';
import { createQueue } from './queue.ts';

export const searchQuery = object(
  {
    q: text({
      max: 500,
      about:
        'A key or its beginning, an id or ref, a tool call id, the id that a target gave, or a text in the args or the result. Case matters.',
    }),
  },
  { after: text({ max: 2_000, about: '`next` from the previous response: continues with older records.' }) },
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
/** An answer ends after about this time, so that other requests get their turn; `next` goes on. */
const searchMs = 100;
/** Or after this, where it has looked at few, because they are large. */
const longestMs = 1_000;
const fewRows = 1_000;
const maxMatches = 50;
/** Length of the digest in a key that semel derived. */
const digestLength = 32;
/** Looked up by the index of keys, of each tool a few: what is left out is found by searching. */
const maxTools = 200;
const maxRemoteTools = 20;
const perTool = 5;
/** Open records are few; more than this are not looked through for an id. */
const maxOpen = 2_000;

const searches = createQueue(2);

export async function search(query: Read<typeof searchQuery>, context: Context): Promise<object> {
  return (await searches(() => find(query, context), context)) ?? {};
}

async function find(query: Read<typeof searchQuery>, { space, signal }: Context): Promise<object> {
  const q = query.q.trim();
  // For ids, refs and whole keys; texts are searched as typed.
  const named = withoutFence(q);
  const id = isRecordId(named) ? named : '';
  const matches = new Map<string, Match>();
  const add = (record: StoredRecord, found: readonly string[], isExact = true) => {
    if (found.length === 0 || matches.has(record.key)) return;
    const info = readable(record);
    if (info !== undefined) matches.set(record.key, { record: shortened(info, record), found, isExact });
  };
  const { namespace } = space.engine;
  /** No other record has it. A short text may begin an id by chance, and a key's beginning is a text like any other. */
  const isName = (key: string) =>
    key === q ||
    key === named ||
    (named.length === digestLength && key.endsWith(`/${named}`)) ||
    (id !== '' && recordId(namespace, key) === id);
  const keyHasId = (key: string) => id !== '' && recordId(namespace, key).startsWith(id);
  const namedBy = (key: string) => (keyHasId(key) ? ['id'] : isInKey(key, q) ? ['key'] : []);
  let isCut = false;
  if (query.after === undefined) {
    const wholeNames = () => [...matches].filter(([key]) => isName(key));
    const byKey = await findByKey(space, q);
    isCut = byKey.isCut;
    for (const record of byKey.records) add(record, [keyHasId(record.key) ? 'id' : 'key']);
    if (named !== q && wholeNames().length === 0)
      for (const record of (await findByKey(space, named)).records) add(record, namedBy(record.key));
    if (id !== '' && wholeNames().length === 0)
      for (const record of await findOpen(space, id)) add(record, ['id']);
    const whole = wholeNames();
    if (whole.length > 0)
      return { matches: whole.map(([, match]) => match), looked: 0, next: undefined, isNewest: true };
  }
  const startedAt = performance.now();
  let looked = 0;
  const lookedKeys: string[] = [];
  let next = query.after;
  let isNewest = true;
  let rows = rowsAtOnce;
  do {
    const pageAt = performance.now();
    const page = await readNewest(space, { before: next, rows, text: q });
    for (const { record } of page.items) {
      if (matches.size === maxMatches) break;
      const { places, isExact } = placesOf(record, q);
      add(record, places, isExact);
    }
    if (matches.size >= maxMatches) isCut = true;
    looked += page.looked;
    lookedKeys.push(...(page.keys ?? []));
    ({ next, isNewest } = page);
    const isSmall = page.items.length === 0 && performance.now() - pageAt < smallRowsMs;
    rows = Math.min(isSmall ? smallRowsAtOnce : rowsAtOnce, Math.max(1, maxRows - looked));
    await new Promise((resolve) => setImmediate(resolve));
  } while (
    next !== undefined &&
    looked < (isNewest ? maxRows : maxRemoteRows) &&
    matches.size < maxMatches &&
    performance.now() - startedAt < (looked < fewRows ? longestMs : searchMs) &&
    !signal.aborted
  );
  if (id !== '' || inKey(q) !== q) {
    const { store } = space.engine;
    // The keys of the same rows: no answer comes back to one that this one passed.
    const keys =
      (await store.recent?.newestKeys({ namespace, before: query.after, downTo: next })) ?? lookedKeys;
    const meant = keys.filter((key) => namedBy(key).length > 0);
    for (const key of meant.slice(0, maxMatches)) {
      const record = await store.read(namespace, key);
      if (record !== undefined) add(record, namedBy(key));
    }
  }
  return {
    matches: [...matches.values()].sort((a, b) => Number(b.isExact) - Number(a.isExact)),
    looked,
    next,
    isNewest,
    ...(isCut || matches.size >= maxMatches ? { isCut: true } : {}),
  };
}

interface ByKey {
  readonly records: readonly StoredRecord[];
  readonly isCut: boolean;
}

/** Where the index of keys leads to it: by its beginning, or, of each tool, by its digest or the caller's own key. */
async function findByKey(space: Space, q: string): Promise<ByKey> {
  const { store, namespace } = space.engine;
  const listed = async (prefix: string, limit: number) =>
    store.list({ namespace, prefix, limit: Math.min(rowsAtOnce, limit) });
  if (q.includes('/')) {
    const exact = await store.read(namespace, q);
    if (exact !== undefined) return { records: [exact], isCut: false };
    const page = await listed(q, rowsAtOnce);
    return { records: page.items, isCut: page.next !== undefined };
  }
  const contracts = await listContracts(space, '', store.recent === undefined ? maxRemoteTools : maxTools);
  const records: StoredRecord[] = [];
  for (const contract of contracts)
    for (const rest of [`-/${q}`, `=${inKey(q)}`, q]) {
      const page = await listed(`${contract}/${rest}`, perTool);
      records.push(...page.items);
      if (records.length >= maxMatches) return { records, isCut: true };
    }
  return { records, isCut: false };
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

function placesOf(record: StoredRecord, q: string): Places {
  const info = readable(record);
  if (info === undefined) return { places: [], isExact: false };
  const texts = [info.toolCallId, info.remoteRef, info.conversation, info.turn, info.run];
  const whole = JSON.stringify(q);
  const isExact =
    texts.includes(q) || (record.args ?? '').includes(whole) || (record.result?.text ?? '').includes(whole);
  return { places: findTextPlaces(info, q), isExact };
}
