// Compares the args of two calls: which fields differ, and which differences make another key.

import type { Contract } from '../../core/contract/contract.ts';
import { deriveIdentity } from '../../core/key/identity.ts';
import { isSame } from './same.ts';

export interface Difference {
  /** Dotted, as in a contract's lists; empty for args that are not an object. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

export function differences(before: unknown, after: unknown, path = ''): Difference[] {
  if (isFields(before) && isFields(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) =>
      differences(before[name], after[name], path === '' ? name : `${path}.${name}`),
    );
  }
  return isSame(before, after) ? [] : [{ path, before, after }];
}

/** Whether this difference alone makes another key. */
export function isIdentity(
  { fields, normalize }: Contract,
  args: unknown,
  { path, after }: Difference,
): boolean {
  const limits = { maxDepth: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
  const keyOf = (value: unknown) => {
    try {
      return deriveIdentity(value, fields, normalize, limits);
    } catch {
      return undefined;
    }
  };
  return keyOf(args) !== keyOf(path === '' ? after : withField(args, path.split('.'), after));
}

type Freshness = 'uuid' | 'time' | undefined;

/** What a value that changes from call to call seems to be. */
export function freshnessOf({ path, before, after }: Difference): Freshness {
  if (isUuid(before) && isUuid(after)) return 'uuid';
  if (isTime(before) && isTime(after)) return 'time';
  const name = path.slice(path.lastIndexOf('.') + 1);
  if (/^(uuid|nonce|random|(trace|request|correlation)_?id)$/i.test(name)) return 'uuid';
  return /^(now|date|time|timestamp)$|[a-z](At|Time|Date|Timestamp)$|_(at|time|date)$/.test(name)
    ? 'time'
    : undefined;
}

function isUuid(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);
}

const yearMs = 366 * 86_400_000;

function isTime(value: unknown): boolean {
  const isNow = (ms: number) => Math.abs(ms - Date.now()) < yearMs;
  if (typeof value === 'number') return isNow(value) || isNow(value * 1_000);
  return (
    typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:/.test(value) && !Number.isNaN(Date.parse(value))
  );
}

function withField(args: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const fields = isFields(args) ? args : {};
  return { ...fields, [name]: withField(fields[name], rest, value) };
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
