// What a store offers to people who look: its newest records without a scan, and a cheap way to see that something was written.
// Nothing that decides about an effect depends on it.

import type { StoredRecord, StoreEvent } from './store.ts';

export interface RecentQuery {
  readonly namespace: string;
  /** Only records whose key, args, result, identity or remote reference contain this text. Case matters. */
  readonly text?: string | undefined;
  /** The `next` of the previous page. */
  readonly before?: string | undefined;
  /** How many rows to look at, of all namespaces: this bounds the time, whatever matches. */
  readonly rows: number;
}

export interface RecentRecord {
  readonly record: StoredRecord;
  readonly history: readonly StoreEvent[];
}

export interface RecentPage {
  /** Newest claim first. Damaged records are left out: listing reports them. */
  readonly items: readonly RecentRecord[];
  /** How many rows were looked at. */
  readonly looked: number;
  /** Undefined: there are no older ones. */
  readonly next: string | undefined;
}

export interface RecentKeysQuery {
  readonly namespace: string;
  /** Where the first of the pages began. */
  readonly before?: string | undefined;
  /** The `next` of the last one: no row of them may be left out, whatever is written meanwhile. Undefined: to the oldest. */
  readonly downTo?: string | undefined;
}

export interface Recent {
  /** Changes whenever something was written, by any process. */
  pulse(): Promise<string>;
  newest(query: RecentQuery): Promise<RecentPage>;
  /** All keys of pages that were looked at, which is far cheaper: to find one by its id, which is a digest of the key. */
  newestKeys(query: RecentKeysQuery): Promise<readonly string[]>;
}
