// Turns the record that a call found into an answer: what the call does next. Pure.

import { canAnswer } from '../rules/state.ts';
import type { Asking, StoredRecord } from '../store/store.ts';
import type { CachedRecord } from './cache.ts';

export type Answer =
  /** The claim is won and durable. */
  { readonly is: 'execute'; readonly record: StoredRecord } | LostAnswer;

/** The answer to a claim that lost, or to a read. */
export type LostAnswer =
  /** `cached`: it came from memory. */
  | { readonly is: 'replay'; readonly record: StoredRecord; readonly cached?: CachedRecord }
  | { readonly is: 'busy'; readonly record: StoredRecord }
  | { readonly is: 'in doubt'; readonly record: StoredRecord }
  /** A caller's own key stands for other identity args. */
  | { readonly is: 'conflict'; readonly record: StoredRecord }
  /** The record belongs to another caller: stripped of args, result and identity. */
  | { readonly is: 'foreign'; readonly record: StoredRecord }
  /** The generation that a waiter waited for is gone. */
  | { readonly is: 'gone' };

export function toAnswer(
  record: StoredRecord | undefined,
  call: Pick<Asking, 'fingerprint' | 'generation' | 'caller' | 'share'>,
): LostAnswer {
  if (record === undefined) return { is: 'gone' };
  if (call.generation !== null && record.generation !== call.generation) return { is: 'gone' };
  if (!canAnswer(record, call)) return { is: 'foreign', record: redact(record) };
  // Under a caller's own key, only an imported record has no fingerprint: nobody knows its args.
  if (record.fingerprint !== null && record.fingerprint !== call.fingerprint)
    return { is: 'conflict', record };
  if (record.status === 'succeeded' || record.status === 'failed') return { is: 'replay', record };
  if (record.inDoubt) return { is: 'in doubt', record };
  return { is: 'busy', record };
}

/** Another caller learns only that the record exists, and its state. */
function redact(record: StoredRecord): StoredRecord {
  return {
    ...record,
    owner: '',
    args: null,
    prepared: null,
    content: null,
    result: null,
    error: null,
    conversation: null,
    turn: null,
    toolCallId: null,
    run: null,
    again: null,
    caller: null,
  };
}
