import assert from 'node:assert/strict';
import vm from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SemelError } from '../errors.ts';
import { type CanonicalOptions, canonicalJson } from './canonical-json.ts';

function refusalOf(value: unknown, options?: CanonicalOptions): SemelError {
  try {
    canonicalJson(value, options);
  } catch (error) {
    assert(error instanceof SemelError, `not a SemelError: ${error}`);
    assert.equal(error.code, 'NOT_CANONICAL');
    return error;
  }
  return assert.fail('accepted');
}

function double(hex: string): number {
  return Buffer.from(hex, 'hex').readDoubleBE();
}

describe('RFC 8785', () => {
  const vectors: readonly (readonly [name: string, input: string, output: string])[] = [
    ['arrays', '[56,{"d":true,"10":null,"1":[]}]', '[56,{"1":[],"10":null,"d":true}]'],
    [
      'french',
      '{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}',
      '{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}',
    ],
    [
      'structures',
      '{"1":{"f":{"f":"hi","F":5},"\\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}',
      '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ],
    ['unicode', '{"Unnormalized Unicode":"A\\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'],
    [
      'values',
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ],
    [
      'weird',
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\u000a":"Newline","1":"One","\\u0080":"Control\\u007f","\\ud83d\\ude02":"Smiley","\\u00f6":"Latin Small Letter O With Diaeresis","\\ufb33":"Hebrew Letter Dalet With Dagesh","</script>":"Browser Challenge"}',
      '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge","\u0080":"Control\u007f","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😂":"Smiley","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ],
  ];
  test.each(vectors)('gives the text of the vector %s', (_, input, output) => {
    expect(canonicalJson(JSON.parse(input))).toBe(output);
  });

  const numbers: readonly (readonly [hex: string, text: string])[] = [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ];
  test.each(numbers)('writes the double %s as %s', (hex, text) => {
    expect(canonicalJson(double(hex))).toBe(text);
  });

  test.each(['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000'])('refuses the double %s', (hex) => {
    expect(refusalOf(double(hex)).path).toBe('args');
  });
});

describe('what is left out and what is kept', () => {
  test('an undefined member is left out at every depth', () => {
    expect(canonicalJson({ a: undefined, b: 1, c: undefined })).toBe('{"b":1}');
    expect(canonicalJson({ b: { a: undefined } })).toBe('{"b":{}}');
  });

  test('an own __proto__ is a member like any other', () => {
    const parsed = JSON.parse('{"b":1,"__proto__":{"y":2,"x":1}}');
    expect(canonicalJson(parsed)).toBe('{"__proto__":{"x":1,"y":2},"b":1}');
  });

  test('a toJSON that is data is data', () => {
    expect(canonicalJson({ toJSON: 'no' })).toBe('{"toJSON":"no"}');
  });

  test('null-prototype objects, shared references and objects of another realm are plain', () => {
    const shared = { x: 1 };
    expect(canonicalJson([shared, shared])).toBe('[{"x":1},{"x":1}]');
    expect(canonicalJson(Object.assign(Object.create(null), { b: 1, a: 2 }))).toBe('{"a":2,"b":1}');
    expect(canonicalJson(vm.runInNewContext('({ b: [1], a: 2 })'))).toBe('{"a":2,"b":[1]}');
  });

  test('hidden members and hidden symbols do not count, a getter counts by its value', () => {
    const value = Object.defineProperties(
      {},
      {
        hidden: { value: 1 },
        [Symbol('hidden')]: { value: 1 },
        shown: { get: () => 2, enumerable: true },
      },
    );
    expect(canonicalJson(value)).toBe('{"shown":2}');
  });

  test('members sort by UTF-16 code unit also in large objects', () => {
    const keys = Array.from({ length: 100 }, (_, index) => `k${(index * 37) % 100}`);
    const value = Object.fromEntries(keys.map((key) => [key, 0]));
    expect(Object.keys(JSON.parse(canonicalJson(value)))).toEqual(keys.toSorted());
  });
});

const cyclic: Record<string, unknown> = { name: 'loop' };
cyclic.self = cyclic;
class Invoice {
  total = 1;
}
class Rows extends Array {}

const refused: readonly (readonly [name: string, value: unknown, kind: RegExp, next: RegExp])[] = [
  ['NaN', Number.NaN, /is NaN/, /null/],
  ['Infinity', Number.POSITIVE_INFINITY, /is Infinity/, /null/],
  ['-Infinity', Number.NEGATIVE_INFINITY, /is -Infinity/, /null/],
  ['a BigInt', 10n, /is a BigInt/, /toString\(\)/],
  ['a function', () => 1, /is a function/, /Leave it out/],
  ['a class', Invoice, /is a function/, /Leave it out/],
  ['a symbol', Symbol('s'), /is a symbol/, /description/],
  ['a Map', new Map([['a', 1]]), /is a Map/, /Object\.fromEntries/],
  ['a Set', new Set([1]), /is a Set/, /\[\.\.\.set\]/],
  ['a Date', new Date(0), /is a Date/, /date\.toISOString\(\)/],
  ['a RegExp', /x/, /is a RegExp/, /source/],
  ['a URL', new URL('https://x.example'), /is a URL/, /href/],
  ['a Promise', Promise.resolve(), /is a Promise/, /Await/],
  ['an Error', new Error('x'), /is an Error/, /message/],
  ['a typed array', new Uint8Array(2), /is a typed array/, /base64/],
  ['a Buffer', Buffer.from('x'), /is a typed array/, /base64/],
  ['a DataView', new DataView(new ArrayBuffer(1)), /is a DataView/, /base64/],
  ['an ArrayBuffer', new ArrayBuffer(1), /is an ArrayBuffer/, /base64/],
  ['a boxed number', Object(1), /is a boxed primitive/, /valueOf/],
  ['a boxed string', Object('a'), /is a boxed primitive/, /valueOf/],
  ['a boxed BigInt', Object(1n), /is a boxed primitive/, /valueOf/],
  ['a class instance', new Invoice(), /is an instance of Invoice/, /plain object/],
  ['an instance without a name', new (class {})(), /is an instance of a class/, /plain object/],
  ['an object of an object', Object.create({ a: 1 }), /is an instance of/, /plain object/],
  ['a subclass of Array', Rows.from([1]), /is an instance of Rows/, /plain object/],
  ['an object with toJSON', { a: 1, toJSON: () => 1 }, /has its own toJSON/, /toJSON\(\) returns/],
  ['a lone surrogate', 'a\ud800', /lone surrogate/, /toWellFormed/],
  ['a lone low surrogate', '\udc00b', /lone surrogate/, /toWellFormed/],
];

describe('what is refused', () => {
  test.each(refused)('%s is named with its path and what to do', (_, value, kind, next) => {
    const error = refusalOf({ items: [0, 1, 2, { when: value }] });
    expect(error.path).toBe('args.items[3].when');
    expect(error.message).toMatch(/^args\.items\[3\]\.when /);
    expect(error.message).toMatch(kind);
    expect(error.correctiveAction).toMatch(next);
  });

  test.each(refused)('%s is refused at any depth', (_, value) => {
    const step = fc.oneof(fc.stringMatching(/^[a-z]{1,5}$/), fc.nat(4));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.jsonValue(), (steps, other) => {
        const tree = steps.reduceRight<unknown>(
          (inner, at) =>
            typeof at === 'number'
              ? [...Array(at).fill(other), inner, other]
              : { '0first': other, [at]: inner, '~last': other },
          value,
        );
        const path = steps.map((at) => (typeof at === 'number' ? `[${at}]` : `.${at}`)).join('');
        expect(refusalOf(tree).path).toBe(`args${path}`);
      }),
      { numRuns: 20 },
    );
  });

  test.each<readonly [string, unknown, string, RegExp]>([
    ['undefined itself', undefined, 'args', /is undefined/],
    ['undefined in an array', { a: [1, undefined] }, 'args.a[1]', /is undefined/],
    // biome-ignore lint/suspicious/noSparseArray: the hole is the subject
    ['a hole in an array', { a: [1, , 2] }, 'args.a[1]', /is a hole/],
    ['an array of nothing but holes', new Array(4e9), 'args[0]', /is a hole/],
    ['a named member of an array', Object.assign([1], { extra: 1 }), 'args.extra', /named member/],
    // biome-ignore lint/suspicious/noSparseArray: the hole is the subject
    ['a hole beside a named member', Object.assign([, 1], { extra: 1 }), 'args[0]', /is a hole/],
    ['a symbol as a key', { a: { [Symbol('tag')]: 1 } }, 'args.a[Symbol(tag)]', /keyed by a symbol/],
    ['a cycle', { list: [cyclic] }, 'args.list[0].self', /refers back/],
    ['a lone surrogate in a key', { a: { '\ud800': 1 } }, 'args.a["\\ud800"]', /lone surrogate/],
    ['a key that is no name', { 'due date': 1n }, 'args["due date"]', /BigInt/],
    ['an empty key', { '': 1n }, 'args[""]', /BigInt/],
  ])('%s', (_, value, path, kind) => {
    const error = refusalOf(value);
    expect(error.path).toBe(path);
    expect(error.message).toMatch(kind);
  });

  test('a long key is cut in the path', () => {
    expect(refusalOf({ ['k'.repeat(5000)]: 1n }).path?.length).toBeLessThan(100);
  });

  test('a getter that throws is named, with its error as the cause', () => {
    const cause = new Error('gone');
    const value = {
      a: {
        get b(): never {
          throw cause;
        },
      },
    };
    const error = refusalOf(value);
    expect(error.path).toBe('args.a.b');
    expect(error.message).toMatch(/threw when it was read/);
    expect(error.cause).toBe(cause);
  });

  test('a revoked proxy is named', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusalOf({ a: [proxy] }).path).toBe('args.a[0]');
  });

  test('nesting beyond the limit, and not at it', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    expect(canonicalJson(nested(64))).toHaveLength(129);
    expect(refusalOf(nested(65)).message).toMatch(/deeper than 64 levels/);
    expect(refusalOf(nested(3), { maxDepth: 2 }).path).toBe('args[0][0]');
  });

  test('text beyond the limit, and not at it', () => {
    expect(canonicalJson('x'.repeat(8), { maxBytes: 10 })).toHaveLength(10);
    expect(refusalOf('x'.repeat(9), { maxBytes: 10 }).message).toMatch(/more than 10 characters/);
    expect(refusalOf({ blob: 'x'.repeat(1_048_576) }).path).toBe('args.blob');
  });

  test('a small graph that expands to an endless text is cut short', () => {
    let value: unknown = 'x';
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(refusalOf(value).message).toMatch(/more than 1048576 characters/);
  });

  test('the root of the path is the caller’s word', () => {
    expect(refusalOf({ a: 1n }, { path: 'options.key' }).path).toBe('options.key.a');
  });
});

