// The three logs that the checker reads, as plain data: a simulator in one process and a storm of real ones
// write the same.

import type { Outcome } from '../../../src/core/contract/words.ts';
import type { StoredRecord, StoreEvent } from '../../../src/store/store.ts';

/** One thing that happened in the outside world, told by the outside world. */
export interface EffectEntry {
  /** In the order of arrival. */
  readonly seq: number;
  readonly at: number;
  readonly namespace: string;
  readonly intent: string;
  readonly target: string;
  /** Fence of the attempt that made it, as the attempt said; null: it did not say. */
  readonly fence: number | null;
  /** The key that the provider was given; null: none. */
  readonly providerKey: string | null;
}

/**
 * What the caller of a tool heard. `failed` and `not landed` are definite; `given up` is not. `nothing` is any
 * answer that says nothing about the effect: busy, conflict, refused, store down.
 */
export type Told =
  | 'executed'
  | 'replayed'
  | 'failed'
  | 'not landed'
  | 'given up'
  | 'in doubt'
  | 'unrecorded'
  | 'nothing';

interface WorkLine {
  readonly at: number;
  readonly worker: string;
  readonly namespace: string;
  /** What the call is about, in the words of the effect log. */
  readonly intent: string;
}

interface RecordLine extends WorkLine {
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
}

/** One line of a worker's log. */
export type WorkEntry =
  /** Names the call; the same call ends once, unless its worker dies. */
  | (WorkLine & { readonly kind: 'started'; readonly call: string; readonly contract: string })
  /** The ledger gave this call the key. */
  | (RecordLine & { readonly kind: 'claimed'; readonly call: string })
  /** The store accepted an ending of this attempt as the record's. */
  | (RecordLine & { readonly kind: 'settled'; readonly outcome: Outcome })
  | (WorkLine & {
      readonly kind: 'ended';
      readonly call: string;
      readonly told: Told;
      readonly code: string | null;
      /** Null where the answer was about no record. */
      readonly key: string | null;
      readonly generation: number | null;
      readonly fence: number | null;
      /** A digest of the value; equal values have equal ones. */
      readonly value: string | null;
      /** The effect that the value speaks of, where the target numbers them. */
      readonly effect: number | null;
    })
  | { readonly kind: 'died'; readonly at: number; readonly worker: string };

export type CheckedRecord = Pick<
  StoredRecord,
  'namespace' | 'key' | 'generation' | 'fence' | 'status' | 'doubtFence' | 'lapsed' | 'inDoubt'
>;

/** What a contract lets happen. */
export interface Policy {
  /** The target honours our key. */
  readonly keyed: boolean;
  /** Running it again is harmless by declaration, or accepted by `onDoubt: 'rerun'`. */
  readonly repeats: boolean;
}

export interface Logs {
  /** Lines of all workers; each worker's own are in order. */
  readonly work: readonly WorkEntry[];
  /** All records of the store at the end, after the faults stopped and every lease ran out. */
  readonly records: readonly CheckedRecord[];
  /** The store's events, each key's in their order. */
  readonly events: readonly StoreEvent[];
  readonly effects: readonly EffectEntry[];
  /** By contract; a contract that is not named is un-keyed and not to be repeated. */
  readonly policies: Readonly<Record<string, Policy>>;
  /** Records may have expired or been pruned before the end. */
  readonly expires?: boolean;
  /**
   * A request may land after "not landed" was believed of it: the stated limit. Without it a verdict "not landed"
   * and a `duplicate` event excuse nothing, since nothing of the kind can happen.
   */
  readonly requestsOutliveQuiet?: boolean;
}

/** Lines of JSON; the last one may be torn, since its writer was killed. */
export function parseLines<Entry>(text: string): Entry[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.flatMap((line, index) => {
    try {
      return [JSON.parse(line) as Entry];
    } catch (error) {
      if (index === lines.length - 1) return [];
      throw new Error(`Line ${index + 1} is not JSON: ${line.slice(0, 80)}`, { cause: error });
    }
  });
}
