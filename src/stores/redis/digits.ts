// Whole numbers as text: base 64 with a fixed width, or base 36 without. Two digits at a time, because `toString(36)` is four
// times slower beyond 31 bits, and every record has several such numbers.

const digits = '0123456789abcdefghijklmnopqrstuvwxyz';
const pairs = listPairs(digits);
const pair = 36 * 36;

const wideDigits = `${digits}ABCDEFGHIJKLMNOPQRSTUVWXYZ-_`;
const widePairs = listPairs(wideDigits);
const values = new Uint8Array(128);
for (let value = 0; value < wideDigits.length; value += 1) values[wideDigits.charCodeAt(value)] = value;

function listPairs(of: string): readonly string[] {
  return [...of].flatMap((first) => [...of].map((second) => first + second));
}

/** Below 2 ** 12. */
export function digits2(value: number): string {
  return widePairs[value] as string;
}

/** Below 2 ** 36. */
export function digits6(value: number): string {
  const high = Math.floor(value / 2 ** 24);
  const low = value - high * 2 ** 24;
  return `${widePairs[high]}${widePairs[low >>> 12]}${widePairs[low & 4095]}`;
}

/** Below 2 ** 42. */
export function digits7(value: number): string {
  const high = Math.floor(value / 2 ** 36);
  return `${wideDigits[high]}${digits6(value - high * 2 ** 36)}`;
}

export function digit(code: number): number {
  return values[code] as number;
}

/** Parses a base-64 number. */
export function parseNumber(text: string, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at += 1) value = value * 64 + digit(text.charCodeAt(at));
  return value;
}

export function toBase36(value: number): string {
  if (value < 0) return `-${toBase36(-value)}`;
  let text = '';
  let rest = value;
  while (rest >= pair) {
    const next = Math.floor(rest / pair);
    text = pairs[rest - next * pair] + text;
    rest = next;
  }
  return (rest < 36 ? (digits[rest] as string) : (pairs[rest] as string)) + text;
}

const comma = 44;
const minus = 45;
const nine = 57;

/** Parses base-36 numbers separated by commas; null for an empty one. */
export function parseNumbers(text: string, start: number, end: number): (number | null)[] {
  const numbers: (number | null)[] = [];
  let value: number | null = null;
  let sign = 1;
  for (let at = start; at <= end; at += 1) {
    const code = at === end ? comma : text.charCodeAt(at);
    if (code === comma) {
      numbers.push(value === null ? null : sign * value);
      value = null;
      sign = 1;
    } else if (code === minus) sign = -1;
    else value = (value ?? 0) * 36 + (code <= nine ? code - 48 : code - 87);
  }
  return numbers;
}
