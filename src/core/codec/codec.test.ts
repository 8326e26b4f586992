import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import vm from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isSemelError } from '../errors.ts';
import { decodeResult, type Encoded, encodeResult } from './codec.ts';

const limits = { maxBytes: 1_000_000 };

function textOf(value: unknown): string {
  const encoded = encodeResult(value, limits);
  assert(encoded.ok, encoded.ok ? '' : encoded.detail);
  return encoded.text;
}

function replay(value: unknown): unknown {
  return decodeResult(textOf(value));
}

function refusalOf(value: unknown, maxBytes = limits.maxBytes): Encoded & { ok: false } {
  const encoded = encodeResult(value, { maxBytes });
  assert(!encoded.ok, 'stored');
  return encoded;
}

const parsed = (text: string): unknown => JSON.parse(text);
const bare = (members: object): unknown => Object.assign(Object.create(null), members);

describe('plain JSON', () => {
  test.each([
    null,
    true,
    0,
    -1.5,
    1e21,
    '',
    'text',
    [],
    {},
    [1, [2]],
    { b: 1, a: { c: [null] } },
    '\ud800',
    '"$semel":',
  ])('is stored as JSON.stringify gives it: %j', (value) => {
    expect(textOf(value)).toBe(JSON.stringify(value));
    assert.deepStrictEqual(replay(value), value);
  });

  test('is stored as JSON.stringify gives it, whatever it holds', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const plain = parsed(JSON.stringify(value));
        expect(textOf(plain)).toBe(JSON.stringify(plain));
      }),
    );
  });

  test('an own __proto__ is plain JSON, and comes back as a member', () => {
    const value = parsed('{"__proto__":{"polluted":true},"a":1}');
    expect(textOf(value)).toBe('{"__proto__":{"polluted":true},"a":1}');
    assert.deepStrictEqual(replay(value), value);
  });
});

