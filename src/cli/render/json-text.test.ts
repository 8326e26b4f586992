import { expect, test } from 'vitest';
import { jsonText } from './json-text.ts';

function circle(): object {
  const round: { self?: object } = {};
  round.self = round;
  return round;
}

function sparse(): unknown[] {
  const array: unknown[] = [];
  array[4_294_967_294] = 'last';
  return array;
}

function deep(levels: number): object {
  let value: object = {};
  for (let at = 0; at < levels; at += 1) value = { value };
  return value;
}

test.each([
  ['a big integer', { order: 12345678901234567890n }, '{"order":"12345678901234567890"}'],
  ['a sparse array', { list: sparse() }, '{"list":{"4294967294":"last","length":4294967295}}'],
  ['an array with members', Object.assign(['a'], { more: 1 }), '{"0":"a","more":1,"length":1}'],
  ['an empty array', [], '[]'],
  ['a map and a set', [new Map([['a', 1n]]), new Set([1])], '[[["a","1"]],[1]]'],
  ['bytes', Buffer.from('hi'), '"aGk="'],
  ['a date that is none', new Date(Number.NaN), 'null'],
  ['a regular expression', /a+/g, '"/a+/g"'],
  ['an error', new TypeError('no'), '{"message":"no"}'],
  ['a circle', circle(), '{"self":"[circular]"}'],
  [
    'a getter that throws',
    {
      get a() {
        throw new Error('no');
      },
    },
    '"[unreadable]"',
  ],
  [
    'a toJSON that throws',
    {
      a: {
        toJSON() {
          throw new Error('no');
        },
      },
    },
    '{"a":"[unreadable]"}',
  ],
  ['a member called __proto__', JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
  ['undefined', undefined, 'undefined'],
])('%s has a text', (_, value, text) => {
  expect(jsonText(value)).toBe(text);
});

test('an endless value is truncated, and other JSON is unchanged', () => {
  expect(jsonText(deep(100_000))).toContain('[deeper]');
  const plain = { a: [1, 'x', null, { b: [] }], at: new Date(0) };
  expect(jsonText(plain, 2)).toBe(JSON.stringify(plain, null, 2));
});
