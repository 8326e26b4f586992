// Creates receipts, and the errors that a record answers with.

import type { Contract } from '../core/contract/contract.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { type ErrorCode, errorCodes, SemelError } from '../core/errors.ts';
import { recordId } from '../core/key/key.ts';
import type { Receipt } from '../core/receipt.ts';
import { reportedError } from '../rules/state.ts';
import { withoutMark } from '../store/process-life.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';

export type { Receipt };

export type Result<Value = unknown> =
  | { readonly ok: true; readonly value: Value; readonly receipt: Receipt }
  | { readonly ok: false; readonly error: SemelError; readonly receipt: Receipt };

export function createReceipt(
  call: Pick<Call, 'namespace' | 'key' | 'identity'> & { tool: { contract: Pick<Contract, 'name'> } },
  record: StoredRecord | undefined,
  more: Partial<Receipt> = {},
): Receipt {
  const key = record?.key ?? call.key;
  return {
    contract: call.tool.contract.name,
    key,
    id: recordId(call.namespace, key),
    fence: record?.fence ?? 0,
    generation: record?.generation ?? 0,
    attempt: record?.attempts ?? 0,
    executed: more.executed ?? false,
    replayed: more.replayed ?? false,
    skipped: more.skipped ?? false,
    settledAt: record?.settledAt == null ? undefined : new Date(record.settledAt),
    drift: more.drift ?? [],
    remoteRef: more.remoteRef ?? record?.result?.remoteRef ?? undefined,
    omitted: more.omitted ?? record?.result?.omitted ?? undefined,
    unguarded: more.unguarded ?? false,
    acceptedRepeat: more.acceptedRepeat ?? false,
    weak: call.identity.weak === true,
    observed: more.observed,
  };
}

/** For a call that was refused before it had a key. */
export function emptyReceipt(name: string): Receipt {
  const call = { tool: { contract: { name } }, namespace: '', key: '', identity: {} };
  return { ...createReceipt(call, undefined), id: '' };
}

export function refuse(
  call: Call,
  record: StoredRecord | undefined,
  error: SemelError,
  more: Partial<Receipt> = {},
): Result {
  return { ok: false, error, receipt: createReceipt(call, record, more) };
}

/**
 * The state that a verdict is about: `<id>@<fence>`, and for a running attempt also when it last dispatched. It may dispatch
 * again and end under the same fence, and what was seen before says nothing about what it has sent since.
 */
export function formatRef(record: StoredRecord): string {
  const ref = `${recordId(record.namespace, record.key)}@${record.fence}`;
  return record.status === 'running'
    ? `${ref}.${(record.lastDispatchedAt ?? 0).toString(36).slice(-6)}`
    : ref;
}

/** What is known about a record, as plain data for people and models. */
export function collectEvidence(record: StoredRecord): Record<string, unknown> {
  const at = (instant: number | null) => (instant === null ? undefined : new Date(instant).toISOString());
  const evidence = {
    record: formatRef(record),
    key: record.key,
    attempts: record.attempts,
    owner: withoutMark(record.owner),
    firstDispatchedAt: at(record.firstDispatchedAt),
    lastDispatchedAt: at(record.lastDispatchedAt),
    error: reportedError(record)?.message,
    remoteRef: record.result?.remoteRef ?? undefined,
  };
  return Object.fromEntries(Object.entries(evidence).filter(([, value]) => value !== undefined));
}

/** The error that a settled or released record answers with. */
export function errorFromRecord(
  record: StoredRecord,
  cause?: unknown,
  retryAfterMs?: number | undefined,
): SemelError {
  const message = (record.error?.message ?? 'no reason was recorded').replace(/\.$/, '');
  const stored = record.error?.code as ErrorCode | undefined;
  const known = stored !== undefined && errorCodes.includes(stored);
  const details = {
    evidence: collectEvidence(record),
    ...(cause === undefined ? {} : { cause }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  if (record.status === 'failed' && record.doubtFence !== null) {
    const next = 'Somebody abandoned it; `semel.records.reopen` puts it in doubt again.';
    // It was given up, not refused: it may have landed.
    const evidence = { ...details.evidence, givenUp: true };
    return new SemelError('FAILED', `${record.contract}: ${message}.`, { ...details, evidence, next });
  }
  if (record.status === 'failed')
    return new SemelError(known ? stored : 'FAILED', `${record.contract} failed: ${message}.`, details);
  if (isRepeatable(record.effect)) {
    const next = 'It is declared harmless to repeat: call again.';
    return new SemelError('FAILED', `${record.contract} threw: ${message}.`, {
      ...details,
      next,
      retriable: true,
    });
  }
  if (known && stored !== 'NOT_LANDED')
    return new SemelError(stored, `${record.contract} did not land: ${message}.`, details);
  return new SemelError('NOT_LANDED', `${record.contract} did not land: ${message}.`, details);
}