const wellFormed = fc.string({ unit: 'binary', maxLength: 8 });
const anyJson = fc.jsonValue({ stringUnit: 'binary' });

/** Few names and few values, so that two draws are often near each other and sometimes equal. */
const nearJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<unknown>(null, 0, 1, -1, '', '0', 'a', 'null', '{}', '[]', '"', '\\', ',', true, false),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', '1', '10', '__proto__', '', '"', ','), tie('value'), {
      maxKeys: 3,
    }),
  ),
})).value;

function shuffled(value: unknown, seed: { next: () => number }): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, seed));
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value)
    .map(([key, member]) => ({ key, member, at: seed.next() }))
    .sort((a, b) => a.at - b.at);
  const copy = {};
  for (const { key, member } of members) {
    Object.defineProperty(copy, key, {
      value: shuffled(member, seed),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return copy;
}

describe('for every value', () => {
  test('the order of members never matters', () => {
    fc.assert(
      fc.property(fc.oneof(anyJson, nearJson), fc.infiniteStream(fc.integer()), (value, order) => {
        const seed = { next: () => order.next().value as number };
        expect(canonicalJson(shuffled(value, seed))).toBe(canonicalJson(value));
      }),
    );
  });

  test('two texts are equal exactly when the values are', () => {
    let met = 0;
    fc.assert(
      fc.property(nearJson, nearJson, (a, b) => {
        const equal = sameJson(a, b);
        if (equal) met++;
        expect(canonicalJson(a) === canonicalJson(b)).toBe(equal);
      }),
      { numRuns: 5000 },
    );
    expect(met).toBeGreaterThan(0);
  });

  test('the text parses back to the value', () => {
    fc.assert(
      fc.property(fc.oneof(anyJson, nearJson), (value) => {
        expect(sameJson(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)))).toBe(true);
      }),
    );
  });

  test('canonical text is a fixed point', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test('strings are written as JSON.stringify writes them', () => {
    fc.assert(
      fc.property(wellFormed, (text) => {
        expect(canonicalJson(text)).toBe(JSON.stringify(text));
      }),
    );
    for (let unit = 0; unit <= 0xffff; unit++) {
      const text = String.fromCharCode(unit);
      if (text.isWellFormed() && canonicalJson(text) !== JSON.stringify(text))
        assert.fail(`U+${unit.toString(16)}`);
    }
  });
});

/** Equality by JSON's own terms, written without the help of anything that serialises. */
function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.keys(a);
  if (left.length !== Object.keys(b).length) return false;
  return left.every(
    (key) =>
      Object.hasOwn(b, key) &&
      sameJson((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}