describe('what JSON would change', () => {
  const match = /(?<word>b+)/.exec('abbc');
  const values: readonly (readonly [name: string, value: unknown])[] = [
    ['undefined', undefined],
    ['undefined in an array', [undefined, 1]],
    ['undefined in an object', { a: undefined, b: 1 }],
    ['-0', -0],
    ['NaN', Number.NaN],
    ['Infinity', [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ['a BigInt', 123456789012345678901234567890n],
    ['a negative BigInt', { n: -1n }],
    ['a Date', new Date('2026-06-19T14:05:00.123Z')],
    ['a Date before the common era', new Date(-8.64e15)],
    ['an invalid Date', new Date(Number.NaN)],
    [
      'a Map',
      new Map<unknown, unknown>([
        ['a', new Date(0)],
        [{ k: 1 }, undefined],
        [Number.NaN, new Map()],
      ]),
    ],
    ['a Set', new Set<unknown>([1, 'a', undefined, new Set([1n])])],
    ['a RegExp', /a\/b"[\n]/giu],
    ['a RegExp under way', Object.assign(/a/g, { lastIndex: 3 })],
    ['a URL', new URL('https://user:pass@x.example:8080/a%20b?q=1#h')],
    ['a Buffer', Buffer.from('hello \0 world')],
    ['an empty Buffer', Buffer.alloc(0)],
    ['an ArrayBuffer', new Uint8Array([1, 2, 3]).buffer],
    ['a DataView', new DataView(new Uint8Array([1, 2, 3, 4]).buffer, 1, 2)],
    ['a part of a buffer', new Uint16Array(new Uint8Array([1, 2, 3, 4, 5, 6]).buffer, 2, 2)],
    [
      'typed arrays',
      [new Uint8Array([1]), new Uint8ClampedArray([2]), new Int8Array([-1]), new Int16Array([-2])],
    ],
    [
      'wide typed arrays',
      [new Uint32Array([1]), new Int32Array([-1]), new Float32Array([0.5, Number.NaN, -0])],
    ],
    [
      'the widest',
      [new Float64Array([Math.PI]), new BigInt64Array([-1n]), new BigUint64Array([2n ** 64n - 1n])],
    ],
    ['an Error', new Error('boom')],
    ['an Error without a message', new Error()],
    ['an Error with a cause', new TypeError('outer', { cause: new RangeError('inner', { cause: 1n }) })],
    ['an Error caused by undefined', new Error('x', { cause: undefined })],
    [
      'an Error with a code',
      Object.assign(new Error('no'), { code: 'ENOENT', errno: -2, extra: { at: new Date(0) } }),
    ],
    ['an Error with a name', Object.assign(new Error('no'), { name: 'HttpError', status: 404 })],
    ['an Error with a hidden name', Object.defineProperty(new Error('no'), 'name', { value: 'AbortError' })],
    ['an AggregateError', new AggregateError([new Error('a'), 'b'], 'all')],
    // biome-ignore lint/suspicious/noSparseArray: the holes are the subject
    ['a sparse array', [, 1, , undefined]],
    ['a long sparse array', Object.assign([], { 4294967294: 1 })],
    ['nothing but holes', new Array(3)],
    ['an array with named members', Object.assign([1, 2], { total: 2n })],
    // biome-ignore lint/suspicious/noSparseArray: the hole is the subject
    ['an array with as many holes as named members', Object.assign([, 1], { total: 2 })],
    ['a match of a regular expression', match],
    ['a null-prototype object', bare({ a: 1, b: bare({}) })],
    ['a null-prototype object with __proto__', JSON.parse('[{"__proto__":1}]').map(bare)],
    [
      'an object with __proto__ beside a tag',
      parsedWith('{"__proto__":{"x":1},"when":0}', { when: new Date(0) }),
    ],
    ['an object with __proto__ after a tag', { when: new Date(0), inner: parsed('{"__proto__":[]}') }],
    ['a shared reference', ((shared) => [shared, shared])({ a: new Date(1) })],
  ];
  test.each(values)('comes back deep-equal: %s', (_, value) => {
    assert.deepStrictEqual(replay(value), value);
  });

  test('stays readable', () => {
    expect(textOf({ at: new Date(0), n: 10n })).toBe(
      '{"at":{"$semel":"Date","value":"1970-01-01T00:00:00.000Z"},"n":{"$semel":"BigInt","value":"10"}}',
    );
    expect(textOf(undefined)).toBe('{"$semel":"undefined"}');
    expect(textOf([-0])).toBe('[{"$semel":"number","value":"-0"}]');
    expect(textOf(new Map([['a', 1]]))).toBe('{"$semel":"Map","value":[["a",1]]}');
  });

  test('the caller’s value is not touched', () => {
    const value = { list: [1, undefined], when: new Date(0), $semel: 'mine', error: new Error('x') };
    const before = structuredClone(value);
    textOf(value);
    assert.deepStrictEqual(value, before);
  });

  test('a Buffer comes back as a Buffer, and a slice without the rest of its memory', () => {
    expect(Buffer.isBuffer(replay(Buffer.from('x')))).toBe(true);
    const part = replay(new Uint8Array([1, 2, 3, 4]).subarray(1, 2)) as Uint8Array;
    expect(part.buffer.byteLength).toBe(1);
  });

  test('an Error keeps its class, hides what was hidden, and leaves its stack behind', () => {
    const error = new TypeError('boom', { cause: 1 });
    const again = replay(error) as Error;
    expect(again).toBeInstanceOf(TypeError);
    expect(again.stack).toBe('TypeError: boom');
    expect(Object.keys(again)).toEqual([]);
    expect(textOf(error)).not.toContain('codec.test');
  });

  test('data of another realm is data', () => {
    const value = vm.runInNewContext('({ a: [1, { b: undefined }] })');
    assert.deepStrictEqual(replay(value), { a: [1, { b: undefined }] });
  });

  test('a getter is stored by its value', () => {
    assert.deepStrictEqual(replay(Object.defineProperty({}, 'a', { get: () => 1n, enumerable: true })), {
      a: 1n,
    });
  });
});

function parsedWith(text: string, members: object): unknown {
  return Object.assign(parsed(text) as object, members);
}

describe('what looks like a tag', () => {
  test.each<unknown>([
    { $semel: 'Date', value: '1970-01-01T00:00:00.000Z' },
    { $semel: 'undefined' },
    { $semel: 'object', value: { $semel: 'Date', value: 1 } },
    { $semel: undefined },
    { $semel: { $semel: { $semel: 1 } } },
    [{ a: { $semel: 'nobody knows', value: [{ $semel: 1n }] } }],
    bare({ $semel: 'Set', value: [] }),
    new Map([[{ $semel: 'Map' }, { $semel: 'Map', value: [] }]]),
    Object.assign(new Error('x'), { $semel: 'Error', value: 1 }),
    Object.assign([1], { $semel: 'array', value: 1 }),
    '{"$semel":"Date","value":0}',
    { '"$semel":': '"$semel":' },
    { value: 1, Semel: 2, $Semel: 3 },
  ])('is the user’s data, and comes back as it was: %#', (value) => {
    assert.deepStrictEqual(replay(value), value);
  });

  test('its own text, stored as a result, comes back as text', () => {
    const text = textOf([new Date(0), { $semel: 1 }]);
    expect(replay(text)).toBe(text);
    assert.deepStrictEqual(replay(parsed(text)), parsed(text));
  });
});

class Invoice {
  total = 1;
}
class Rows extends Array {}
class HttpError extends Error {}
class Bytes extends Uint8Array {}
class When extends Date {}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

describe('what is not storable', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const cyclicError = new Error('x');
  cyclicError.cause = cyclicError;
  const cyclicMap = new Map<string, unknown>();
  cyclicMap.set('self', cyclicMap);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();

  const values: readonly (readonly [name: string, value: unknown, detail: RegExp, below?: string])[] = [
    ['a function', () => 1, /is a function/],
    ['a class', Invoice, /is a function/],
    ['a symbol', Symbol('x'), /is a symbol/],
    ['a Promise', Promise.resolve(1), /is a Promise/],
    ['a WeakMap', new WeakMap(), /is a WeakMap/],
    ['a WeakSet', new WeakSet(), /is a WeakSet/],
    ['a socket', new Socket(), /is an instance of Socket/],
    ['a class instance', new Invoice(), /is an instance of Invoice/],
    ['a subclass of Array', Rows.from([1]), /is an instance of Rows/],
    ['a subclass of Error', new HttpError('x'), /is an instance of HttpError/],
    ['a subclass of Uint8Array', new Bytes(1), /is a typed array/],
    ['a subclass of Date', new When(), /is an instance of When/],
    ['a boxed primitive', Object(1), /is a boxed primitive/],
    ['a generator', (function* () {})(), /is an instance of/],
    ['an imitation of a Date', Object.create(Date.prototype), /threw when it was read/],
    ['an imitation of a Map', Object.create(Map.prototype), /threw when it was read/],
    ['an object with a symbol as a key', { [Symbol('x')]: 1 }, /has a symbol as a key/],
    ['a Date with members of its own', Object.assign(new Date(0), { note: 1 }), /members of its own/],
    ['a Map with members of its own', Object.assign(new Map(), { note: 1 }), /members of its own/],
    ['a cycle', cyclic, /refers back/, '.self'],
    ['a cycle through a cause', cyclicError, /refers back/, '.shown.cause'],
    ['a cycle through a Map', cyclicMap, /refers back/, '[0][1]'],
    ['a revoked proxy', proxy, /threw when it was read/],
  ];
  test.for(values)('%s, with its path', ([, value, detail, below = '']) => {
    const path = `result.items[1].thing${below}`;
    const refusal = refusalOf({ items: [new Date(0), { thing: value }] });
    expect(refusal).toMatchObject({ reason: 'not-storable', path });
    expect(refusal.detail).toMatch(detail);
    expect(refusal.detail.startsWith(`${path} `)).toBe(true);
  });

  test('a revoked proxy by itself', () => {
    expect(refusalOf(proxy)).toMatchObject({ reason: 'not-storable', path: 'result' });
  });

  test('a toJSON is a function, even where JSON.stringify would have called it', () => {
    expect(refusalOf({ toJSON: () => 1 }).path).toBe('result.toJSON');
  });

  test('a getter that throws', () => {
    const value = Object.defineProperty({}, 'a', {
      get: () => {
        throw new Error('gone');
      },
      enumerable: true,
    });
    expect(refusalOf([value])).toMatchObject({ reason: 'not-storable', path: 'result[0].a' });
    expect(refusalOf(value)).toMatchObject({ reason: 'not-storable', path: 'result.a' });
  });

  test('nesting beyond 200 levels, but not at 200', () => {
    assert.deepStrictEqual(replay(nested(200)), nested(200));
    expect(refusalOf(nested(201)).detail).toMatch(/deeper than 200 levels/);
    expect(refusalOf(nested(1_000_000)).reason).toBe('not-storable');
  });
});

describe('what is too large', () => {
  test('is judged by bytes, and stored at the limit', () => {
    expect(encodeResult('é'.repeat(4), { maxBytes: 10 })).toEqual({ ok: true, text: '"éééé"' });
    expect(refusalOf('é'.repeat(4), 9)).toMatchObject({ reason: 'too-large', detail: 'more than 9 bytes' });
    expect(refusalOf(Buffer.alloc(1000), 1100).reason).toBe('too-large');
    expect(refusalOf({ long: 'x'.repeat(2000) }, 1000).reason).toBe('too-large');
    expect(refusalOf('\n'.repeat(600), 1000).reason).toBe('too-large');
  });

  test('a small graph that expands to an endless text is cut short', () => {
    let value: unknown = 1;
    for (let level = 0; level < 100; level++) value = [value, value];
    expect(refusalOf(value).reason).toBe('too-large');
  });
});

describe('a text that nobody here wrote', () => {
  test.each([
    '',
    '{',
    '{"$semel":"Invoice","value":{}}',
    '{"$semel":"constructor"}',
    '{"$semel":"Map","value":7}',
  ])('is reported as unreadable: %s', (text) => {
    expect(() => decodeResult(text)).toThrow(expect.objectContaining({ code: 'RESULT_OMITTED' }));
  });

  test('pollutes no prototype', () => {
    const members = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    const texts = [
      members,
      `{"$semel":"object","value":${members}}`,
      `{"$semel":"null-prototype","value":${members}}`,
      `{"$semel":"Error","value":{"__proto__":{"polluted":true},"shown":{"__proto__":{"polluted":true}}}}`,
      `{"$semel":"array","value":{"length":1,"entries":[["__proto__",{"polluted":true}]]}}`,
    ];
    for (const text of texts) {
      const value = decodeResult(text) as object;
      expect(Object.hasOwn(value, '__proto__')).toBe(true);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
      expect(([] as unknown as Record<string, unknown>).polluted).toBeUndefined();
    }
  });

  test('never ends in anything but a value or a SemelError', () => {
    const tagLike = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<unknown>(null, 0, -1, '', 'x', '9'),
        fc.record({ $semel: fc.constantFrom(...tags), value: tie('value') }),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('length', 'entries', 'shown', 'source', '__proto__'), tie('value')),
      ),
    })).value;
    fc.assert(
      fc.property(tagLike, (value) => {
        try {
          decodeResult(JSON.stringify(value));
        } catch (error) {
          assert(isSemelError(error, 'RESULT_OMITTED'));
        }
      }),
      { numRuns: 1000 },
    );
  });
});

