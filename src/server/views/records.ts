// Reads the ledger over HTTP, and takes decisions about it.

import { SemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import type { ActOptions, RecordInfo, Resolution, Semel } from '../../semel/index.ts';
import type { ListQuery, Page } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { writeJson } from '../exchange/json.ts';
import { anything, flag, instant, object, oneOf, type Read, text } from '../exchange/schema.ts';
import { createQueue } from './queue.ts';

const ref = text({
  max: 2_000,
  about: 'The record as it was looked at: `<id>@<fence>`, or its key in place of the id.',
  example: '3f9c2a1b@1',
});

/** A query has texts only. */
const limit = text({
  max: 4,
  pattern: /^[1-9]\d{0,3}$/,
  example: '100',
  about: 'At most 1000. Default: 100.',
});

const paging = { after: text({ max: 2_000, about: 'The `next` of the page before.' }), limit };

export const recordsQuery = object(
  {},
  {
    tool: text({ max: 64, about: 'Only records of this tool.' }),
    status: oneOf(['running', 'succeeded', 'failed', 'released', 'unknown']),
    prefix: text({ max: 2_000, about: 'Only keys that start so.' }),
    conversation: text({ max: 500 }),
    ...paging,
  },
);

export const recordQuery = object({ ref: text({ max: 2_000, about: 'Its key, id or ref.' }) });

export const doubtsQuery = object({}, { tool: text({ max: 64 }), ...paging });

export const groupsQuery = object({}, { tool: text({ max: 64 }) });

export const nothing = object({});

const acting = {
  note: text({ max: 2_000, about: 'Why; kept in the history.' }),
  force: flag({ about: 'Also while an attempt holds its lease, and before "not landed" can be known.' }),
};

export const resolveBody = object(
  {
    ref,
    verdict: oneOf(['landed', 'notLanded', 'runAgain', 'abandon'], {
      about: 'runAgain: a repeat is accepted. abandon: nobody will find out, and it is not run again.',
    }),
  },
  {
    value: anything({ about: 'With landed: what it returned, if known.' }),
    remoteRef: text({ max: 500, isForeign: true, about: 'With landed: the id that the target gave it.' }),
    lookedAt: instant({ about: 'When the target was looked at, if not just now.' }),
    ...acting,
  },
);

export const actBody = object({ ref }, acting);

export async function listRecords(query: Read<typeof recordsQuery>, context: Context): Promise<object> {
  const { tool, limit: shown, after, ...rest } = query;
  const { records } = context.space.semel;
  return readPage((from) => records.list({ ...rest, ...contractOf(tool), ...from }), after, shown, context);
}

export async function showRecord(query: Read<typeof recordQuery>, context: Context): Promise<object> {
  // By its id, it is searched for from the ledger's beginning.
  return (await reads(() => findRecord(query, context), context)) ?? {};
}

async function findRecord(query: Read<typeof recordQuery>, { space, signal }: Context): Promise<object> {
  const { records } = space.semel;
  const name = query.ref.replace(/@\d+(\.[0-9a-z]+)?$/, '');
  const record = await records.get(name, { signal });
  if (record === undefined)
    throw new SemelError('INVALID_ARGS', `There is no record ${name}.`, {
      path: 'ref',
      next: 'Is it in another namespace?',
    });
  const { store, namespace } = space.engine;
  const stored = await store.read(namespace, record.key);
  const contentFields = contentPathsOf(stored?.content ?? null);
  return { record, history: await records.history(record.key), contentFields };
}

/** The fields whose wording was compared, and that are not in the key. The record has a digest of each. */
function contentPathsOf(content: string | null): readonly string[] {
  try {
    const digests: unknown = JSON.parse(content ?? '{}');
    return typeof digests === 'object' && digests !== null ? Object.keys(digests) : [];
  } catch {
    return [];
  }
}

export async function listDoubts(query: Read<typeof doubtsQuery>, context: Context): Promise<object> {
  const { tool, limit: shown, after } = query;
  const { doubts } = context.space.semel;
  return readPage((from) => doubts.list({ ...contractOf(tool), ...from }), after, shown, context);
}

export async function groupDoubts({ tool }: Read<typeof groupsQuery>, context: Context): Promise<object> {
  const { signal, space } = context;
  const limit = limits.groupedDoubts;
  const read = () => space.semel.doubts.groups({ ...contractOf(tool), signal, limit });
  const groups = (await reads(read, context)) ?? [];
  const count = groups.reduce((sum, { refs }) => sum + refs.length, 0);
  return { groups, ...(count < limit ? {} : { isCut: true }) };
}

const reads = createQueue(limits.recordReads);

/** Records of a megabyte each: read by a few, and no further than one answer holds. */
const recordsAtOnce = 10;

interface From extends Pick<ListQuery, 'after' | 'limit' | 'rows' | 'signal'> {}

/** The page may be shorter than asked for; `next` says whether there is more. */
async function readPage(
  list: (from: From) => Promise<Page<RecordInfo>>,
  start: string | undefined,
  shown: string | undefined,
  context: Context,
): Promise<object> {
  const { signal } = context;
  const limit = shown === undefined ? 100 : Math.min(1_000, Number(shown));
  const items: RecordInfo[] = [];
  const damaged: NonNullable<Page<RecordInfo>['damaged']>[number][] = [];
  const read = async () => {
    let next = start;
    let size = 0;
    let rows: number = limits.pageRows;
    do {
      const from = next === undefined ? { signal } : { signal, after: next };
      const page = await list({ ...from, limit: Math.min(recordsAtOnce, limit - items.length), rows });
      rows -= page.looked ?? 0;
      size += writeJson(page.items).length;
      items.push(...page.items);
      damaged.push(...(page.damaged ?? []));
      next = page.next;
    } while (
      next !== undefined &&
      items.length < limit &&
      size < limits.answerBytes &&
      rows > 0 &&
      !signal.aborted
    );
    return { items, next, ...(damaged.length === 0 ? {} : { damaged }) };
  };
  return (await reads(read, context)) ?? { items };
}

export async function resolve(body: Read<typeof resolveBody>, context: Context): Promise<object> {
  const { lookedAt, ref: named } = body;
  const options = {
    ...actOptions(body, context),
    ...(lookedAt === undefined ? {} : { lookedAt: new Date(lookedAt) }),
  };
  return act(named, context, ({ doubts }) => doubts.resolve(named, toResolution(body), options));
}

export async function forget(body: Read<typeof actBody>, context: Context): Promise<object> {
  return act(body.ref, context, ({ records }) => records.forget(body.ref, actOptions(body, context)));
}

export async function reopen(body: Read<typeof actBody>, context: Context): Promise<object> {
  return act(body.ref, context, ({ records }) => records.reopen(body.ref, actOptions(body, context)));
}

/** By its id, a record is searched for from the ledger's beginning: a batch of ids waits its turn, as readers do. */
async function act(
  named: string,
  context: Context,
  work: (semel: Semel) => Promise<RecordInfo>,
): Promise<object> {
  const decide = async () => ({ record: await work(context.space.semel) });
  return named.includes('/') ? decide() : ((await reads(decide, context)) ?? {});
}

/** Which record it is, and what has become of it: neither its args nor its value. */
export function shortenDecided(answer: object): object {
  const { record } = answer as { readonly record?: RecordInfo };
  if (record === undefined) return answer;
  const { namespace, contract, key, id, ref, status, inDoubt } = record;
  return { record: { namespace, contract, key, id, ref, status, inDoubt } };
}

export async function listTools(_: object, { space }: Context): Promise<object> {
  return {
    tools: space.tools.list().map(({ name, contract, source }) => {
      const { effect, per, fields, windowMs, leaseMs, timeoutMs } = contract;
      return { name, source, effect, per, fields, windowMs, leaseMs, timeoutMs };
    }),
  };
}

function toResolution(body: Read<typeof resolveBody>): Resolution {
  const { verdict, value, remoteRef, note } = body;
  if (verdict !== 'landed' && (value !== undefined || remoteRef !== undefined))
    throw new SemelError('INVALID_ARGS', '`value` and `remoteRef` belong to "landed".', { path: 'verdict' });
  if (verdict === 'abandon') return { abandon: note ?? 'no reason was given' };
  if (verdict !== 'landed') return verdict;
  const known = remoteRef === undefined ? {} : { remoteRef };
  if (value !== undefined) return { landed: value, ...known };
  return remoteRef === undefined ? 'landed' : { remoteRef };
}

/** The history shows which token decided. */
function actOptions({ note, force }: Read<typeof actBody>, { credential, signal }: Context): ActOptions {
  return {
    by: credential.name,
    signal,
    ...(note === undefined ? {} : { note }),
    ...(force === undefined ? {} : { force }),
  };
}

function contractOf(tool: string | undefined): { readonly contract?: string } {
  return tool === undefined ? {} : { contract: tool };
}
