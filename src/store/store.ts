// The seam between semel and whatever keeps its records. A store has no policy: it applies the rules of
// src/rules atomically and durably, and answers with what it found. The ledger is its only caller.
//
//  1. Every method is one atomic, per-key linearizable step. Nothing is held while an effect runs.
//  2. `claim` wins iff there is no live record; or the record is free; or it is in doubt, fingerprint and caller
//     are the same and the request says why it may (`rerun`, `verify`). Losing changes nothing and returns the
//     record it lost to.
//  3. Settled records are immutable until they expire; `unknown` is not settled and may improve.
//  4. A token is random per claim and claims once. The fence grows and is never reused: pruning raises the floor.
//  5. `renew`, `dispatch`, `clear` and `settle` act iff the token matches. Taking over a dispatched attempt sets
//     doubt. Late news is still true, so lease expiry alone voids nothing, but crossing the line needs a live
//     lease. A fenced attempt's success is never wasted. Verdicts compare what they saw.
//  6. Every call is safe to repeat with the same token: a lost reply is asked again and answers "yours".
//  7. Time is the store's: durations in, instants out.
//  8. Correctness never depends on pruning; pruning never removes what is running or in doubt.
//  9. A claim is durable before its answer is given, and before it wins, every earlier form of its key leads to it: a
//     worker with the former contract, which knows that form alone, meets the same record.
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
import type { Migration } from './move/migration.ts';
import type { Raw } from './move/raw.ts';

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
  /** Only keys that start so. */
  readonly prefix?: string;
  readonly status?: Status;
  /** Only records in doubt. */
  readonly inDoubt?: boolean;
  readonly conversation?: string;
  /** The `next` of the page before. */
  readonly after?: string;
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
  /** Records that cannot be read, of those that lie between the items. */
  readonly damaged?: readonly DamagedRecord[];
}

export interface DamagedRecord {
  readonly namespace: string;
  readonly key: string;
  readonly problem: string;
}

/** What is true of an opened store, for warnings and for `doctor`. */
export interface StoreFacts {
  readonly kind: string;
  readonly location: string;
  /** What keeps it, with its version: `Postgres 18.4`. */
  readonly server?: string;
  /** The version of its schema. */
  readonly schema?: number;
  /**
   * The `--store` that leads the command here; empty: its default; undefined: no command reaches it. May hold a password:
   * show it by `shownAddress` only.
   */
  readonly address: string | undefined;
  /** A sentence for the user where this store can forget by its nature. */
  readonly forgets: string | undefined;
  /** A sentence where the store's clock cannot be trusted now: nothing expires until it can. */
  readonly clockProblem: string | undefined;
  /** A sentence for the user where somebody else can get at the records. */
  readonly warning?: string | undefined;
}

/**
 * A claim, and perhaps a glance at what it would lose to. The two belong together: whoever wraps a store's claims
 * without a word about glances has a store that cannot be glanced at.
 */
export interface Claim {
  (request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * What a claim to execute would lose to, where the store can tell at once, without a lock and without changing
   * anything: all that a replay needs. Undefined: claim. A store that has to be waited for leaves it out.
   */
  readonly glance?: ((asking: Asking) => Loss | undefined) | undefined;
  /** The same from a store that has to be waited for: one read, where the claim would be a write. Undefined: claim. */
  readonly look?: ((asking: Asking) => Promise<Loss | undefined>) | undefined;
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
  /** Audit events that no rule depends on; those of a record that is gone are dropped. */
  append(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void>;
  history(namespace: string, key: string): Promise<readonly StoreEvent[]>;
  /** In which there are or were records, in order: for whoever looks in the wrong one. */
  namespaces(): Promise<readonly string[]>;
  /** Removes at most `limit` expired records, and answers how many; 0: nothing is left to remove. */
  prune(limit: number): Promise<number>;
  /** How many `prune` would take now. Reads every record, and changes none. */
  countExpired(): Promise<number>;
  close(): Promise<void>;
  /** For `semel store copy`: without it, a ledger can be exported and imported, not moved. */
  readonly raw?: Raw;
  /** For `semel store migrate`: of a store that has a schema. */
  migration?(): Promise<Migration>;
  /** For `semel store accept-loss`: of a store that can tell that it has forgotten, and refuses until a person says so. */
  /** Looks at everything that it keeps for damage, and says what is wrong; empty: nothing. Of a store that cannot tell: undefined. */
  verify?(): Promise<readonly string[]>;
  acceptLoss?(said: { readonly by: string; readonly note: string | null }): Promise<void>;
}
