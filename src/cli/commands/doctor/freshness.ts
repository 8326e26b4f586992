// Which args look as if they changed from call to call: current timestamps, names like `requestId` and `body`.

import { looksFresh, looksReworded } from '../../../core/key/changing-names.ts';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;

/** How far an instant may lie from the call to be its own "now". */
const nowMs = 10_000;
const maxDepth = 8;

type Fields = Readonly<Record<string, unknown>>;

/** Args that hold nothing but text are kept: two texts are two intents then. Undefined if nested too deep. */
export function withoutFresh(args: object, at: number, depth = 0): Fields | undefined {
  if (depth > maxDepth) return undefined;
  const rest: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(args)) {
    if (isFresh(name, value, at)) continue;
    rest[name] = isObject(value) ? withoutFresh(value, at, depth + 1) : value;
  }
  const kept = Object.entries(rest).filter(([name]) => !looksReworded(name));
  return kept.length === 0 ? rest : Object.fromEntries(kept);
}

/** Their paths. */
export function changingFields(args: unknown, at: number, prefix = '', depth = 0): readonly string[] {
  if (!isObject(args) || depth > maxDepth) return [];
  return Object.entries(args).flatMap(([name, value]) =>
    isFresh(name, value, at) || looksReworded(name)
      ? [`${prefix}${name}`]
      : changingFields(value, at, `${prefix}${name}.`, depth + 1),
  );
}

/** A caller's own key that no retry could find again. */
export function isFreshKey(key: string, at: number): boolean {
  return uuid.test(key) || (key.match(/\d{10,13}/g) ?? []).some((digits) => isNow(Number(digits), at));
}

function isFresh(name: string, value: unknown, at: number): boolean {
  if (looksFresh(name)) return true;
  if (typeof value === 'number') return isNow(value, at);
  if (value instanceof Date) return isNow(value.getTime(), at);
  return typeof value === 'string' && /^\d{4}-\d\d-\d\d[T ]\d\d:/.test(value) && isNow(Date.parse(value), at);
}

/** In milliseconds or in seconds. */
function isNow(instant: number, at: number): boolean {
  return Math.abs(instant - at) <= nowMs || Math.abs(instant * 1000 - at) <= nowMs;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
