// The record: what a store keeps of a key, how each field is shown, and the exceptional part of its history.

import type { Effect, Status } from '../core/contract/words.ts';

/** How long a settled record answers for its key. Fixed by the claim, so that settling needs no contract. */
export interface Retention {
  readonly windowMs: number;
  readonly failureWindowMs: number;
  /** `per: 'ever'`: the result goes after the window, the key stays for good. */
  readonly keep: boolean;
  /** For an intent with a calendar period: the window starts when the period ends. */
  readonly periodEndsAt: number | null;
}

export interface RecordError {
  readonly code: string;
  readonly message: string;
  readonly retriable: boolean;
  /** What its author says to do about the part that landed. */
  readonly next?: string;
}

/** What a successful attempt leaves behind. */
export interface StoredResult {
  /** The encoded value, or null where it was omitted. */
  readonly text: string | null;
  /** Why there is no value: not storable, too large, or only a reference was wanted. */
  readonly omitted: string | null;
  /** The provider's own id for what landed. */
  readonly remoteRef: string | null;
}

/** A success reported by an attempt that no longer held the claim. */
export interface News {
  readonly token: string;
  readonly fence: number;
  /** A verifier found it; this attempt did not do it. */
  readonly found: boolean;
  readonly result: StoredResult;
}

/** Everything a store keeps of one key. Instants are milliseconds of the store's wall clock. */
export interface Row {
  readonly namespace: string;
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  /** Goes into the provider's key: the generation, until a verdict requires a new key. */
  readonly providerKeyFence: number;
  /** Token of the last claim or decision; it invalidates every earlier one. */
  readonly token: string;
  readonly status: Status;
  /** The lowest fence of an attempt that was dispatched and never accounted for; null: no doubt. */
  readonly doubtFence: number | null;
  /** The effect of the attempt at this fence may land. */
  readonly dispatched: boolean;
  readonly attempts: number;
  /** Consecutive takeovers of attempts that crashed before dispatch. */
  readonly crashes: number;
  readonly version: string;
  readonly effect: Effect;
  /** The target honours our key and every open dispatch carried it, so that a repeat has no second effect. */
  readonly keyed: boolean;
  /** Null for derived keys, whose digest already covers the identity. */
  readonly fingerprint: string | null;
  readonly owner: string;
  readonly leaseBoot: string | null;
  readonly leaseUntil: number | null;
  readonly retention: Retention | null;
  readonly args: string | null;
  readonly prepared: string | null;
  /** One short digest per content field, as first dispatched. */
  readonly content: string | null;
  /** While the record is open: the provider's id that an attempt noted, without a value. */
  readonly result: StoredResult | null;
  /** How many ids the attempt at this fence has noted: a late copy of an earlier note changes nothing. */
  readonly notes: number;
  readonly error: RecordError | null;
  /** A fenced attempt's success that arrived while another attempt was running. */
  readonly news: News | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly settledAt: number | null;
  readonly expiresAt: number | null;
  readonly firstDispatchedAt: number | null;
  readonly lastDispatchedAt: number | null;
  /** "Not landed" cannot be trusted before: a request may still be in flight. */
  readonly inFlightUntil: number | null;
  /** The contract's `verifyAfter`: how long after an attempt's end "not landed" has to wait. */
  readonly networkMs: number;
  readonly notAfter: number | null;
  readonly conversation: string | null;
  readonly turn: string | null;
  readonly toolCallId: string | null;
  readonly run: string | null;
  /** The reason for a deliberate repeat. */
  readonly again: string | null;
  /** Digest of the caller; the record answers no other. Null: the program named none. */
  readonly caller: string | null;
  /** Makes the row a link: workers with a newer form of the contract claimed this intent under these keys. */
  readonly movedTo: readonly string[] | null;
}

/** A copy of a row that nobody else has seen yet. */
export type DraftRow = { -readonly [Field in keyof Row]: Row[Field] };

type Kind =
  /** Shown unchanged. */
  | 'plain'
  /** Text about the call, or null. */
  | 'text'
  /** Stored as milliseconds, shown as a date. */
  | 'instant'
  /** Stored as JSON text, shown as its value. */
  | 'json'
  /** Shown in part or in another form. */
  | 'other'
  /** Only the rules use it. */
  | 'hidden';

/** Every field of a row: how it is shown, and its value in an empty row. */
const fields = {
  namespace: ['plain', ''],
  key: ['plain', ''],
  generation: ['plain', 0],
  fence: ['plain', 0],
  providerKeyFence: ['plain', 0],
  token: ['hidden', ''],
  status: ['plain', 'released'],
  doubtFence: ['other', null],
  dispatched: ['hidden', false],
  attempts: ['plain', 0],
  crashes: ['hidden', 0],
  version: ['plain', ''],
  effect: ['plain', 'read'],
  keyed: ['plain', false],
  fingerprint: ['other', null],
  owner: ['plain', ''],
  leaseBoot: ['hidden', null],
  leaseUntil: ['hidden', null],
  retention: ['other', null],
  args: ['json', null],
  prepared: ['json', null],
  content: ['json', null],
  result: ['other', null],
  notes: ['hidden', 0],
  error: ['other', null],
  news: ['hidden', null],
  createdAt: ['instant', 0],
  updatedAt: ['instant', 0],
  settledAt: ['instant', null],
  expiresAt: ['instant', null],
  firstDispatchedAt: ['instant', null],
  lastDispatchedAt: ['instant', null],
  inFlightUntil: ['instant', null],
  networkMs: ['hidden', 0],
  notAfter: ['instant', null],
  conversation: ['text', null],
  turn: ['text', null],
  toolCallId: ['text', null],
  run: ['text', null],
  again: ['text', null],
  caller: ['text', null],
  movedTo: ['other', null],
} as const satisfies { readonly [Name in keyof Row]: readonly [Kind, Row[Name]] };

export type FieldOf<Of extends Kind> = {
  [Name in keyof Row]: (typeof fields)[Name][0] extends Of ? Name : never;
}[keyof Row];

export function fieldsOfKind<Of extends Kind>(kind: Of): readonly FieldOf<Of>[] {
  return Object.entries(fields).flatMap(([name, [each]]) => (each === kind ? [name as FieldOf<Of>] : []));
}

/** Picks fields of a record and converts each for display. */
export function showFields<Shape, Name extends keyof Shape & string, Value>(
  record: Shape,
  names: readonly Name[],
  as: (value: Shape[Name]) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, as(record[name])])) as Record<Name, Value>;
}

export const emptyRow = Object.fromEntries(
  Object.entries(fields).map(([name, [, value]]) => [name, value]),
) as { readonly [Name in keyof Row]: Row[Name] };

/** A row at one moment of the store's clock, without the token. */
export interface StoredRecord extends Omit<Row, 'token' | 'leaseBoot' | 'leaseUntil' | 'news'> {
  readonly contract: string;
  /** 0 if the clock could not be trusted. */
  readonly readAt: number;
  /** Running, lease over. */
  readonly lapsed: boolean;
  /** Unknown, or lapsed with the attempt dispatched or doubt set. */
  readonly inDoubt: boolean;
  /** How much longer the holder blocks others if it has crashed. */
  readonly leaseLeftMs: number;
  /** Its window is over: it no longer answers for its key. */
  readonly expired: boolean;
  /** How long until "not landed" can be trusted; Infinity while the clock cannot. */
  readonly inFlightMs: number;
}

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
