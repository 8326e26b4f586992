// The interface between semel and the stores. A store has no policy: it applies the rules of src/rules atomically and
// durably, and answers with what it found. The ledger is its only caller.
//
//  1. Every method is one atomic, per-key linearizable step. Nothing is held while an effect runs.
//  2. `claim` wins iff there is no live record; or the record is free; or it is in doubt, fingerprint and caller
//     match and the request says why it may take over (`rerun`, `verify`). Losing changes nothing and returns the
//     record it lost to.
//  3. Settled records are immutable until they expire; `unknown` is not settled and may improve.
//  4. A token is random per claim and claims once. The fence grows and is never reused: pruning raises the floor.
//  5. `renew`, `dispatch`, `clear` and `settle` act iff the token matches. Taking over a dispatched attempt sets
//     doubt. A late report is still true, so an expired lease voids nothing by itself, but `dispatch` needs a live
//     lease. A fenced attempt's success is never wasted. Verdicts are refused if the record has changed since.
//  6. Every call is safe to repeat with the same token: after a lost reply, the repeat gets the same answer.
//  7. Time is the store's: durations in, instants out.
//  8. Correctness never depends on pruning; pruning never removes what is running or in doubt.
//  9. A claim is durable before it is answered. Before it wins, every earlier form of its key links to it, so that a
//     worker with the old contract, which knows only that form, meets the same record.
// 10. A store that cannot keep this refuses (STORE_UNSAFE) or fails (STORE_UNAVAILABLE); it never guesses.

import type { Status } from '../core/contract/words.ts';
import type { StoredRecord, StoreEvent } from '../rules/record.ts';
import type {
  Asking,
  ClaimAnswer,
  ClaimRequest,
  ClearRequest,
  CrossAnswer,
  DispatchRequest,
  Loss,
  RenewAnswer,
  RenewRequest,
  ResolveAnswer,
  ResolveRequest,
  SettleAnswer,
  SettleRequest,
} from '../rules/requests.ts';
import type { Raw } from './move/raw.ts';
import type { Outbox } from './outbox.ts';
import type { Recent } from './recent.ts';
import type { Transactions } from './transaction.ts';

export type {
  EventType,
  News,
  RecordError,
  Retention,
  Row,
  StoredRecord,
  StoredResult,
  StoreEvent,
} from '../rules/record.ts';
export type {
  Act,
  Asking,
  ClaimAnswer,
  ClaimFor,
  ClaimRequest,
  ClearRequest,
  CrossAnswer,
  DispatchRequest,
  Held,
  Imported,
  Loss,
  Note,
  Refusal,
  RenewAnswer,
  RenewRequest,
  ResolveAnswer,
  ResolveRefusal,
  ResolveRequest,
  Seen,
  SettleAnswer,
  SettleRequest,
} from '../rules/requests.ts';

export interface ListQuery {
  readonly namespace: string;
  readonly contract?: string;
  /** Only keys with this prefix. */
  readonly prefix?: string;
  readonly status?: Status;
  /** Only records in doubt. */
  readonly inDoubt?: boolean;
  readonly conversation?: string;
  /** The `next` of the previous page: a cursor of the store's own, not a key. */
  readonly after?: string;
  readonly limit: number;
  /** Look at about so many rows; the page may then be short. Only local stores count them. */
  readonly rows?: number;
  /** Nobody waits for it any more: the page may be short. Not an error, which would count against the store. */
  readonly signal?: AbortSignal;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
  /** Records among the items that cannot be read. */
  readonly damaged?: readonly DamagedRecord[];
  /** With `rows`: how many were looked at, where the store counts them. */
  readonly looked?: number;
}

export interface DamagedRecord {
  readonly namespace: string;
  readonly key: string;
  readonly problem: string;
}

/** Facts about an open store, for warnings and for `doctor`. */
export interface StoreFacts {
  readonly kind: string;
  readonly location: string;
  /** The database and its version: `Postgres 18.4`. */
  readonly server?: string;
  /** The version of its schema. */
  readonly schema?: number;
  /**
   * The `--store` option for this store; empty: the default; undefined: the command cannot reach it. May hold a password:
   * show it by `redactAddress` only.
   */
  readonly address: string | undefined;
  /** True: all processes that use it run on this kernel, which then knows whether the holder of a claim is dead. */
  readonly isLocal?: boolean;
  /** A sentence for the user if this kind of store can forget. */
  readonly forgets: string | undefined;
  /** A sentence if the store's clock cannot be trusted; until it can, nothing expires. */
  readonly clockProblem: string | undefined;
  /** A sentence for the user if others can access the records. */
  readonly warning?: string | undefined;
}

/**
 * A claim, and optionally a cheaper read of what it would lose to. They are one value, so that code that wraps `claim`
 * drops the read unless it wraps that as well.
 */
export interface Claim {
  (request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * What a claim to execute would lose to, read synchronously and without a lock: all that a replay needs. Undefined:
   * claim. Remote stores leave it out.
   */
  readonly glance?: ((asking: Asking) => Loss | undefined) | undefined;
  /** The same for remote stores: one read instead of a write. Undefined: claim. */
  readonly look?: ((asking: Asking) => Promise<Loss | undefined>) | undefined;
}

/** How the schema of a store becomes the one that this version knows. */
export interface Migration {
  /** 0: there is no ledger yet. */
  readonly from: number;
  readonly to: number;
  /** What `run` would do; empty if the schema is current. */
  readonly statements: readonly string[];
  run(): Promise<void>;
}

export interface Store {
  /** Opens on first use; safe to call again. */
  open(): Promise<StoreFacts>;
  claim: Claim;
  renew(request: RenewRequest): Promise<RenewAnswer>;
  dispatch(request: DispatchRequest): Promise<CrossAnswer>;
  clear(request: ClearRequest): Promise<CrossAnswer>;
  settle(request: SettleRequest): Promise<SettleAnswer>;
  resolve(request: ResolveRequest): Promise<ResolveAnswer>;
  read(namespace: string, key: string): Promise<StoredRecord | undefined>;
  list(query: ListQuery): Promise<Page<StoredRecord>>;
  /** Appends audit events, which no rule depends on. Events of a record that is gone are dropped. */
  append(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void>;
  history(namespace: string, key: string): Promise<readonly StoreEvent[]>;
  /** Lists every namespace that has held records, sorted. */
  namespaces(): Promise<readonly string[]>;
  /**
   * Removes at most `limit` expired records and returns how many; 0: nothing is left to remove. In the background, a store
   * that must read everything for it may leave it for later.
   */
  prune(limit: number, isBackground?: boolean): Promise<number>;
  /** How many records `prune` would remove now. Reads every record. */
  countExpired(): Promise<number>;
  close(): Promise<void>;
  /** For `semel store copy`. Without it, a ledger can be exported and imported, but not moved. */
  readonly raw?: Raw;
  /** For `tool.inTransaction`, in stores whose database also holds the user's data. */
  readonly transactions?: Transactions;
  /** For `tool.stage` and relays. */
  readonly outbox?: Outbox;
  /** For dashboards. Without it they read records in the order of their keys, and say so. */
  readonly recent?: Recent;
  /** For `semel store migrate`, in stores that have a schema. */
  migration?(): Promise<Migration>;
  /** Checks everything for damage and returns the problems. Left out by stores that cannot detect damage. */
  verify?(): Promise<readonly string[]>;
  /** For `semel store accept-loss`, in stores that detect lost records and refuse until a person accepts the loss. */
  acceptLoss?(said: { readonly by: string; readonly note: string | null }): Promise<void>;
}
