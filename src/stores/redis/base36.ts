// Whole numbers in base 36, two digits at a time: `toString(36)` takes four times as long beyond 31 bits, and every record
// has four such numbers.

const digits = '0123456789abcdefghijklmnopqrstuvwxyz';
const pairs = [...digits].flatMap((first) => [...digits].map((second) => first + second));
const pair = 36 * 36;

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

/** Numbers between commas; null: nothing stands there. */
export function numbersIn(text: string, start: number, end: number): (number | null)[] {
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
