import { expect, test } from 'vitest';
import { parseExact, parseReply, rawNumber, writable } from './numbers.ts';

const tagged = (digits: string) => ({ digits });

/** What `JSON.parse` says of a text; every number that it would round, by its digits. */
function byReviver(text: string): unknown {
  const isRounded = (value: number, source: string) =>
    BigInt(Math.trunc(value)) !== BigInt(source) || !Number.isSafeInteger(value);
  return JSON.parse(text, ((_: string, value: unknown, { source }: { source: string }) =>
    typeof value === 'number' && /^-?\d+$/.test(source) && isRounded(value, source)
      ? tagged(source)
      : value) as never);
}

const pieces = [
  ...['{', '}', '[', ']', ',', ':', ' ', '"', '\\', '\\"', 'true', 'false', 'null', '-', '"a":', '"1":'],
  ...['0', '7', '-12', '12345678901234567890', '-9007199254740993', '9007199254740991', '123456789012345'],
  ...['"12345678901234567890"', '"__proto__":', '\n', '«'],
];

/** Deterministic. */
function* texts(count: number): Generator<string> {
  let seed = 7;
  const next = (most: number) => {
    seed = (seed * 48_271) % 0x7fffffff;
    return seed % most;
  };
  const value = (depth: number): string => {
    const kind = next(depth > 3 ? 3 : 6);
    const items = Array.from({ length: depth > 3 ? 0 : next(4) }, () => value(depth + 1));
    if (kind === 3) return `[ ${items.join(' ,')}]`;
    if (kind === 4)
      return `{${items.map((each, at) => `"${['a', '__proto__', '1'][at]}" : ${each}`).join(',')}}`;
    return (pieces.filter((each) => /^(-?\d+|true|null|"\d+")$/.test(each)) as string[])[next(10)] as string;
  };
  for (let n = 0; n < count; n += 1) {
    const text = value(0);
    yield text;
    // The same with one thing too many or missing: mostly not JSON any more.
    const at = next(text.length + 1);
    yield text.slice(0, at) + pieces[next(pieces.length)] + text.slice(at + next(2));
  }
}

test('a text is read as JSON.parse reads it, but for the numbers that it would round', () => {
  let rounded = 0;
  for (const text of texts(20_000)) {
    let expected: unknown;
    try {
      expected = byReviver(text);
    } catch {
      expect(() => parseExact(text, tagged), text).toThrow(SyntaxError);
      continue;
    }
    const found = parseExact(text, tagged);
    expect(JSON.stringify(found), text).toBe(JSON.stringify(expected));
    if (JSON.stringify(found).includes('digits')) rounded += 1;
  }
  expect(rounded).toBeGreaterThan(1_000);
});

test.each(['{12345678901234567890:1}', '{"a":1,1e400 \n:2}', '{-12345678901234567890 : {}}'])(
  'a number is not a name: %s',
  (text) => {
    expect(() => parseExact(text, tagged)).toThrow(SyntaxError);
    expect(parseReply(text)).toBeUndefined();
  },
);

test('digits come back as they were, of exponents and fractions too', () => {
  const text =
    '{"a":1e400,"b":-0.10000000000000000001,"c":[1E+30,"1e400",{"d":12345678901234567890}],"e":1.5e3,"f":-1e-7}';
  expect(JSON.stringify(parseExact(text, rawNumber))).toBe(text.replace('1.5e3', '1500'));
  expect(JSON.stringify(writable(parseReply(text)))).toBe(text.replace('1.5e3', '1500'));
});

test('a list of millions of values next to one long number is read quickly', () => {
  const values = 6_000_000;
  const read = parseReply(`{"a":[${'1,'.repeat(values)}1],"b":12345678901234567890}`) as { a: unknown[] };
  expect(read.a).toHaveLength(values + 1);
});
