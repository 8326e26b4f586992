// A record as people and programs see it: decoded, with dates, and with the reference that a verdict names.

import { refOf } from '../call/index.ts';
import { decodeResult } from '../core/codec.ts';
import { providerKey, recordId } from '../core/key.ts';
import type { Effect, Status } from '../core/words.ts';
import { isKept } from '../rules/state.ts';
import type { RecordError, StoredRecord } from '../store/store.ts';

export interface RecordInfo {
  /** The record's short name. */
  readonly id: string;
  /** What `doubts.resolve` takes: the record as it was looked at. */
  readonly ref: string;
  readonly namespace: string;
  readonly contract: string;
  readonly key: string;
  readonly version: string;
  readonly effect: Effect;
  readonly status: Status;
  readonly inDoubt: boolean;
  /** Running, lease over. */
  readonly lapsed: boolean;
  /** How long a holder that is dead now would go on blocking, in milliseconds. */
  readonly leaseLeftMs: number;
  /** Its window is over: it no longer answers for its key, and the next call executes. */
  readonly expired: boolean;
  /** It stands for its key for good: after `expiresAt` only its result goes. */
  readonly kept: boolean;
  /** Lapsed before anything was dispatched: free, and nobody came back for it. */
  readonly abandoned: boolean;
  /** An attempt was dispatched and never accounted for. */
  readonly doubt: boolean;
  readonly attempts: number;
  readonly fence: number;
  readonly generation: number;
  readonly owner: string;
  readonly args: unknown;
  readonly value: unknown;
  readonly omitted: string | undefined;
  readonly remoteRef: string | undefined;
  /** The key that its provider was sent, before the provider's own `format`: what to look for there. */
  readonly providerKey: string | undefined;
  readonly error: RecordError | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly settledAt: Date | undefined;
  readonly expiresAt: Date | undefined;
  readonly firstDispatchedAt: Date | undefined;
  readonly lastDispatchedAt: Date | undefined;
  /** From here on "not landed" may be believed. */
  readonly quietAt: Date | undefined;
  readonly notAfter: Date | undefined;
  readonly conversation: string | undefined;
  readonly turn: string | undefined;
  readonly toolCallId: string | undefined;
  readonly run: string | undefined;
  /** Why it was done once more on purpose. */
  readonly again: string | undefined;
  /** A digest of whose call it was; undefined: the program named no caller. */
  readonly caller: string | undefined;
}

export function infoOf(record: StoredRecord): RecordInfo {
  const at = (instant: number | null) => (instant === null ? undefined : new Date(instant));
  return {
    id: recordId(record.namespace, record.key),
    ref: refOf(record),
    namespace: record.namespace,
    contract: record.contract,
    key: record.key,
    version: record.version,
    effect: record.effect,
    status: record.status,
    inDoubt: record.inDoubt,
    lapsed: record.lapsed,
    leaseLeftMs: record.leaseLeftMs,
    expired: record.expired,
    kept: isKept(record),
    abandoned: record.lapsed && !record.inDoubt,
    doubt: record.doubtSince !== null,
    attempts: record.attempts,
    fence: record.fence,
    generation: record.generation,
    owner: record.owner,
    args: record.args === null ? undefined : decodeResult(record.args),
    value: record.result?.text == null ? undefined : decodeResult(record.result.text),
    omitted: record.result?.omitted ?? undefined,
    remoteRef: record.result?.remoteRef ?? undefined,
    providerKey: record.keyed ? providerKey(record.namespace, record.key, record.keyFence) : undefined,
    error: record.error ?? undefined,
    createdAt: new Date(record.createdAt),
    updatedAt: new Date(record.updatedAt),
    settledAt: at(record.settledAt),
    expiresAt: at(record.expiresAt),
    firstDispatchedAt: at(record.firstDispatchedAt),
    lastDispatchedAt: at(record.lastDispatchedAt),
    quietAt: at(record.quietAt),
    notAfter: at(record.notAfter),
    conversation: record.conversation ?? undefined,
    turn: record.turn ?? undefined,
    toolCallId: record.toolCallId ?? undefined,
    run: record.run ?? undefined,
    again: record.again ?? undefined,
    caller: record.caller ?? undefined,
  };
}
