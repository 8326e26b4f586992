// What a call is to do, from the store's answer to its claim. Pure.

import { canAnswer } from '../rules/state.ts';
import type { Asking, StoredRecord } from '../store/store.ts';
import type { Kept } from './cache.ts';

export type Answer =
  /** The claim is won and durable. */
  { readonly is: 'execute'; readonly record: StoredRecord } | Lost;

/** What the claim lost to. */
export type Lost =
  /** `kept`: it came from memory. */
  | { readonly is: 'replay'; readonly record: StoredRecord; readonly kept?: Kept }
  | { readonly is: 'busy'; readonly record: StoredRecord }
  | { readonly is: 'in doubt'; readonly record: StoredRecord }
  /** A caller's own key stands for other identity args. */
  | { readonly is: 'conflict'; readonly record: StoredRecord }
  /** The record is another caller's: it is given without anything that was asked or answered. */
  | { readonly is: 'foreign'; readonly record: StoredRecord }
  /** Only for a waiter: the generation that it waited for is gone. */
  | { readonly is: 'gone' };

export function answerFor(
  record: StoredRecord | undefined,
  asked: Pick<Asking, 'fingerprint' | 'generation' | 'caller' | 'share'>,
): Lost {
  if (record === undefined) return { is: 'gone' };
  if (asked.generation !== null && record.generation !== asked.generation) return { is: 'gone' };
  if (!canAnswer(record, asked)) return { is: 'foreign', record: sealed(record) };
  // Only a record that was read from a list of done things has none under a caller's own key: nobody knows its args.
  if (record.fingerprint !== null && record.fingerprint !== asked.fingerprint)
    return { is: 'conflict', record };
  if (record.status === 'succeeded' || record.status === 'failed') return { is: 'replay', record };
  if (record.inDoubt) return { is: 'in doubt', record };
  return { is: 'busy', record };
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
