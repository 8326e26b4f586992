// Keeps the digits of numbers that JavaScript would round: in args, so that two ids do not become one call; in answers, so
// that a replay has the same ids as the first answer.

import { randomBytes } from 'node:crypto';
import { isTooDeep } from '../../core/key/json-shape.ts';
import { limits } from '../../core/limits.ts';
import { TooLong } from './events.ts';

/** Few texts contain a number that might be rounded. */
const worthALook = /[\d.eE]{16}|\d[eE]/;

export function mayRound(text: string): boolean {
  return worthALook.test(text);
}

/**
 * Like `JSON.parse`, with such numbers replaced by `replaceNumber(digits)` and strings by `replaceText(text)`. A reviver of
 * `JSON.parse` sees the digits too, but takes a minute for the values of one long message.
 */
export function parseExact(
  text: string,
  replaceNumber: (digits: string) => unknown,
  replaceText?: (text: string) => unknown,
): unknown {
  // Random, so that no text of a message looks like a placeholder.
  const placeholder = `${randomBytes(9).toString('base64url')} `;
  const { json, numbers } = holdOut(text, placeholder);
  const parsed: unknown = JSON.parse(json);
  return numbers.length === 0 && replaceText === undefined ? parsed : replaceIn(parsed);

  function replaceIn(value: unknown): unknown {
    if (typeof value === 'string')
      return value.startsWith(placeholder)
        ? replaceNumber(numbers[Number(value.slice(placeholder.length))] as string)
        : (replaceText?.(value) ?? value);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) value[at] = replaceIn(value[at]);
      return value;
    }
    const members = value as Record<string, unknown>;
    for (const name of Object.keys(members)) {
      const member = members[name];
      const replaced = replaceIn(member);
      // Each name is the object's own, `__proto__` too.
      if (replaced !== member) members[name] = replaced;
    }
    return members;
  }
}

/** Puts strings into the places of numbers that would be rounded. What is not JSON stays what it is. */
function holdOut(text: string, placeholder: string): { readonly json: string; readonly numbers: string[] } {
  const numbers: string[] = [];
  let json = '';
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfText(text, at);
    if (code !== minus && !isDigit(code)) continue;
    const start = at;
    let hasExponent = false;
    for (; at + 1 < text.length && isOfNumber(text.charCodeAt(at + 1)); at += 1)
      hasExponent ||= (text.charCodeAt(at + 1) | 32) === exponent;
    // All shorter ones are exact.
    if (!hasExponent && at - start < 15) continue;
    const source = text.slice(start, at + 1);
    if (!isJsonNumber.test(source) || isExact(Number(source), source) || isName(text, at + 1)) continue;
    if (numbers.length === limits.exactNumbers)
      throw new TooLong(`A message has more than ${limits.exactNumbers} numbers that would be rounded.`);
    json += `${text.slice(from, start)}"${placeholder}${numbers.length}"`;
    numbers.push(source);
    from = at + 1;
  }
  return { json: json + text.slice(from), numbers };
}

const [quote, backslash, minus, plus, point, exponent, zero, nine] = [...'"\\-+.e09'].map((sign) =>
  sign.charCodeAt(0),
) as [number, number, number, number, number, number, number, number];
const isJsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const colon = /[ \t\n\r]*:/y;

function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

function isOfNumber(code: number): boolean {
  return isDigit(code) || code === point || (code | 32) === exponent || code === minus || code === plus;
}

/** A number is not a name, but as a string it would be one. */
function isName(text: string, end: number): boolean {
  colon.lastIndex = end;
  return colon.test(text);
}

/** The index of the closing quote, or the end of the text. */
function endOfText(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === backslash) at += 1;
    else if (code === quote) return at;
  }
  return text.length;
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

/**
 * Parses a server's message. Such a number becomes an object that holds its digits, which the ledger stores. Throws if
 * there are too many of them.
 */
export function parseReply(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return mayRound(text) ? parseExact(text, numberOf) : JSON.parse(text);
  } catch (error) {
    if (error instanceof TooLong) throw error;
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
