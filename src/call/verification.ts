// The three answers of `verify`.

export type Verification<Value = unknown> =
  | { readonly verdict: 'landed'; readonly value: Value; readonly remoteRef: string | undefined }
  | { readonly verdict: 'notLanded' }
  | { readonly verdict: 'unsure'; readonly because: string | undefined };

/** It landed; `value` is what the first attempt would have returned. */
export function landed<Value>(value: Value, remoteRef?: string): Verification<Value> {
  return { verdict: 'landed', value, remoteRef };
}

/** It did not land, and nothing of it is on its way. */
export function notLanded(): Verification<never> {
  return { verdict: 'notLanded' };
}

/** It cannot be told now: the record stays in doubt. */
export function unsure(because?: string): Verification<never> {
  return { verdict: 'unsure', because };
}
