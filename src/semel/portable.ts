// A record as plain JSON, for another ledger or another program: all that is known of it, and its history.
// What is absent is not known. Refuses a line that it cannot read whole.

import { decodeResult } from '../core/codec.ts';
import { recordId } from '../core/key.ts';
import { type Effect, effects, type Status } from '../core/words.ts';
import type { RecordError, StoredRecord, StoreEvent } from '../store/store.ts';

export interface PortableRecord {
  /** The version of this form. */
  readonly semel: 1;
  readonly id: string;
  readonly namespace: string;
  readonly contract: string;
  readonly key: string;
  readonly status: Status;
  readonly inDoubt: boolean;
  readonly lapsed: boolean;
  /** Its window is over. */
  readonly expired: boolean;
  /** An attempt was dispatched and never accounted for. */
  readonly doubt: boolean;
  readonly attempts: number;
  readonly fence: number;
  readonly generation: number;
  /** Names the key that its provider was sent. */
  readonly keyFence: number;
  readonly version: string;
  readonly effect: Effect;
  readonly keyed: boolean;
  readonly owner: string;
  readonly fingerprint?: string | undefined;
  /** As it is stored: what JSON cannot hold is tagged by `$semel`. */
  readonly args?: unknown;
  readonly prepared?: unknown;
  readonly value?: unknown;
  readonly omitted?: string | undefined;
  readonly remoteRef?: string | undefined;
  /** A digest of the first wording per content field. */
  readonly content?: unknown;
  readonly error?: RecordError | undefined;
  readonly retention?: PortableRetention | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly settledAt?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly firstDispatchedAt?: string | undefined;
  readonly lastDispatchedAt?: string | undefined;
  /** From here on "not landed" may be believed. */
  readonly quietAt?: string | undefined;
  readonly notAfter?: string | undefined;
  readonly conversation?: string | undefined;
  readonly turn?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly run?: string | undefined;
  readonly again?: string | undefined;
  /** A digest of whose call it was: it answers no other caller. */
  readonly caller?: string | undefined;
  readonly history: readonly PortableEvent[];
}

export interface PortableRetention {
  readonly windowMs: number;
  readonly failureWindowMs: number;
  /** The key stays for good. */
  readonly keep: boolean;
  readonly periodEndsAt?: string | undefined;
}

