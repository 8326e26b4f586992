// The constants that stand for args when semel tries what a schema fills in by itself.

import { isPlainPrototype } from '../core/plain.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Further inside, objects are taken as a whole. */
export const deepest = 4;

const texts = [
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
];
const numbers = [0, 1, 10, 100, 1000];

/** What may stand for an arg: by its kind alone, never by its value. `lean`: its shape, or that of its items. */
export function constantsFor(value: unknown, lean: unknown): readonly unknown[] {
  if (value === null) return [null, ...texts, ...numbers, false, true, [], {}];
  if (Array.isArray(value))
    return value.length === 0 ? [null, []] : [null, [], ...skeletons(lean).map((item) => [item])];
  if (isFields(value)) return [null, {}, ...skeletons(lean)];
  if (value instanceof Date) return [null, new Date(0), new Date(Date.UTC(2100, 0))];
  switch (typeof value) {
    case 'string':
      return [null, ...texts];
    case 'number':
      return [null, ...numbers];
    case 'bigint':
      return [null, 0n, 1n];
    case 'boolean':
      return [null, false, true];
    default:
      return [null];
  }
}

/** Of the same shape, with constants in it. */
function skeletons(value: unknown): readonly unknown[] {
  return [skeleton(value, 'semel', 1, 0), skeleton(value, '', 0, 0)];
}

function skeleton(value: unknown, text: string, number: number, depth: number): unknown {
  if (depth === deepest) return null;
  if (Array.isArray(value)) return value.slice(0, 1).map((item) => skeleton(item, text, number, depth + 1));
  if (isFields(value)) {
    const members = Object.entries(value).map(([name, member]) => [
      name,
      skeleton(member, text, number, depth + 1),
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
