// Answers a call from a settled record: the stored value, deep-equal to the first, or its error.

import { decodeResult } from '../core/codec/codec.ts';
import { describeThrown } from '../core/contract/classify.ts';
import { SemelError } from '../core/errors.ts';
import { findDrift } from '../core/key/identity.ts';
import type { CachedRecord } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call, Tool } from './call.ts';
import {
  collectEvidence,
  createReceipt,
  errorFromRecord,
  type Receipt,
  type Result,
  refuse,
} from './receipt.ts';
import { strictError } from './refusals.ts';

/** Returns a promise only if the tool fetches a live value. */
export function replay(
  call: Call,
  record: StoredRecord,
  more: Partial<Receipt> = {},
): Result | Promise<Result> {
  const conflict = call.findConflict(record);
  if (conflict.length > 0) return refuse(call, record, strictError(call, record, conflict));
  const receipt = createReceipt(call, record, {
    replayed: true,
    drift: findDrift(record.content, call.content()),
    ...more,
  });
  if (record.status !== 'succeeded') return { ...refuse(call, record, errorFromRecord(record)), receipt };
  const stored = record.result?.text == null ? undefined : decodeResult(record.result.text);
  if (call.tool.onReplay !== undefined) return fetchLive(call.tool.onReplay, call, record, stored, receipt);
  if (record.result?.text != null) return { ok: true, value: stored, receipt };
  const why = record.result?.omitted ?? 'nothing was stored';
  return { ok: false, error: omittedError(record, why), receipt };
}

/** From memory, for a tool without `onReplay`: the value is already parsed, and each reader gets a copy. */
export function replayCached(call: Call, cached: CachedRecord): Result {
  const { record } = cached;
  const text = record.result?.text;
  const isPlain = record.status === 'succeeded' && text != null && call.tool.contract.strict.length === 0;
  if (!isPlain) return replay(call, record) as Result;
  const drift = cached.driftFrom(call);
  return {
    ok: true,
    value: cached.value(text),
    receipt: createReceipt(call, record, { replayed: true, drift }),
  };
}

async function fetchLive(
  onReplay: NonNullable<Tool['onReplay']>,
  { args }: Call,
  record: StoredRecord,
  stored: unknown,
  receipt: Receipt,
): Promise<Result> {
  try {
    const live = await onReplay({
      args: args as never,
      remoteRef: record.result?.remoteRef ?? undefined,
      settledAt: new Date(record.settledAt ?? record.updatedAt),
      stored,
    });
    return { ok: true, value: live, receipt };
  } catch (cause) {
    return {
      ok: false,
      error: omittedError(record, `\`onReplay\` threw: ${describeThrown(cause)}`, cause),
      receipt,
    };
  }
}

function omittedError(record: StoredRecord, why: string, cause?: unknown): SemelError {
  const doneAt = new Date(record.settledAt ?? record.updatedAt).toISOString();
  return new SemelError(
    'RESULT_OMITTED',
    `${record.contract} was done at ${doneAt}; its value cannot be returned (${why}).`,
    {
      evidence: collectEvidence(record),
      cause,
    },
  );
}
