// JSON on its way in and out. In: nothing that two readers could understand differently. Out: values that only JavaScript has
// become plain ones.

import { isUtf8 } from 'node:buffer';
import { SemelError } from '../../core/errors.ts';
import { readShape } from '../../core/key/json-shape.ts';
import { repeatedName } from '../../core/key/repeated-name.ts';

/** Throws INVALID_ARGS. */
export function readJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw unreadable('It is not UTF-8.');
  const { problem, members, mayRound } = readShape(bytes);
  if (problem !== undefined) throw unreadable(problem);
  const text = bytes.toString();
  let value: unknown;
  try {
    // Each number is compared with its digits, which takes a while.
    value = mayRound ? JSON.parse(text, refuseRounded as Reviver) : JSON.parse(text);
  } catch (error) {
    throw error instanceof SemelError ? error : unreadable('It is not JSON.');
  }
  const twice = countMembers(value) === members ? undefined : repeatedName(text);
  if (twice !== undefined) throw unreadable(`\`${twice}\` appears twice in one object.`);
  return value;
}

type Reviver = (this: unknown, key: string, value: unknown) => unknown;

/** Members of all its objects. Fewer than in the text: a name is there twice. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const each of value) count += countMembers(each);
    return count;
  }
  for (const name of Object.keys(value)) count += 1 + countMembers((value as Record<string, unknown>)[name]);
  return count;
}

/** Two numbers that become one would be one intent: two refunds, of which only the first is made. */
function refuseRounded(key: string, value: unknown, { source }: { readonly source?: string } = {}): unknown {
  if (typeof value !== 'number' || source === undefined) return value;
  const isExact = Number.isFinite(value) && decimalOf(source) === decimalOf(String(value));
  if (isExact) return value;
  throw new SemelError('INVALID_ARGS', `${source.slice(0, 40)} cannot be represented exactly.`, {
    ...(key === '' ? {} : { path: key }),
    next: 'Send it as a text.',
  });
}

/** Its digits and its exponent: the same for 1.50, 15e-1 and 1.5. */
function decimalOf(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const scale = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${sign}${significant}e${scale}`;
}

function unreadable(why: string): SemelError {
  return new SemelError('INVALID_ARGS', `The body cannot be read. ${why}`, {
    next: 'Send one JSON object in UTF-8.',
  });
}

export function writeJson(value: unknown): string {
  // A replacer is called for each member, which takes longer than all the rest.
  return (isOrdinary(value, 0) ? JSON.stringify(value) : JSON.stringify(value, toPlain)) ?? 'null';
}

/** Surely needs no replacer. Values that refer to themselves end here too. */
function isOrdinary(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'bigint';
  if (depth > deepest) return false;
  if (Array.isArray(value)) return value.every((each) => isOrdinary(each, depth + 1));
  if (value instanceof Date) return true;
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const name in value)
    if (!isOrdinary((value as Record<string, unknown>)[name], depth + 1)) return false;
  return true;
}

const deepest = 50;

/** A value that another program stored may be anything that semel keeps. */
function toPlain(this: unknown, _key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Map) return [...value];
  if (value instanceof Set) return [...value];
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Error) return { name: value.name, message: value.message };
  return value;
}
