// Reads records from the newest on, a bounded number per page. A store without that order is read in the order of its keys,
// and the answer says so.

import type { RecentRecord } from '../../store/recent.ts';
import type { Space } from '../space.ts';

export interface NewestPage {
  readonly items: readonly RecentRecord[];
  /** Of all that were looked at. Undefined: `newestKeys` of the store has them. */
  readonly keys?: readonly string[];
  readonly looked: number;
  readonly next: string | undefined;
  /** False: in the order of their keys. */
  readonly isNewest: boolean;
}

export interface NewestQuery {
  readonly text?: string | undefined;
  readonly before?: string | undefined;
  readonly rows: number;
}

/** Over a wire each history is a request of its own. */
const maxRemoteRows = 500;

export async function readNewest({ engine }: Space, query: NewestQuery): Promise<NewestPage> {
  const { store, namespace } = engine;
  const { recent } = store;
  if (recent !== undefined) return { ...(await recent.newest({ ...query, namespace })), isNewest: true };
  const { text, before, rows } = query;
  const from = before === undefined ? {} : { after: before };
  const page = await store.list({ namespace, limit: Math.min(rows, maxRemoteRows), ...from });
  const found = page.items.filter(
    (record) => text === undefined || JSON.stringify(record).includes(JSON.stringify(text).slice(1, -1)),
  );
  const items = await Promise.all(
    found.map(async (record) => ({ record, history: await store.history(namespace, record.key) })),
  );
  const keys = page.items.map(({ key }) => key);
  return { items, keys, looked: page.items.length, next: page.next, isNewest: false };
}
