// What is asked of a record, and what is answered: claim, renew, dispatch, clear, settle, resolve.

import type { Effect, Outcome } from '../core/contract/words.ts';
import type { EventType, RecordError, Retention, StoredRecord, StoredResult } from './record.ts';

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
  readonly inFlightForMs: number;
  /** From an attempt's end on. */
  readonly networkMs: number;
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
  readonly imported?: Imported;
  /** Of another ledger's link: it leaves links under the earlier forms, whatever it loses to. */
  readonly linksOnly?: boolean;
}

/** What a record brings along from another ledger, because a provider or a verifier out there goes by it. */
export interface Imported {
  /** Its fence there: it goes on above. */
  readonly fence: number;
  readonly providerKeyFence: number;
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
  readonly inFlightForMs: number;
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
  readonly inFlightForMs: number;
}

/** Verify said "not landed" of everything up to this claim. */
export interface ClearRequest extends Held {
  readonly crossing: boolean;
  /** The `readAt` of the record that was held when the look began: what was seen then is judged by then. */
  readonly seenAt: number;
  /** The provider would go on replaying a stored error under the old key. */
  readonly freshKey: boolean;
  readonly rerunWithinMs: number | null;
  readonly inFlightForMs: number;
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
