// The requests that the rules decide, and their answers: claim, renew, dispatch, clear, settle, resolve.

import type { Effect, Outcome } from '../core/contract/words.ts';
import type { EventType, RecordError, Retention, StoredRecord, StoredResult } from './record.ts';

/** `rerun` and `verify` say why the claim may take over a record in doubt. */
export type ClaimFor = 'execute' | 'rerun' | 'verify';

export interface ClaimRequest {
  readonly namespace: string;
  readonly key: string;
  /** The key under earlier forms of the contract, oldest last: a live record under any of them counts as this one. */
  readonly olderKeys: readonly string[];
  readonly token: string;
  readonly fingerprint: string | null;
  readonly for: ClaimFor;
  /** A waiter acts only on the generation it waited for; null: on any. */
  readonly generation: number | null;
  /** The claim itself marks the attempt dispatched. */
  readonly crossing: boolean;
  readonly leaseMs: number;
  /** A re-run is allowed only this long after the first dispatch; null: always. */
  readonly rerunWithinMs: number | null;
  /** A re-run was decided for the record as this claim left it: a later one may have sent under stricter terms. */
  readonly rerunOf?: number | null;
  readonly maxCrashes: number;
  /** How long after a dispatch requests may be in flight: as long as the attempt can send, plus `networkMs`. */
  readonly inFlightForMs: number;
  /** How long after an attempt's end its requests may be in flight. */
  readonly networkMs: number;
  readonly version: string;
  readonly effect: Effect;
  readonly keyed: boolean;
  /** The contract has a provider whose key an attempt may have sent, though this claim does not count on it. */
  readonly maySendKey?: boolean;
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
  /** Its intent has waited in an outbox since then; null or absent: it is made now. */
  readonly stagedAt?: number | null;
  /** The record comes from another ledger. */
  readonly imported?: Imported;
  /** For a link from another ledger: writes links under the earlier forms even if its claim loses. */
  readonly linksOnly?: boolean;
}

/** What a record keeps from its former ledger, because a provider or a verifier depends on it. */
export interface Imported {
  /** Its fence there; here the fence starts above it. */
  readonly fence: number;
  readonly providerKeyFence: number;
  readonly firstDispatchedAt: number | null;
  readonly lastDispatchedAt: number | null;
  readonly prepared: string | null;
}

/** The part of a claim that identifies the record, without what it would store. */
export type Asking = Pick<
  ClaimRequest,
  'namespace' | 'key' | 'olderKeys' | 'fingerprint' | 'generation' | 'caller' | 'share' | 'stagedAt'
>;

export type ClaimAnswer =
  | {
      readonly won: true;
      readonly record: StoredRecord;
      /** The claim replaced an attempt that had lapsed or was in doubt. */
      readonly takeover: boolean;
    }
  | Loss;

export interface Loss {
  readonly won: false;
  /** The record it lost to; undefined only for a waiter whose generation is gone. */
  readonly record: StoredRecord | undefined;
}

/** Identifies one attempt. `fence` and `generation` matter once the attempt has been fenced. */
export interface Held {
  readonly namespace: string;
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly generation: number;
}

export interface RenewRequest extends Held {
  readonly leaseMs: number;
  /** An attempt that continues after it lapsed may send for as long as after a dispatch. */
  readonly inFlightForMs: number;
  readonly note?: Note;
}

/** The provider's id for what the attempt has sent; null: what it noted before did not land. */
export interface Note {
  readonly remoteRef: string | null;
  /** Counts the notes of the attempt, from 1. */
  readonly nth: number;
}

export interface RenewAnswer {
  readonly held: boolean;
  readonly record: StoredRecord | undefined;
}

export interface DispatchRequest extends Held {
  /** The request about to be sent carries a key that the target honours. */
  readonly keyed: boolean;
  readonly prepared: string | null;
  readonly rerunWithinMs: number | null;
  readonly inFlightForMs: number;
}

/** `verify` answered "not landed" for every attempt before this claim. */
export interface ClearRequest extends Held {
  readonly crossing: boolean;
  /** The `readAt` of the record when `verify` started: its answer is judged as of then. */
  readonly seenAt: number;
  /** The provider would keep replaying a stored error under the old key. */
  readonly freshKey: boolean;
  readonly rerunWithinMs: number | null;
  readonly inFlightForMs: number;
}

/** Not the holder · lease over · provider's window over · already landed · too early to say. */
export type Refusal = 'fenced' | 'lapsed' | 'window' | 'landed' | 'early';

export type CrossAnswer =
  | { readonly ok: true; readonly record: StoredRecord }
  | { readonly ok: false; readonly why: Refusal; readonly record: StoredRecord | undefined };

export interface SettleRequest extends Held {
  readonly outcome: Outcome;
  readonly result: StoredResult | null;
  readonly error: RecordError | null;
  /** What it may have sent carries our key: then a second success is not a second effect, and a doubt may be re-run. */
  readonly keyed: boolean;
  /** A verifier found it: the effect of some attempt, never a second one. */
  readonly found: boolean;
  /** The effect ran on after the end of its attempt; without an error, or if the claim is still held, it may be running. */
  readonly late?: true;
  /** The id that the attempt has noted stays, unless `result` has one: the executor may have told it to another process. */
  readonly keepNote?: true;
}

export interface SettleAnswer {
  /** The record has this outcome, through this call or an earlier one with the same token. */
  readonly settled: boolean;
  /** What the record became; with doubt set, `failed` and `released` become `unknown`. */
  readonly record: StoredRecord | undefined;
  /** The attempt no longer holds the claim. */
  readonly fenced: boolean;
  /** The event written to the history, if the ending was exceptional. */
  readonly noted: EventType | undefined;
}

/** The state of the record that the decision was based on. */
export interface Seen {
  readonly fence: number;
  readonly dispatchedAt: number | null;
}

export type Act =
  | { readonly type: 'landed'; readonly result: StoredResult }
  | { readonly type: 'notLanded' }
  | { readonly type: 'runAgain' }
  | { readonly type: 'abandon'; readonly reason: string }
  /**
   * The process of the running attempt is gone: it ends now instead of when its lease is over. `mayStillSend`: what that process
   * started may be alive, and send for as long as the attempt could.
   */
  | { readonly type: 'died'; readonly mayStillSend?: boolean }
  | { readonly type: 'forget' }
  | { readonly type: 'reopen' };

export interface ResolveRequest {
  readonly namespace: string;
  readonly key: string;
  readonly seen: Seen;
  /** The `readAt` of the record when the decision was made: a late one is judged as of then. */
  readonly decidedAt: number;
  readonly act: Act;
  /** Random per decision, so that it can be repeated when the reply was lost. */
  readonly token: string;
  /** Who decides, by their own account. */
  readonly by: string;
  /** The owner of the deciding process, according to the system. */
  readonly login?: string;
  readonly note: string | null;
  /** Also decide about an attempt that still holds its lease, and before "not landed" can be trusted. */
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
