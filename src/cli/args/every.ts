// All records that a query finds, page by page: no list is held that nobody asked for.

import type { RecordInfo, RecordQuery, Semel } from '../../semel/index.ts';
import { contractsOf, isTurn } from '../render/state.ts';

/** Records can be large: a page of them is held at once. */
const pageSize = 200;

export function everyRecord(
  semel: Semel,
  query: Omit<RecordQuery, 'after' | 'limit'>,
): AsyncGenerator<RecordInfo> {
  return walk((page) => semel.records.list({ ...query, ...page }));
}

/** What is in doubt, and what was abandoned, in the order of their keys. */
export async function* everyDoubt(semel: Semel, tool?: string): AsyncGenerator<RecordInfo> {
  for (const contract of tool === undefined ? [undefined] : contractsOf(tool)) {
    const about = contract === undefined ? {} : { contract };
    for await (const record of walk((page) => semel.doubts.list({ ...about, ...page })))
      if (!isTurn(record)) yield record;
  }
}

async function* walk(
  list: (page: { limit: number; after?: string }) => ReturnType<Semel['records']['list']>,
): AsyncGenerator<RecordInfo> {
  for (let after: string | undefined; ; ) {
    const { items, next } = await list({ limit: pageSize, ...(after === undefined ? {} : { after }) });
    yield* items;
    if (next === undefined) return;
    after = next;
    // The store may answer without a pause: signals want to be heard.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
