import { describe, expect, test } from 'vitest';
import { parseJson } from './ids.ts';

const read = (text: string) => parseJson('once', '--id-json -', text);

describe('an identity as JSON', () => {
  test.each([
    '{"a":1234567890123456789}',
    '{"a":1234567890123456789.0}',
    '{"a":1234567890123456789e0}',
    '{"a":12345678901234567.89E2}',
    '{"a":[{"b":-9007199254740993.000}]}',
    '{"a":0.1000000000000000055}',
    '{"a":1e400}',
    '{"a":1e-400}',
    `{"a":1.${'0'.repeat(500_000)}1}`,
  ])('is refused where a number has more digits than are kept: %.40s', (text) => {
    expect(() => read(text)).toThrow('write it as a string');
  });

  test.each([
    ['1', 1],
    ['1.0', 1],
    ['1e0', 1],
    ['-0.0', -0],
    ['0.1', 0.1],
    ['1200e-2', 12],
    ['12.50E1', 125],
    ['9007199254740992', 9007199254740992],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['5e-324', 5e-324],
  ])('keeps the number %s', (text, value) => {
    expect(read(`{"a":${text}}`)).toEqual({ a: value });
  });

  test('is refused if an object has the same name twice, however it is written', () => {
    for (const text of ['{"a":1,"a":2}', '{"x":[{"b":1,"c":2,"b":1}]}', '{"a":1,"\\u0061":2}'])
      expect(() => read(text)).toThrow(/"[ab]" appears twice/);
    expect(read('{"a":{"b":1},"c":{"b":"b"}}')).toEqual({ a: { b: 1 }, c: { b: 'b' } });
  });
});
