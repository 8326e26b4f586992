// Are two values the same to somebody who gets them from a replay? Judged by what the ledger would store of them,
// so that the realm of a test runner, or a change made afterwards, does not count.

import { isDeepStrictEqual } from 'node:util';
import { decodeResult, encodeResult } from '../../core/codec.ts';

export function snapshotOf(value: unknown): unknown {
  const encoded = encodeResult(value, { maxBytes: Number.MAX_SAFE_INTEGER });
  return encoded.ok ? decodeResult(encoded.text) : value;
}

export function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(snapshotOf(a), snapshotOf(b));
}
