// The verdict about a call whose claim did not win, from the record that it lost to. Pure.

import { isCallers } from '../store/rules/state.ts';
import type { Asking, StoredRecord } from '../store/store.ts';

export type Verdict =
  | { readonly kind: 'execute'; readonly record: StoredRecord; readonly takeover: boolean }
  | { readonly kind: 'replay'; readonly record: StoredRecord }
  | { readonly kind: 'busy'; readonly record: StoredRecord }
  | { readonly kind: 'in doubt'; readonly record: StoredRecord }
  | { readonly kind: 'conflict'; readonly record: StoredRecord }
  /** The record is another caller's: it is given without anything that was asked or answered. */
  | { readonly kind: 'foreign'; readonly record: StoredRecord }
  /** Only for a waiter: the generation that it waited for is no more. */
  | { readonly kind: 'gone' };

export type Lost = Exclude<Verdict, { kind: 'execute' }>;

export function decide(
  record: StoredRecord | undefined,
  asked: Pick<Asking, 'fingerprint' | 'generation' | 'caller' | 'share'>,
): Lost {
  if (record === undefined) return { kind: 'gone' };
  if (asked.generation !== null && record.generation !== asked.generation) return { kind: 'gone' };
  if (!isCallers(record, asked)) return { kind: 'foreign', record: sealed(record) };
  // Only a record that was read from a list of done things has none under a caller's own key: nobody knows its args.
  if (record.fingerprint !== null && record.fingerprint !== asked.fingerprint)
    return { kind: 'conflict', record };
  if (record.status === 'succeeded' || record.status === 'failed') return { kind: 'replay', record };
  if (record.inDoubt) return { kind: 'in doubt', record };
  return { kind: 'busy', record };
}

/** What is left of a record for a caller whose it is not: that it is there, and in which state. */
function sealed(record: StoredRecord): StoredRecord {
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
