// The verdict about a call whose claim did not win, from the record that it lost to. Pure.

import type { StoredRecord } from '../store/store.ts';

export type Verdict =
  | { readonly kind: 'execute'; readonly record: StoredRecord; readonly takeover: boolean }
  | { readonly kind: 'replay'; readonly record: StoredRecord }
  | { readonly kind: 'busy'; readonly record: StoredRecord }
  | { readonly kind: 'in doubt'; readonly record: StoredRecord }
  | { readonly kind: 'conflict'; readonly record: StoredRecord }
  /** Only for a waiter: the generation that it waited for is no more. */
  | { readonly kind: 'gone' };

export type Lost = Exclude<Verdict, { kind: 'execute' }>;

export function decide(
  record: StoredRecord | undefined,
  asked: { readonly fingerprint: string | null; readonly generation: number | null },
): Lost {
  if (record === undefined) return { kind: 'gone' };
  if (asked.generation !== null && record.generation !== asked.generation) return { kind: 'gone' };
  // Only a record that was read from a list of done things has none under a caller's own key: nobody knows its args.
  if (record.fingerprint !== null && record.fingerprint !== asked.fingerprint)
    return { kind: 'conflict', record };
  if (record.status === 'succeeded' || record.status === 'failed') return { kind: 'replay', record };
  if (record.inDoubt) return { kind: 'in doubt', record };
  return { kind: 'busy', record };
}