const tags = [
  'undefined',
  'number',
  'BigInt',
  'object',
  'null-prototype',
  'array',
  'Date',
  'Map',
  'Set',
  'RegExp',
].concat([
  'URL',
  'ArrayBuffer',
  'Buffer',
  'DataView',
  'Uint8Array',
  'Float64Array',
  'Error',
  'AggregateError',
  'x',
]);

const anyText = fc.array(fc.nat(0xffff), { maxLength: 6 }).map((units) => String.fromCharCode(...units));
const anyKey = fc.oneof(
  anyText,
  fc.constantFrom('$semel', '__proto__', 'value', 'constructor', 'length', '0', '10', 'cause', 'name'),
);

const storable = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom<unknown>(
      null,
      undefined,
      true,
      -0,
      Number.NaN,
      Number.NEGATIVE_INFINITY,
      '$semel',
      ...tags,
    ),
    fc.double(),
    fc.bigInt(),
    anyText,
    fc.date({ noInvalidDate: false }),
    fc.webUrl().map((url) => new URL(url)),
    fc.constantFrom('', 'a/b', '[\\]"]', '(?<n>x)').map((source) => new RegExp(source, 'dgimsuy')),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.oneof(fc.uint8Array(), fc.int16Array(), fc.float32Array(), fc.float64Array(), fc.bigInt64Array()),
    fc.uint8Array().map((bytes) => bytes.buffer),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.sparseArray(tie('value'), { maxNumElements: 3, maxLength: 8 }),
    fc.dictionary(anyKey, tie('value'), { maxKeys: 4, noNullPrototype: false }),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => new Set(items)),
    fc
      .tuple(
        fc.constantFrom(Error, TypeError, SyntaxError),
        anyText,
        tie('value'),
        fc.dictionary(anyKey, tie('value')),
      )
      .map(([type, message, cause, members]) =>
        Object.defineProperties(new type(message, { cause }), shown(members)),
      ),
  ),
})).value;

function shown(members: Readonly<Record<string, unknown>>): PropertyDescriptorMap {
  const entries = Object.entries(members).filter(([key]) => key !== 'name' && key !== 'cause');
  const map: PropertyDescriptorMap = Object.create(null);
  for (const [key, value] of entries)
    map[key] = { value, enumerable: true, configurable: true, writable: true };
  return map;
}

describe('for every storable value', () => {
  test('a replay is deep-equal to the first answer', () => {
    fc.assert(
      fc.property(storable, (value) => {
        assert.deepStrictEqual(replay(value), value);
      }),
      { numRuns: 2000 },
    );
  });

  test('the text is well-formed Unicode, so that every store keeps it', () => {
    fc.assert(
      fc.property(storable, (value) => {
        expect(textOf(value).isWellFormed()).toBe(true);
      }),
    );
  });
});
