// All records that a query finds, page by page: no list is held that nobody asked for.

import type { RecordInfo, RecordQuery, Semel } from '../semel/index.ts';

/** Records can be large: a page of them is held at once. */
const pageSize = 200;

export async function* everyRecord(
  semel: Semel,
  query: Omit<RecordQuery, 'after' | 'limit'>,
): AsyncGenerator<RecordInfo> {
  for (let after: string | undefined; ; ) {
    const page = await semel.records.list({
      ...query,
      limit: pageSize,
      ...(after === undefined ? {} : { after }),
    });
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
    // The store may answer without a pause: signals want to be heard.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What is in doubt, and what was abandoned, in the order of their keys. */
export async function* everyDoubt(semel: Semel, contract?: string): AsyncGenerator<RecordInfo> {
  for (let after: string | undefined; ; ) {
    const page = await semel.doubts.list({
      limit: pageSize,
      ...(contract === undefined ? {} : { contract }),
      ...(after === undefined ? {} : { after }),
    });
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
}