export interface PortableEvent {
  readonly at: string;
  readonly type: string;
  readonly fence: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

export function portableOf(record: StoredRecord, history: readonly StoreEvent[]): PortableRecord {
  const { result, retention } = record;
  return {
    semel: 1,
    id: recordId(record.namespace, record.key),
    namespace: record.namespace,
    contract: record.contract,
    key: record.key,
    status: record.status,
    inDoubt: record.inDoubt,
    lapsed: record.lapsed,
    expired: record.expired,
    doubt: record.doubtSince !== null,
    attempts: record.attempts,
    fence: record.fence,
    generation: record.generation,
    keyFence: record.keyFence,
    version: record.version,
    effect: record.effect,
    keyed: record.keyed,
    owner: record.owner,
    fingerprint: record.fingerprint ?? undefined,
    args: jsonOf(record.args),
    prepared: jsonOf(record.prepared),
    value: jsonOf(result?.text ?? null),
    omitted: result?.omitted ?? undefined,
    remoteRef: result?.remoteRef ?? undefined,
    content: jsonOf(record.content),
    error: record.error ?? undefined,
    retention:
      retention === null ? undefined : { ...retention, periodEndsAt: instant(retention.periodEndsAt) },
    createdAt: instant(record.createdAt) as string,
    updatedAt: instant(record.updatedAt) as string,
    settledAt: instant(record.settledAt),
    expiresAt: instant(record.expiresAt),
    firstDispatchedAt: instant(record.firstDispatchedAt),
    lastDispatchedAt: instant(record.lastDispatchedAt),
    quietAt: instant(record.quietAt),
    notAfter: instant(record.notAfter),
    conversation: record.conversation ?? undefined,
    turn: record.turn ?? undefined,
    toolCallId: record.toolCallId ?? undefined,
    run: record.run ?? undefined,
    again: record.again ?? undefined,
    caller: record.caller ?? undefined,
    history: history.map(({ at, type, fence, detail }) => ({
      at: instant(at) as string,
      type,
      fence,
      detail,
    })),
  };
}

/** "Never" is further away than a date can be. */
export const farAway = Date.UTC(9999, 0);

function instant(at: number | null): string | undefined {
  return at === null ? undefined : new Date(Math.max(0, Math.min(at, farAway))).toISOString();
}

/** What is stored is JSON already. */
function jsonOf(text: string | null): unknown {
  return text === null ? undefined : JSON.parse(text);
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string' && value.isWellFormed() && !/\p{Cc}/u.test(value);
const isFlag: Check = (value) => typeof value === 'boolean';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
/** With room to grow: what is added to it must stay a number that every store can hold. */
const isFence: Check = (value) => isCount(value) && (value as number) <= 2 ** 48;
const isInstant: Check = (value) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) && !Number.isNaN(Date.parse(value));
const isObject: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
/** Only what is tagged can be unreadable. */
const isStored: Check = (value) => {
  const text = JSON.stringify(value);
  if (text?.includes('"$semel":') !== true) return true;
  try {
    decodeResult(text);
    return true;
  } catch {
    return false;
  }
};
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const oneOf =
  (words: readonly string[]): Check =>
  (value) =>
    words.includes(value as string);

const isError: Check = (value) => {
  const { code, message, retriable } = (value ?? {}) as Partial<RecordError>;
  return isText(code) && typeof message === 'string' && isFlag(retriable);
};
const isRetention: Check = (value) => {
  const { windowMs, failureWindowMs, keep, periodEndsAt } = (value ?? {}) as Partial<PortableRetention>;
  return isCount(windowMs) && isCount(failureWindowMs) && isFlag(keep) && maybe(isInstant)(periodEndsAt);
};
const isHistory: Check = (value) =>
  Array.isArray(value) &&
  value.every((event) => isObject(event) && isInstant(event.at) && isText(event.type));

const statuses: readonly Status[] = ['running', 'succeeded', 'failed', 'released', 'unknown'];

const checks: Readonly<Record<keyof PortableRecord, Check>> = {
  semel: (value) => value === 1,
  id: isText,
  namespace: isText,
  contract: (value) => isText(value) && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value as string),
  key: (value) => isText(value) && (value as string).length <= 8_192,
  status: oneOf(statuses),
  inDoubt: isFlag,
  lapsed: isFlag,
  expired: isFlag,
  doubt: isFlag,
  attempts: isCount,
  fence: isFence,
  generation: isFence,
  keyFence: isFence,
  version: isText,
  effect: oneOf(effects),
  keyed: isFlag,
  owner: isText,
  fingerprint: maybe(isText),
  args: isStored,
  prepared: isStored,
  value: isStored,
  omitted: maybe((value) => typeof value === 'string'),
  remoteRef: maybe((value) => typeof value === 'string'),
  content: maybe(isObject),
  error: maybe(isError),
  retention: maybe(isRetention),
  createdAt: isInstant,
  updatedAt: isInstant,
  settledAt: maybe(isInstant),
  expiresAt: maybe(isInstant),
  firstDispatchedAt: maybe(isInstant),
  lastDispatchedAt: maybe(isInstant),
  quietAt: maybe(isInstant),
  notAfter: maybe(isInstant),
  conversation: maybe(isText),
  turn: maybe(isText),
  toolCallId: maybe(isText),
  run: maybe(isText),
  again: maybe(isText),
  caller: maybe(isText),
  history: isHistory,
};

/** What is wrong with it; undefined: it is a record. */
export function problemOf(value: unknown): string | undefined {
  if (!isObject(value)) return 'it is no object';
  const record = value as Record<string, unknown>;
  if (record.semel !== undefined && record.semel !== 1) return `it has form ${String(record.semel)}, not 1`;
  for (const [field, check] of Object.entries(checks)) {
    if (record[field] === undefined && !check(undefined)) return `it has no \`${field}\``;
    if (!check(record[field])) return `its \`${field}\` cannot be read`;
  }
  const { key, contract } = value as PortableRecord;
  return key.startsWith(`${contract}/`) ? undefined : 'its key is not of its contract';
}
