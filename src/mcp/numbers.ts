// Numbers that JavaScript would round. In the args of a call they are told apart by their digits: two ids must not become
// one call. In an answer they keep their digits, so that a replay names the same ids as the first answer did.

/** Few texts have a number that is worth a closer look. */
const worthALook = /[\d.eE]{16}|\d[eE]/;

export function mayRound(text: string): boolean {
  return worthALook.test(text);
}

/** What `JSON.parse` gives, with `kept` of their digits in the place of such numbers. */
export function parsedExactly(text: string, kept: (digits: string) => unknown): unknown {
  const exact = (_name: string, value: unknown, { source = '' }: { readonly source?: string } = {}) =>
    typeof value !== 'number' || isExact(value, source) ? value : kept(source);
  return JSON.parse(text, exact);
}

function isExact(value: number, source: string): boolean {
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(source)) return true;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
  const digits = source
    .replace(/[eE].*/, '')
    .replace(/\D/g, '')
    .replace(/^0+|0+$/g, '');
  if (digits === '' || String(value) === source) return true;
  // So many digits fit into a double, but for the smallest.
  return digits.length <= 15 && Number.isFinite(value) && Math.abs(value) > 1e-300;
}

/** An answer. Such a number is an object of its digits there, which the ledger keeps as it is. */
export function answerIn(text: string): unknown {
  try {
    return mayRound(text) ? parsedExactly(text, numberOf) : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function numberOf(digits: string): object {
  return Object.assign(Object.create(null), { [mark]: digits });
}

const mark = 'dev.semel/digits';

/** As it is written. Newer than the compiler's own list of what JSON can do. */
export const { rawJSON: rawNumber } = JSON as unknown as { rawJSON(digits: string): unknown };

/** The same, to be written: its numbers as they came. */
export function writable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(writable);
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return mark in value ? rawNumber(String(value[mark])) : value;
  if (prototype !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, writable(member)]));
}
