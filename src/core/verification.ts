// What `verify` is given, and its three answers about a record in doubt.

import { type Duration, durationMs } from './contract/duration.ts';

/** Helps `verify` to find out whether the effect landed. */
export interface VerifyContext {
  /** The key that the attempts in doubt sent to the provider. */
  readonly key: string;
  readonly keyFor: (part: string) => string;
  /** The mark that the attempts in doubt left on what they created. */
  readonly mark: (part?: string) => string;
  readonly remoteRef: string | undefined;
  readonly firstDispatchedAt: Date | undefined;
  readonly lastDispatchedAt: Date | undefined;
  readonly attempts: number;
  readonly signal: AbortSignal;
}

export type Verification<Value = unknown> =
  | { readonly verdict: 'landed'; readonly value: Value; readonly remoteRef: string | undefined }
  | { readonly verdict: 'notLanded'; readonly lagMs?: number }
  | { readonly verdict: 'unsure'; readonly because: string | undefined };

/** It landed; `value` is what the first attempt would have returned. */
export function landed<Value>(value: Value, remoteRef?: string): Verification<Value> {
  return { verdict: 'landed', value, remoteRef };
}

/**
 * It did not land, and nothing of it is on its way. `lag`: how old the data may be, for an index that is updated late; the
 * answer is trusted that much later.
 */
export function notLanded({ lag }: { readonly lag?: Duration } = {}): Verification<never> {
  return { verdict: 'notLanded', ...(lag === undefined ? {} : { lagMs: durationMs(lag, 'lag') }) };
}

/** It cannot be said now: the record stays in doubt. */
export function unsure(because?: string): Verification<never> {
  return { verdict: 'unsure', because };
}
