// What a store far away has to be able to do: look, swap rows that are still as they were seen, and forget.

import type { DamagedRecord, EventType, ListQuery, Row, StoreEvent, StoreFacts } from '../store.ts';

/** A row, and the number that its last write gave it. */
export interface Found {
  readonly row: Row;
  readonly revision: number;
}

/** What is asked of the store about one key; without `write`, only to look. */
export interface Swap {
  readonly namespace: string;
  readonly key: string;
  readonly write: Write | undefined;
}

export interface Write {
  /** As it was last seen; undefined: there should be none. */
  readonly before: Found | undefined;
  /** Undefined: only the events are written. */
  readonly row: Row | undefined;
  readonly revision: number;
  readonly events: readonly StoreEvent[];
  /** The decision counts from here on by the store's clock, and before there. */
  readonly at: number;
  readonly until: number;
  /** Other keys that it depends on, as they were last seen: earlier forms of this one. */
  readonly beside: readonly { readonly key: string; readonly revision: number | undefined }[];
}

export type Swapped = { readonly done: true } | { readonly done: false; readonly found: Found | undefined };

export interface RowPage {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
  /** Between them. */
  readonly damaged?: readonly DamagedRecord[];
  readonly now: number;
}

/** What retention does to a row. */
export interface Removal {
  readonly before: Found;
  /** What stays of it; undefined: nothing. */
  readonly row: Row | undefined;
  readonly revision: number;
  /** Events that go; undefined: all. */
  readonly events: readonly EventType[] | undefined;
}

/** All answers tell the store's time in milliseconds, by which they were given. */
export interface RemoteBackend {
  open(): Promise<StoreFacts>;
  now(): Promise<number>;
  /** One round trip. Each swap stands or falls by itself, and is durable when the answer comes. */
  exchange(swaps: readonly Swap[]): Promise<{
    readonly now: number;
    /** The highest fence that was ever removed. */
    readonly floor: number;
    readonly answers: readonly Swapped[];
  }>;
  list(query: ListQuery): Promise<RowPage>;
  /** Records that retention might remove, up to a limit. Unreadable ones stay. */
  due(limit: number): Promise<{ found: readonly Found[]; now: number }>;
  /** Those of the removals that found their row as it was, by number. Raises the floor with them. */
  remove(removals: readonly Removal[]): Promise<number>;
  append(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void>;
  history(namespace: string, key: string): Promise<readonly StoreEvent[]>;
  namespaces(): Promise<readonly string[]>;
  close(): Promise<void>;
  /** What the caller is told of a failure, and whether it says nothing of a single piece. */
  judge(error: unknown): {
    readonly error: unknown;
    readonly concernsAll: boolean;
    /** Nothing was done: one of the rows is held by somebody else's transaction. */
    readonly isLocked?: boolean;
  };
}
