// Keeps the digits of numbers that JavaScript would round: in args, so that two ids do not become one call; in answers, so
// that a replay has the same ids as the first answer.

import { isTooDeep } from '../../core/key/json-shape.ts';

/** Few texts contain a number that might be rounded. */
const worthALook = /[\d.eE]{16}|\d[eE]/;

export function mayRound(text: string): boolean {
  return worthALook.test(text);
}

/** Like `JSON.parse`, with such numbers replaced by `replaceNumber(digits)` and strings by `replaceText(text)`. */
export function parseExact(
  text: string,
  replaceNumber: (digits: string) => unknown,
  replaceText: (text: string) => unknown = (same) => same,
): unknown {
  const exact = (_name: string, value: unknown, { source = '' }: { readonly source?: string } = {}) => {
    if (typeof value === 'string') return replaceText(value);
    return typeof value !== 'number' || isExact(value, source) ? value : replaceNumber(source);
  };
  return JSON.parse(text, exact);
}

/** As a character or an escape. */
const mark = /«|\\u00ab/i;

/** Writes such numbers as marked strings. A string that already looks marked gets another pair of marks. */
export function parseMarked(text: string): unknown {
  if (!mayRound(text) && !mark.test(text)) return undefined;
  const marked = (inner: string) => `«${inner}»`;
  return parseExact(text, marked, (each) => (/^«+[-+.\deE]+»+$/.test(each) ? marked(each) : each));
}

/** Reverses `parseMarked`, for writing. */
export function unmark(value: unknown): unknown {
  if (typeof value === 'string') return /^«+[-+.\deE]+»+$/.test(value) ? withoutMarks(value) : value;
  if (Array.isArray(value)) return value.map(unmark);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, unmark(member)]));
}

/** One pair of marks is a number. */
function withoutMarks(text: string): unknown {
  const inner = text.slice(1, -1);
  return inner.startsWith('«') ? inner : rawNumber(inner);
}

function isExact(value: number, source: string): boolean {
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(source)) return true;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
  const digits = significantDigits(source);
  if (digits === 0 || String(value) === source) return true;
  // A double holds 15 digits, except for the smallest numbers.
  return digits <= 15 && Number.isFinite(value) && Math.abs(value) > 1e-300;
}

/** Counts from the first nonzero digit to the last, in one pass: a stranger chose the length. */
function significantDigits(source: string): number {
  let [digits, first, last] = [0, 0, 0];
  for (const sign of source) {
    if (sign === 'e' || sign === 'E') break;
    if (sign < '0' || sign > '9') continue;
    digits += 1;
    if (sign === '0') continue;
    first ||= digits;
    last = digits;
  }
  return first === 0 ? 0 : last - first + 1;
}

/** Parses a server's message. Such a number becomes an object that holds its digits, which the ledger stores. */
export function parseReply(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return mayRound(text) ? parseExact(text, numberOf) : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function numberOf(digits: string): object {
  return Object.assign(Object.create(null), { [digitsOf]: digits });
}

const digitsOf = 'dev.semel/digits';

/** `JSON.rawJSON`, which TypeScript does not know yet. */
export const { rawJSON: rawNumber } = JSON as unknown as { rawJSON(digits: string): unknown };

/** Turns such objects back into numbers, for writing. */
export function writable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(writable);
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return digitsOf in value ? rawNumber(String(value[digitsOf])) : value;
  if (prototype !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, writable(member)]));
}
