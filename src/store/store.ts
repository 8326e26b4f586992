// The seam between semel and whatever keeps its records. A store has no policy: it applies the rules of
// rules.ts atomically and durably, and answers with what it found. The ledger is its only caller.
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

import type { Effect, Outcome, Status } from '../core/words.ts';
import type { Migration } from './migration.ts';
import type { Raw } from './raw.ts';

/** How long a settled record answers for its key. Fixed at claim, so that settling needs no contract. */
export interface Retention {
  readonly windowMs: number;
  readonly failureWindowMs: number;
  /** `per: 'ever'`: the result goes after the window, the key stays for good. */
  readonly keep: boolean;
  /** Where the intent has a calendar period: the window starts at its end. */
  readonly periodEndsAt: number | null;
}

export interface RecordError {
  readonly code: string;
  readonly message: string;
  readonly retriable: boolean;
}

/** What an attempt that succeeded leaves behind. */
export interface StoredResult {
  /** The encoded value, or null where it was omitted. */
  readonly text: string | null;
  /** Why there is no value: not storable, too large, or only a reference was wanted. */
  readonly omitted: string | null;
  /** The provider's own id for what landed. */
  readonly remoteRef: string | null;
}

/** A success that was reported by an attempt that no longer held the key. */
export interface News {
  readonly token: string;
  readonly fence: number;
  /** It was found by a verifier, not done by this attempt. */
  readonly found: boolean;
  readonly result: StoredResult;
}

/** Everything a store keeps of one key. Instants are the store's wall clock in milliseconds. */
export interface Row {
  readonly namespace: string;
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  /** Names the key that goes to the provider: the generation, until a verdict asks for a fresh one. */
  readonly keyFence: number;
  /** Of the claim or act that last changed hands; it closes every token before it. */
  readonly token: string;
  readonly status: Status;
  /** The lowest fence of an attempt that was dispatched and never accounted for; null: no doubt. */
  readonly doubtSince: number | null;
  /** The attempt at this fence has crossed the line. */
  readonly dispatched: boolean;
  readonly attempts: number;
  /** Takeovers in a row of attempts that died before the line. */
  readonly crashes: number;
  readonly version: string;
  readonly effect: Effect;
  /** The target honours our key, and every dispatch that is not accounted for carried it: a second is no second effect. */
  readonly keyed: boolean;
  /** Null for derived keys, whose digest already holds the identity. */
  readonly fingerprint: string | null;
  readonly owner: string;
  readonly leaseBoot: string | null;
  readonly leaseUntil: number | null;
  readonly retention: Retention | null;
  readonly args: string | null;
  readonly prepared: string | null;
  /** One short digest per content field of the first dispatched wording. */
  readonly content: string | null;
  readonly result: StoredResult | null;
  readonly error: RecordError | null;
  /** A fenced attempt's success that arrived while another attempt was running. */
  readonly news: News | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly settledAt: number | null;
  readonly expiresAt: number | null;
  readonly firstDispatchedAt: number | null;
  readonly lastDispatchedAt: number | null;
  /** From here on "not landed" may be believed of every attempt so far. */
  readonly quietAt: number | null;
  /** The contract's `verifyAfter`: how long after an attempt's end "not landed" has to wait. */
  readonly tailMs: number;
  readonly notAfter: number | null;
  readonly conversation: string | null;
  readonly turn: string | null;
  readonly toolCallId: string | null;
  readonly run: string | null;
  /** Why it was done once more on purpose. */
  readonly again: string | null;
  /** A digest of whose call it is: the record answers no other caller. Null: the program named none. */
  readonly caller: string | null;
  /** Not null: not a record, but a link. Workers with a newer form of the contract claimed this intent under these keys. */
  readonly movedTo: readonly string[] | null;
}

/** A row as it stood at one moment of the store's clock, without the token. */
export interface StoredRecord extends Omit<Row, 'token' | 'leaseBoot' | 'leaseUntil' | 'news' | 'movedTo'> {
  readonly contract: string;
  /** By a clock that could be trusted; else 0. */
  readonly readAt: number;
  /** Running, lease over. */
  readonly lapsed: boolean;
  /** Unknown, or lapsed with the attempt dispatched or doubt set. */
  readonly inDoubt: boolean;
  /** How long a holder that is dead now would go on blocking. */
  readonly leaseLeftMs: number;
  /** Its window is over: it no longer answers for its key. */
  readonly expired: boolean;
  /** How long until "not landed" may be believed; Infinity while the clock cannot be trusted. */
  readonly quietInMs: number;
}

/** Why a claim may take a record that is in doubt. */
export type ClaimFor = 'execute' | 'rerun' | 'verify';

export interface ClaimRequest {
  readonly namespace: string;
  readonly key: string;
  /** The key under earlier forms of the contract, oldest last: a live record of any of them stands for this one. */
  readonly olderKeys: readonly string[];
  readonly token: string;
  readonly fingerprint: string | null;
  readonly for: ClaimFor;
  /** A waiter acts only on the generation that it waited for; null: on any. */
  readonly generation: number | null;
  /** The claim itself is the line. */
  readonly crossing: boolean;
  readonly leaseMs: number;
  /** A re-run counts only this long after the first dispatch; null: always. */
  readonly rerunWithinMs: number | null;
  readonly maxCrashes: number;
  /** From a dispatch on: the time in which the attempt can send, and the tail. */
  readonly quietMs: number;
  /** From an attempt's end on. */
  readonly tailMs: number;
  readonly version: string;
  readonly effect: Effect;
  readonly keyed: boolean;
  readonly retention: Retention;
  readonly owner: string;
  readonly args: string | null;
  readonly content: string | null;
  readonly notAfter: number | null;
  readonly conversation: string | null;
  readonly turn: string | null;
  readonly toolCallId: string | null;
  readonly run: string | null;
  readonly again: string | null;
  readonly caller: string | null;
  /** The contract says `share`: a record of any caller answers. */
  readonly share: boolean;
  /** The record lived in another ledger before. */
  readonly carried?: Carried;
}

