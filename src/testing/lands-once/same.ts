// Are two values equal to a caller who gets them from a replay? Compares copies made in the same way: what was changed
// afterwards does not count, nor does the realm in which a test runner such as jest keeps its tests.

import { isDeepStrictEqual } from 'node:util';
import { decodeResult, encodeResult } from '../../core/codec/codec.ts';

export function snapshotOf(value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch {
    const encoded = encodeResult(value, { maxBytes: Number.MAX_SAFE_INTEGER });
    return encoded.ok ? decodeResult(encoded.text) : value;
  }
}

export function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(snapshotOf(a), snapshotOf(b));
}
