// The compiled identity text says what the general one says, to the byte, and refuses what that refuses.

import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FieldLists } from '../contract/fields.ts';
import { deriveIdentity, type LeftOut, type Normaliser, nothingLeftOut } from './identity.ts';
import { compileIdentity } from './identity-text.ts';

const limits = { maxDepth: 5, maxBytes: 200 };
const noNormalisers: Readonly<Record<string, Normaliser>> = {};

function told(text: () => string) {
  try {
    return { text: text() };
  } catch (error) {
    const { code, message, path, next } = error as Record<string, unknown>;
    return { code, message, path, next };
  }
}

function both(fields: FieldLists, args: unknown, leftOut: LeftOut, normalize = noNormalisers) {
  const compiled = compileIdentity(fields, normalize, limits);
  const general = told(() => deriveIdentity(args, fields, normalize, limits, leftOut));
  // Twice: the second time it has seen these names.
  for (const _ of [1, 2]) expect(told(() => compiled(args, leftOut))).toEqual(general);
  return general;
}

const names = [
  'a',
  'b',
  'id',
  'Z',
  'é',
  '"',
  '\ud83d\ude00',
  'a.b',
  'x.y',
  'toJSON',
  'constructor',
  '__proto__',
  '\ud800',
  '',
];
const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'id', 'Z') },
  fc.constantFrom(...names),
);
const leaf = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.constantFrom(
    '',
    '"',
    '\\',
    '\n',
    '\u2028',
    '\ud800',
    '\ue000',
    '\u007f',
    'x'.repeat(101),
    'x'.repeat(300),
  ),
  fc.double(),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, 1e21, Number.NaN, 1n, Symbol.iterator, () => 1),
  fc.constantFrom(new Date(0), new Map(), /x/, new URL('https://semel.example')),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    { weight: 6, arbitrary: leaf },
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3 }),
  ),
}));
const plain = fc.dictionary(name, value, { maxKeys: 5, noNullPrototype: true });
const unusual = fc.oneof(
  value,
  fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: false }),
  plain.map((members) => Object.assign(Object.create({ a: 'inherited' }), members)),
  plain.map((members) => ({ ...members, [Symbol('s')]: 1 })),
  plain.map((members) => Object.defineProperty({ ...members }, 'a', { get: () => 'got', enumerable: true })),
  plain.map((members) =>
    Object.defineProperty({ ...members }, 'b', {
      enumerable: true,
      get() {
        throw new Error('no');
      },
    }),
  ),
  plain.map((members) => Object.defineProperty({ ...members }, 'id', { value: 'hidden', enumerable: false })),
  plain.map((members) => runInNewContext('Object.assign({}, members)', { members })),
);
const args = fc.oneof({ weight: 3, arbitrary: plain }, { weight: 1, arbitrary: unusual });
const paths = fc.uniqueArray(name, { maxLength: 3 });
const fields: fc.Arbitrary<FieldLists> = fc.record({
  identity: fc.option(fc.uniqueArray(name, { minLength: 1, maxLength: 3 }), { nil: undefined }),
  content: paths,
  volatile: paths,
});
const steps = fc.array(fc.array(name, { minLength: 1, maxLength: 2 }), { maxLength: 2 });
const leftOut = fc.oneof(
  { weight: 2, arbitrary: fc.constant(nothingLeftOut) },
  fc.record({ constant: steps, fresh: steps }),
);

describe('compiled and general', () => {
  test('are one, whatever the args and the lists', () => {
    let texts = 0;
    const property = fc.property(fields, args, leftOut, (lists, given, left) => {
      if ('text' in both(lists, given, left)) texts += 1;
    });
    fc.assert(property, { numRuns: 5_000 });
    expect(texts).toBeGreaterThan(1_000);
  });

  test('are one with normalisers, and at the limits', () => {
    const lists = { identity: ['to'], content: [], volatile: [] };
    expect(both(lists, { to: ' Ann@X.org' }, nothingLeftOut, { to: 'email' })).toEqual({
      text: '{"to":"ann@x.org"}',
    });
    const all = { identity: undefined, content: [], volatile: [] };
    for (const size of [190, 191, 192, 193, 194]) both(all, { id: 'x'.repeat(size) }, nothingLeftOut);
    for (const depth of [1, 2, 3, 4, 5, 6]) {
      let deep: unknown = 1;
      for (let level = 0; level < depth; level += 1) deep = { deep };
      both(all, deep, nothingLeftOut);
    }
    const loop: Record<string, unknown> = { id: 1 };
    loop.self = loop;
    both(all, loop, nothingLeftOut);
  });

  test('are one where somebody has added to Object.prototype', () => {
    const lists = { identity: ['polluted', 'id'], content: [], volatile: [] };
    const compiled = compileIdentity(lists, noNormalisers, limits);
    Object.assign(Object.prototype, { polluted: 'x' });
    const texts = [compiled({ id: 1 }), deriveIdentity({ id: 1 }, lists, noNormalisers, limits)];
    Reflect.deleteProperty(Object.prototype, 'polluted');
    expect(texts).toEqual(['{"id":1}', '{"id":1}']);
  });

  test('names are taken from the current args, not from earlier ones', () => {
    const compiled = compileIdentity({ identity: undefined, content: ['text'], volatile: [] }, {}, limits);
    expect(compiled({ b: 1, a: 2, text: 'x' })).toBe('{"a":2,"b":1}');
    expect(compiled({ b: 1, c: 2, text: 'x' })).toBe('{"b":1,"c":2}');
    expect(compiled({ b: 1, c: undefined })).toBe('{"b":1}');
  });
});
