// JSON on its way in and out. In: nothing that two readers could understand differently. Out: values that only JavaScript has
// become plain ones.

import { isUtf8 } from 'node:buffer';
import { SemelError } from '../core/errors.ts';
import { shapeProblem } from '../core/key/json-shape.ts';
import { repeatedName } from '../core/key/repeated-name.ts';

/** Throws INVALID_ARGS. */
export function readJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw unreadable('It is not UTF-8.');
  const problem = shapeProblem(bytes);
  if (problem !== undefined) throw unreadable(problem);
  const text = bytes.toString();
  let value: unknown;
  try {
    value = mayRound.test(text) ? JSON.parse(text, refuseRounded as Reviver) : JSON.parse(text);
  } catch (error) {
    throw error instanceof SemelError ? error : unreadable('It is not JSON.');
  }
  const twice = repeatedName(text);
  if (twice !== undefined) throw unreadable(`\`${twice}\` appears twice in one object.`);
  return value;
}

type Reviver = (this: unknown, key: string, value: unknown) => unknown;

/** Only then is each number compared with its digits, which takes a while. */
const mayRound = /\d{16}|\d[eE]|\.\d{15}/;

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
  return JSON.stringify(value, toPlain) ?? 'null';
}

/** A value that another program stored may be anything that semel keeps. */
function toPlain(this: unknown, _key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Map) return [...value];
  if (value instanceof Set) return [...value];
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Error) return { name: value.name, message: value.message };
  return value;
}
