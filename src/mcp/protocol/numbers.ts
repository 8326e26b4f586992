// Numbers that JavaScript would round. In the args of a call they are told apart by their digits: two ids must not become
// one call. In an answer they keep their digits, so that a replay names the same ids as the first answer did.

import { isTooDeep } from '../../core/key/json-shape.ts';

/** Few texts have a number that is worth a closer look. */
const worthALook = /[\d.eE]{16}|\d[eE]/;

export function mayRound(text: string): boolean {
  return worthALook.test(text);
}

/** What `JSON.parse` gives, with `kept` of their digits in the place of such numbers, and `told` of each text. */
export function parsedExactly(
  text: string,
  kept: (digits: string) => unknown,
  told: (text: string) => unknown = (same) => same,
): unknown {
  const exact = (_name: string, value: unknown, { source = '' }: { readonly source?: string } = {}) => {
    if (typeof value === 'string') return told(value);
    return typeof value !== 'number' || isExact(value, source) ? value : kept(source);
  };
  return JSON.parse(text, exact);
}

/** However it is written in JSON. */
const mark = /«|\\u00ab/i;

/** With each number that would be rounded as a text of its digits; a text that looks like one gets a second pair of marks. */
export function markedNumbers(text: string): unknown {
  if (!mayRound(text) && !mark.test(text)) return undefined;
  const marked = (inner: string) => `«${inner}»`;
  return parsedExactly(text, marked, (said) => (/^«+[-+.\deE]+»+$/.test(said) ? marked(said) : said));
}

/** Of what `markedNumbers` gave, to be written: the numbers and texts that it was made of. */
export function unmarked(value: unknown): unknown {
  if (typeof value === 'string') return /^«+[-+.\deE]+»+$/.test(value) ? withoutMarks(value) : value;
  if (Array.isArray(value)) return value.map(unmarked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, unmarked(member)]));
}

/** Only a number has one pair. */
function withoutMarks(text: string): unknown {
  const inner = text.slice(1, -1);
  return inner.startsWith('«') ? inner : rawNumber(inner);
}

function isExact(value: number, source: string): boolean {
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(source)) return true;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
  const digits = significantDigits(source);
  if (digits === 0 || String(value) === source) return true;
  // So many digits fit into a double, but for the smallest.
  return digits <= 15 && Number.isFinite(value) && Math.abs(value) > 1e-300;
}

/** How many there are from the first digit that is not 0 to the last one; in one pass, since a stranger chose the length. */
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

/** An answer. Such a number is an object of its digits there, which the ledger keeps as it is. */
export function answerIn(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return mayRound(text) ? parsedExactly(text, numberOf) : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function numberOf(digits: string): object {
  return Object.assign(Object.create(null), { [digitsOf]: digits });
}

const digitsOf = 'dev.semel/digits';

/** As it is written. Newer than the compiler's own list of what JSON can do. */
export const { rawJSON: rawNumber } = JSON as unknown as { rawJSON(digits: string): unknown };

/** The same, to be written: its numbers as they came. */
export function writable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(writable);
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return digitsOf in value ? rawNumber(String(value[digitsOf])) : value;
  if (prototype !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, writable(member)]));
}
