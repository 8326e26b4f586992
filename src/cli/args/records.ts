// All records of a query, page by page: no whole list is held in memory.

import { type From, items } from '../../core/paging.ts';
import type { RecordInfo, RecordQuery, Semel } from '../../semel/index.ts';
import { contractsOf, isJobLock, isStep } from '../render/state.ts';

/** Records can be large, and a page of them is in memory. */
const pageSize = 200;

export function everyRecord(
  semel: Semel,
  query: Omit<RecordQuery, 'after' | 'limit'>,
): AsyncGenerator<RecordInfo> {
  return items((from) => paced(from, (page) => semel.records.list({ ...query, ...page })));
}

/** Records in doubt or abandoned, in the order of their keys. */
export async function* everyDoubt(semel: Semel, tool?: string): AsyncGenerator<RecordInfo> {
  for (const contract of tool === undefined ? [undefined] : contractsOf(tool)) {
    const about = contract === undefined ? {} : { contract };
    const list = (page: From) => semel.doubts.list({ ...about, ...page });
    for await (const record of items((from) => paced(from, list)))
      if (!isJobLock(record) && !isStep(record)) yield record;
  }
}

/** The store may answer synchronously: yields between pages, so that signals are handled. */
async function paced<T>(from: From, list: (page: From & { limit: number }) => Promise<T>): Promise<T> {
  if (from.after !== undefined) await new Promise((resolve) => setImmediate(resolve));
  return list({ limit: pageSize, ...from });
}

/** The contracts with records in a namespace, without reading all records: a contract's keys start with `<name>/`. */
export async function listContracts(semel: Semel): Promise<readonly string[]> {
  const contracts: string[] = [];
  for (let after = ''; ; after = `${contracts.at(-1)}/\u{10ffff}`) {
    const { items } = await semel.records.list({ limit: 1, ...(after === '' ? {} : { after }) });
    const [first] = items;
    if (first === undefined) return contracts;
    contracts.push(first.contract);
  }
}
