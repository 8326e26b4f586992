// A record as people and programs see it: decoded, with dates, and with the reference that a verdict names.

import { formatRef } from '../../call/index.ts';
import { decodeResult } from '../../core/codec/codec.ts';
import { shownVersion } from '../../core/contract/version.ts';
import { commandField } from '../../core/contract/words.ts';
import { providerKey, recordId } from '../../core/key/key.ts';
import { type FieldOf, fieldsOfKind, showFields } from '../../rules/record.ts';
import { isKept, reportedError } from '../../rules/state.ts';
import type { RecordError, StoredRecord } from '../../store/store.ts';

const instants = fieldsOfKind('instant');
const texts = fieldsOfKind('text');

type Shown = Omit<Pick<StoredRecord, FieldOf<'plain'>>, 'providerKeyFence' | 'keyed'> &
  Pick<StoredRecord, 'contract' | 'inDoubt' | 'lapsed' | 'leaseLeftMs' | 'expired'>;
/** What is null in the ledger is undefined here. */
type Known<Fields, Value> = {
  readonly [Name in keyof Fields]: null extends Fields[Name] ? Value | undefined : Value;
};

type Dates = Known<Pick<StoredRecord, FieldOf<'instant'>>, Date>;

export interface RecordInfo extends Shown, Dates, Known<Pick<StoredRecord, FieldOf<'text'>>, string> {
  /** The record's short name. */
  readonly id: string;
  /** What `doubts.resolve` takes: the record as it was looked at. */
  readonly ref: string;
  /** It keeps its key for good: after `expiresAt` only its result is removed. */
  readonly kept: boolean;
  /** Lapsed before anything was dispatched: free, and nobody came back for it. */
  readonly abandoned: boolean;
  /** An attempt was dispatched and never accounted for. */
  readonly doubt: boolean;
  /** Made by a guarded command, such as `semel once`. */
  readonly byCommand: boolean;
  readonly args: unknown;
  readonly value: unknown;
  readonly omitted: string | undefined;
  readonly remoteRef: string | undefined;
  /** The key that its provider was sent, before the provider's own `format`: what to look for there. */
  readonly providerKey: string | undefined;
  readonly error: RecordError | undefined;
}

export function toRecordInfo(record: StoredRecord): RecordInfo {
  const { namespace, contract, key, version, effect, status, result } = record;
  const { inDoubt, lapsed, leaseLeftMs, expired, attempts, fence, generation, owner } = record;
  return {
    id: recordId(namespace, key),
    ref: formatRef(record),
    ...{ namespace, contract, key, version: shownVersion(version), effect, status },
    ...{ inDoubt, lapsed, leaseLeftMs, expired },
    kept: isKept(record),
    abandoned: lapsed && !inDoubt,
    doubt: record.doubtFence !== null,
    byCommand: record.content?.includes(JSON.stringify(commandField)) === true,
    ...{ attempts, fence, generation, owner },
    args: record.args === null ? undefined : decodeResult(record.args),
    value: result?.text == null ? undefined : decodeResult(result.text),
    omitted: result?.omitted ?? undefined,
    remoteRef: result?.remoteRef ?? undefined,
    providerKey: record.keyed ? providerKey(namespace, key, record.providerKeyFence) : undefined,
    error: reportedError(record) ?? undefined,
    ...(showFields(record, instants, (at) => (at === null ? undefined : new Date(at))) as Dates),
    ...showFields(record, texts, (text) => text ?? undefined),
  };
}
