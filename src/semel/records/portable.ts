// A record as plain JSON, for another ledger or another program: all that is known of it, and its history.
// What is absent is not known. Refuses a line that it cannot read whole.

import { decodeResult } from '../../core/codec/codec.ts';
import { effects, type Status } from '../../core/contract/words.ts';
import { recordId } from '../../core/key/key.ts';
import { type FieldOf, fieldsOfKind, showFields } from '../../rules/record.ts';
import type { RecordError, StoredRecord, StoreEvent } from '../../store/store.ts';

const plain = [...fieldsOfKind('plain'), 'contract', 'inDoubt', 'lapsed', 'expired'] as const;
const instants = fieldsOfKind('instant');
const json = fieldsOfKind('json');
const texts = fieldsOfKind('text');

type Always = 'createdAt' | 'updatedAt';
type Maybe<Fields, Value> = { readonly [Name in keyof Fields]?: Value | undefined };

/** `args`, `prepared`, `value` and `content` are as they are stored: what JSON cannot hold is tagged by `$semel`. */
export interface PortableRecord
  extends Pick<StoredRecord, (typeof plain)[number]>,
    Readonly<Record<Always, string>>,
    Maybe<Pick<StoredRecord, Exclude<FieldOf<'instant'>, Always>>, string>,
    Maybe<Pick<StoredRecord, FieldOf<'json'>>, unknown>,
    Maybe<Pick<StoredRecord, FieldOf<'text'> | 'fingerprint'>, string> {
  /** The version of this form. */
  readonly semel: 1;
  readonly id: string;
  /** An attempt was dispatched and never accounted for. */
  readonly doubt: boolean;
  readonly value?: unknown;
  readonly omitted?: string | undefined;
  readonly remoteRef?: string | undefined;
  readonly error?: RecordError | undefined;
  readonly retention?: PortableRetention | undefined;
  /** It is a link: workers with a newer form of the contract claimed this intent under these keys. */
  readonly movedTo?: readonly string[] | undefined;
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

export function toPortable(record: StoredRecord, history: readonly StoreEvent[]): PortableRecord {
  const { result, retention } = record;
  const portable = {
    semel: 1,
    id: recordId(record.namespace, record.key),
    ...showFields(record, plain, (value) => value),
    doubt: record.doubtFence !== null,
    fingerprint: record.fingerprint ?? undefined,
    ...showFields(record, json, parseStored),
    value: parseStored(result?.text ?? null),
    omitted: result?.omitted ?? undefined,
    remoteRef: result?.remoteRef ?? undefined,
    error: record.error ?? undefined,
    retention: retention === null ? undefined : { ...retention, periodEndsAt: toIso(retention.periodEndsAt) },
    movedTo: record.movedTo ?? undefined,
    ...showFields(record, instants, toIso),
    ...showFields(record, texts, (text) => text ?? undefined),
    history: history.map(({ at, type, fence, detail }) => ({ at: toIso(at), type, fence, detail })),
  };
  return portable as PortableRecord;
}

/** "Never" is further away than a date can be. */
export const farAway = Date.UTC(9999, 0);

function toIso(at: number | null): string | undefined {
  return at === null ? undefined : new Date(Math.max(0, Math.min(at, farAway))).toISOString();
}

/** What is stored is JSON already. */
function parseStored(text: string | null): unknown {
  return text === null ? undefined : JSON.parse(text);
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string' && value.isWellFormed() && !/\p{Cc}/u.test(value);
const isKey: Check = (value) => isText(value) && (value as string).length <= 8_192;
const isFlag: Check = (value) => typeof value === 'boolean';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
/**
 * With room to grow: what is added to it must stay a number that every store can hold, and Redis counts to 9e15. A ledger
 * there begins at the time in microseconds.
 */
const isFence: Check = (value) => isCount(value) && (value as number) <= 3 * 2 ** 50;
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

function every<Name extends string>(names: readonly Name[], check: Check): Record<Name, Check> {
  return Object.fromEntries(names.map((name) => [name, check])) as Record<Name, Check>;
}

const isError: Check = (value) => {
  const { code, message, retriable, next } = (value ?? {}) as Partial<RecordError>;
  return (
    isText(code) &&
    typeof message === 'string' &&
    isFlag(retriable) &&
    (next === undefined || typeof next === 'string')
  );
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
  ...every(['namespace', 'version', 'owner'], isText),
  contract: (value) => isText(value) && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value as string),
  key: isKey,
  movedTo: maybe((value) => Array.isArray(value) && value.length > 0 && value.every(isKey)),
  status: oneOf(statuses),
  effect: oneOf(effects),
  ...every(['inDoubt', 'lapsed', 'expired', 'doubt', 'keyed'], isFlag),
  attempts: isCount,
  ...every(['fence', 'generation', 'providerKeyFence'], isFence),
  ...every(['args', 'prepared', 'value'], isStored),
  ...every(
    ['omitted', 'remoteRef'],
    maybe((value) => typeof value === 'string'),
  ),
  content: maybe(isObject),
  error: maybe(isError),
  retention: maybe(isRetention),
  ...every(instants, maybe(isInstant)),
  ...every(['createdAt', 'updatedAt'], isInstant),
  ...every([...texts, 'fingerprint'], maybe(isText)),
  history: isHistory,
};

/** What is wrong with it; undefined: it is a record. */
export function findRecordProblem(value: unknown): string | undefined {
  if (!isObject(value)) return 'it is not an object';
  const record = value as Record<string, unknown>;
  if (record.semel !== undefined && record.semel !== 1) return `it has form ${String(record.semel)}, not 1`;
  for (const [field, check] of Object.entries(checks)) {
    if (record[field] === undefined && !check(undefined)) return `it has no \`${field}\``;
    if (!check(record[field])) return `its \`${field}\` cannot be read`;
  }
  const { key, contract } = value as PortableRecord;
  return key.startsWith(`${contract}/`) ? undefined : 'its key is not of its contract';
}
