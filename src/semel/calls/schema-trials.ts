// The constants that stand for args when semel tries what a schema fills in by itself, and how args are changed and
// compared for it.

import { encodeResult } from '../../core/codec/codec.ts';
import { canonicalJson } from '../../core/key/canonical-json.ts';
import type { Steps } from '../../core/key/identity.ts';
import { isPlainPrototype } from '../../core/plain.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Further inside, objects are taken as a whole. */
export const maxDepth = 4;

/** What may stand for an arg, whatever was given. */
export const constants: readonly unknown[] = [
  null,
  '',
  'semel',
  '0',
  '1000',
  '2000-01-01',
  '2000-01-01T00:00:00Z',
  'semel@semel.example',
  'https://semel.example/',
  '+14155550100',
  '00000000-0000-4000-8000-000000000000',
  ...[0, 1, 10, 100, 1000],
  ...[false, true],
  [],
  {},
];

/** A schema that takes one of these for an object makes one of it. */
export const notObjects: readonly unknown[] = ['{}', ...constants.filter((one) => typeof one !== 'object')];

/** Where none of those fits: by its kind alone, never by its value. `lean`: its shape, or that of its items. */
export function constantsLike(value: unknown, lean: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : createSkeletons(lean).map((item) => [item]);
  if (isFields(value)) return createSkeletons(lean);
  if (value instanceof Date) return [new Date(0), new Date(Date.UTC(2100, 0))];
  return typeof value === 'bigint' ? [0n, 1n] : [];
}

/** Values of the same shape, with constants in it. */
function createSkeletons(value: unknown): readonly unknown[] {
  return [createSkeleton(value, 'semel', 1, 0), createSkeleton(value, '', 0, 0)];
}

function createSkeleton(value: unknown, text: string, number: number, depth: number): unknown {
  if (depth === maxDepth) return null;
  if (Array.isArray(value))
    return value.slice(0, 1).map((item) => createSkeleton(item, text, number, depth + 1));
  if (isFields(value)) {
    const members = Object.entries(value).map(([name, member]) => [
      name,
      createSkeleton(member, text, number, depth + 1),
    ]);
    return Object.fromEntries(members);
  }
  if (typeof value === 'string') return text;
  if (typeof value === 'number') return number;
  return typeof value === 'boolean' ? false : null;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && isPlainPrototype(Object.getPrototypeOf(value));
}

export function isWithin(steps: Steps, outer: Steps): boolean {
  return outer.every((name, index) => steps[index] === name);
}

export function at(value: unknown, steps: Steps): unknown {
  let found = value;
  for (const name of steps) found = isFields(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/** `undefined` leaves it out. */
export function setAt(value: unknown, [name, ...rest]: Steps, member: unknown): unknown {
  if (name === undefined || !isFields(value)) return value;
  const inner = Object.hasOwn(value, name) ? value[name] : undefined;
  const next = rest.length === 0 ? member : setAt(inner, rest, member);
  // Every trial begins here: a spread is many times as fast as taking a member out of the rest.
  const copy: Record<string, unknown> = { ...value };
  if (next === undefined) delete copy[name];
  else
    Object.defineProperty(copy, name, { value: next, enumerable: true, writable: true, configurable: true });
  return copy;
}

/** Without these members of what is at `steps`. */
export function without(value: unknown, steps: Steps, names: readonly string[]): unknown {
  const members = at(value, steps);
  if (!isFields(members)) return value;
  const rest: Record<string, unknown> = { ...members };
  for (const name of names) delete rest[name];
  return steps.length === 0 ? rest : setAt(value, steps, rest);
}

/** Undefined: they cannot be compared. */
export function isSame(a: unknown, b: unknown): boolean | undefined {
  if (a === undefined || b === undefined) return a === b;
  if (isPlainScalar(a) && isPlainScalar(b)) return a === b;
  const [one, other] = [encode(a), encode(b)];
  return one === undefined || other === undefined ? undefined : one === other;
}

/** Its text tells no more than it does itself. */
function isPlainScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || value === null || Number.isFinite(value);
}

function encode(value: unknown): string | undefined {
  try {
    return canonicalJson(value);
  } catch {
    const encoded = encodeResult(value, { maxBytes: 1_048_576 });
    return encoded.ok ? encoded.text : undefined;
  }
}
