// All records that a query finds, page by page: no list is held that nobody asked for.

import { type From, items } from '../../core/paging.ts';
import type { RecordInfo, RecordQuery, Semel } from '../../semel/index.ts';
import { contractsOf, isTurn } from '../render/state.ts';

/** Records can be large: a page of them is held at once. */
const pageSize = 200;

export function everyRecord(
  semel: Semel,
  query: Omit<RecordQuery, 'after' | 'limit'>,
): AsyncGenerator<RecordInfo> {
  return items((from) => paced(from, (page) => semel.records.list({ ...query, ...page })));
}

/** What is in doubt, and what was abandoned, in the order of their keys. */
export async function* everyDoubt(semel: Semel, tool?: string): AsyncGenerator<RecordInfo> {
  for (const contract of tool === undefined ? [undefined] : contractsOf(tool)) {
    const about = contract === undefined ? {} : { contract };
    const list = (page: From) => semel.doubts.list({ ...about, ...page });
    for await (const record of items((from) => paced(from, list))) if (!isTurn(record)) yield record;
  }
}

/** The store may answer without a pause: signals want to be heard. */
async function paced<T>(from: From, list: (page: From & { limit: number }) => Promise<T>): Promise<T> {
  if (from.after !== undefined) await new Promise((resolve) => setImmediate(resolve));
  return list({ limit: pageSize, ...from });
}