/** What a record brings along from another ledger, because a provider or a verifier out there goes by it. */
export interface Carried {
  /** Its fence there: it goes on above. */
  readonly fence: number;
  readonly keyFence: number;
  readonly firstDispatchedAt: number | null;
  readonly lastDispatchedAt: number | null;
  readonly prepared: string | null;
}

/** What a claim asks for, before it says what it would store. */
export type Asking = Pick<
  ClaimRequest,
  'namespace' | 'key' | 'olderKeys' | 'fingerprint' | 'generation' | 'caller' | 'share'
>;

export type ClaimAnswer =
  | {
      readonly won: true;
      readonly record: StoredRecord;
      /** The claim took an attempt's place that had lapsed or was in doubt. */
      readonly takeover: boolean;
    }
  | Loss;

export interface Loss {
  readonly won: false;
  /** What it lost to; undefined only for a waiter whose generation is gone. */
  readonly record: StoredRecord | undefined;
}

/** Names one attempt at one record; `fence` and `generation` are for news from an attempt that was fenced. */
export interface Held {
  readonly namespace: string;
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly generation: number;
}

export interface RenewRequest extends Held {
  readonly leaseMs: number;
  /** An attempt that lapsed and goes on may send for as long as after a dispatch. */
  readonly quietMs: number;
}

export interface RenewAnswer {
  readonly held: boolean;
  readonly record: StoredRecord | undefined;
}

export interface DispatchRequest extends Held {
  /** What is about to be sent carries our key, where the target honours one. */
  readonly keyed: boolean;
  readonly prepared: string | null;
  readonly rerunWithinMs: number | null;
  readonly quietMs: number;
}

/** Verify said "not landed" of everything up to this claim. */
export interface ClearRequest extends Held {
  readonly crossing: boolean;
  /** The `readAt` of the record that was held when the look began: what was seen then is judged by then. */
  readonly seenAt: number;
  /** The provider would go on replaying a stored error under the old key. */
  readonly freshKey: boolean;
  readonly rerunWithinMs: number | null;
  readonly quietMs: number;
}

/** Why a line may not be crossed: not the holder · lease over · provider's window over · it landed · too early to say. */
export type Refusal = 'fenced' | 'lapsed' | 'window' | 'landed' | 'early';

export type CrossAnswer =
  | { readonly ok: true; readonly record: StoredRecord }
  | { readonly ok: false; readonly why: Refusal; readonly record: StoredRecord | undefined };

export interface SettleRequest extends Held {
  readonly outcome: Outcome;
  readonly result: StoredResult | null;
  readonly error: RecordError | null;
  /** For news of a fenced attempt: only at an un-keyed target is a second success a second effect. */
  readonly keyed: boolean;
  /** Found by a verifier: it tells of an effect of some attempt, and is never a second one. */
  readonly found: boolean;
  /** The attempt was ended by its timeout before, and went on until now; without an error: it still runs. */
  readonly late?: true;
}

export interface SettleAnswer {
  /** The record now says what was asked, by this call or an earlier one with the same token. */
  readonly settled: boolean;
  /** What the record became; with doubt set, `failed` and `released` become `unknown`. */
  readonly record: StoredRecord | undefined;
  /** The news came from an attempt that no longer holds the key. */
  readonly fenced: boolean;
  /** What history was told, if this was no ordinary ending. */
  readonly noted: EventType | undefined;
}

/** What was looked at when the verdict was made. */
export interface Seen {
  readonly fence: number;
  readonly dispatchedAt: number | null;
}

export type Act =
  | { readonly type: 'landed'; readonly result: StoredResult }
  | { readonly type: 'notLanded' }
  | { readonly type: 'runAgain' }
  | { readonly type: 'abandon'; readonly reason: string }
  /** The processes of the running attempt are gone: it ends as its lease would have ended it, but now. */
  | { readonly type: 'died' }
  | { readonly type: 'forget' }
  | { readonly type: 'reopen' };

export interface ResolveRequest {
  readonly namespace: string;
  readonly key: string;
  readonly seen: Seen;
  /** The `readAt` of the record when the act was decided: one that arrives late is judged by then. */
  readonly decidedAt: number;
  readonly act: Act;
  /** Random per act, so that an act whose reply was lost can be asked again. */
  readonly token: string;
  /** Who decides, as they say. */
  readonly by: string;
  /** Whose process it was, as the system says. */
  readonly login?: string;
  readonly note: string | null;
  /** Also act on an attempt that still holds its lease, and before "not landed" can be known. */
  readonly force: boolean;
}

export type ResolveRefusal =
  | 'gone'
  | 'stale'
  | 'running'
  | 'settled'
  | 'not settled'
  | 'not running'
  | 'early'
  | 'not failed';

export type ResolveAnswer =
  | { readonly ok: true; readonly record: StoredRecord }
  | { readonly ok: false; readonly why: ResolveRefusal; readonly record: StoredRecord | undefined };

/** The exceptional part of a record's history; the ordinary part is in the record itself. */
export type EventType =
  | 'takeover'
  | 'fenced'
  | 'lateNews'
  | 'duplicate'
  | 'contradiction'
  | 'cleared'
  | 'resolved'
  | 'poisoned'
  | 'replayed'
  | 'conflict'
  | 'observed'
  | 'noted';

export interface StoreEvent {
  readonly at: number;
  readonly namespace: string;
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  readonly type: EventType;
  readonly detail: Readonly<Record<string, unknown>>;
}

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
