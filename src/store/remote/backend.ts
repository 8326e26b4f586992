// What the database behind a remote store must do: read rows, replace rows that have not changed, and prune.

import type { DamagedRecord, EventType, ListQuery, Row, StoreEvent, StoreFacts } from '../store.ts';

/** A row, and the random number that its last write gave it. */
export interface Found {
  readonly row: Row;
  readonly revision: number;
}

/** A compare-and-set of one key; without `write`, a read. */
export interface Swap {
  readonly namespace: string;
  readonly key: string;
  readonly write: Write | undefined;
}

export interface Write {
  /** The expected row; undefined: there must be none. */
  readonly before: Found | undefined;
  /** Undefined: write only the events. */
  readonly row: Row | undefined;
  readonly revision: number;
  readonly events: readonly StoreEvent[];
  /** The decision is valid from `at` until before `until`, by the store's clock. */
  readonly at: number;
  readonly until: number;
  /** Other forms of the key that must not have changed either. */
  readonly beside: readonly { readonly key: string; readonly revision: number | undefined }[];
}

export type Swapped = { readonly done: true } | { readonly done: false; readonly found: Found | undefined };

export interface RowPage {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
  /** Records among the rows that cannot be read. */
  readonly damaged?: readonly DamagedRecord[];
  readonly now: number;
}

/** How pruning changes a row. */
export interface Removal {
  readonly before: Found;
  /** The row that replaces it; undefined: none. */
  readonly row: Row | undefined;
  readonly revision: number;
  /** Types of the events to remove; undefined: all. */
  readonly events: readonly EventType[] | undefined;
}

/** Every `now` is the store's clock in milliseconds at the time of the answer. */
export interface RemoteBackend {
  open(): Promise<StoreFacts>;
  now(): Promise<number>;
  /** One round trip. Each swap succeeds or fails on its own, and is durable once answered. */
  exchange(swaps: readonly Swap[]): Promise<{
    readonly now: number;
    /** The highest fence that pruning has removed. */
    readonly floor: number;
    readonly answers: readonly Swapped[];
  }>;
  list(query: ListQuery): Promise<RowPage>;
  /**
   * Records that pruning might remove, up to a limit. Unreadable ones stay. In the background, a store for which this is
   * expensive may return none.
   */
  due(limit: number, isBackground?: boolean): Promise<{ found: readonly Found[]; now: number }>;
  /** Removes the rows that have not changed, raises the floor with them, and returns how many. */
  remove(removals: readonly Removal[]): Promise<number>;
  append(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void>;
  history(namespace: string, key: string): Promise<readonly StoreEvent[]>;
  namespaces(): Promise<readonly string[]>;
  close(): Promise<void>;
  /** The error for the caller, and whether every swap of the batch would fail the same way. */
  judge(error: unknown): {
    readonly error: unknown;
    readonly concernsAll: boolean;
    /** Nothing was done: another transaction has locked one of the rows. */
    readonly isLocked?: boolean;
  };
}
