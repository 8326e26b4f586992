import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isSemelError } from '../errors.ts';
import { normalisers } from './normalise.ts';

type Name = keyof typeof normalisers;
const names = Object.keys(normalisers) as Name[];

const accepted: Readonly<Record<Name, readonly (readonly [given: unknown, normal: unknown])[]>> = {
  email: [
    ['ann@example.com', 'ann@example.com'],
    ['  Ann.Smith+Tag@Example.COM\n', 'ann.smith+tag@example.com'],
    ['A\u030ake@example.com', '\u00e5ke@example.com'],
    ['\u0130@example.com', 'i\u0307@example.com'],
  ],
  e164: [
    ['+442079460958', '+442079460958'],
    ['+44 20 7946-0958', '+442079460958'],
    ['0044 (20) 7946.0958', '+442079460958'],
    ['+44\u00a020\u20117946\u20130958', '+442079460958'],
    ['+1234567', '+1234567'],
    ['+123456789012345', '+123456789012345'],
  ],
  money: [
    [2000, '2000'],
    [20, '20'],
    ['20', '20'],
    ['20.0', '20'],
    ['20.00', '20'],
    [' 020.00 ', '20'],
    ['+20', '20'],
    [20n, '20'],
    [20.5, '20.5'],
    ['20.50', '20.5'],
    ['0.05', '0.05'],
    [0.05, '0.05'],
    [0, '0'],
    [-0, '0'],
    ['-0.00', '0'],
    ['00', '0'],
    ['-1.10', '-1.1'],
    ['100', '100'],
    ['1000000.000001', '1000000.000001'],
    [9007199254740991, '9007199254740991'],
    ['12345678901234567890.123456789012345678', '12345678901234567890.123456789012345678'],
  ],
  trim: [['  a b\u00a0', 'a b']],
  nfc: [['e\u0301', '\u00e9']],
  lower: [['ÀB c', 'àb c']],
};

const refused: Readonly<Record<Name, readonly unknown[]>> = {
  email: [
    '',
    'ann',
    'ann@',
    '@example.com',
    'ann@@example.com',
    'a b@example.com',
    'Ann <ann@example.com>',
    'a@b, c@d',
  ],
  e164: [
    '',
    '020 7946 0958',
    '+44 (0)20 7946 0958',
    '+44 ( 0 ) 20',
    '+0442079460958',
    '+123456',
    '+1234567890123456',
  ].concat(['+44 20 7946 0958 ext 1', '00', '+', '++442079460958', '+٤٤٢٠٧٩٤٦٠٩٥٨', '+44/20/79460958']),
  money: [
    '',
    '.',
    '20.',
    '.5',
    '1,000',
    '1.000,00',
    '1 000',
    '$20',
    '20 EUR',
    '1e3',
    '0x10',
    '--1',
    'NaN',
    '2.0.0',
    '0'.repeat(65),
  ].concat([Number.NaN, Number.POSITIVE_INFINITY, 0.1 + 0.2, 2 ** 53, 1e21, 1e-7] as never[]),
  trim: [],
  nfc: [],
  lower: [],
};

describe.each(names)('%s', (name) => {
  const normalise = normalisers[name];

  test.each(accepted[name])('makes %s the text %s', (given, normal) => {
    expect(normalise(given, 'args.to')).toBe(normal);
  });

  const others = [null, undefined, true, {}, [], new Date(0), Symbol('x'), name === 'money' ? {} : 7];
  test.each([...refused[name], ...others].map((value) => [value]))(
    'refuses case %#, and says where',
    (value) => {
      expect(() => normalise(value, 'args.to')).toThrow(
        expect.objectContaining({
          code: 'INVALID_ARGS',
          path: 'args.to',
          message: expect.stringMatching(/^args\.to .+\. (Pass|Write) /),
        }),
      );
    },
  );

  test('is idempotent', () => {
    const likely = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .tuple(fc.string({ unit: 'binary', minLength: 1 }), fc.string({ unit: 'binary' }))
        .map((parts) => parts.join('@')),
      fc.stringMatching(/^ ?(\+|00)[\d ().-]{5,20}$/),
      fc.stringMatching(/^ ?[+-]?\d{1,20}(\.\d{1,10})? ?$/),
      fc.double(),
      fc.integer(),
    );
    fc.assert(
      fc.property(likely, (value) => {
        let once: unknown;
        try {
          once = normalise(value, 'args.to');
        } catch (error) {
          assert(isSemelError(error, 'INVALID_ARGS'));
          return;
        }
        expect(normalise(once, 'args.to')).toBe(once);
      }),
      { numRuns: 1000 },
    );
  });
});

test('what was given is not repeated in the message: it may be somebody’s address', () => {
  for (const name of ['email', 'e164', 'money'] as const) {
    expect(() => normalisers[name]('secret-7719', 'args.to')).not.toThrow(/secret|7719/);
  }
});

test('every letter, with and without a mark, is folded once and for all', () => {
  const marks = ['', '\u0301', '\u0307', '\u030a', '\u0345'];
  for (let point = 0x80; point <= 0x1ffff; point++) {
    const letter = String.fromCodePoint(point);
    if (!/\p{L}/u.test(letter) || letter.toLowerCase() === letter) continue;
    for (const mark of marks) {
      const once = normalisers.email(`${letter}${mark}@x`, 'args.to');
      assert.equal(normalisers.email(once, 'args.to'), once);
      assert.equal(once, once.normalize('NFC'));
    }
  }
});

describe('money, for every amount', () => {
  test('leading and trailing zeros change nothing, another digit does', () => {
    const digits = fc.stringMatching(/^\d{1,12}$/);
    fc.assert(
      fc.property(digits, digits, fc.nat(4), fc.nat(4), (whole, fraction, before, after) => {
        const plain = normalisers.money(`${whole}.${fraction}`, 'args.amount');
        const padded = `${'0'.repeat(before)}${whole}.${fraction}${'0'.repeat(after)}`;
        expect(normalisers.money(padded, 'args.amount')).toBe(plain);
        expect(normalisers.money(`${whole}.${fraction}1`, 'args.amount')).not.toBe(plain);
        expect(normalisers.money(`1${'0'.repeat(12)}${whole}.${fraction}`, 'args.amount')).not.toBe(plain);
      }),
    );
  });

  test('a price as a number and as a text are one', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e9, max: 1e9 }), (cents) => {
        expect(normalisers.money(cents / 100, 'args.amount')).toBe(
          normalisers.money((cents / 100).toFixed(2), 'args.amount'),
        );
      }),
    );
  });
});

test.each(['email', 'nfc'] as const)('%s refuses a run of marks that would take minutes to sort', (name) => {
  const marks = '\u0301\u0316'.repeat(200_000);
  expect(() => normalisers[name](`a${marks}@example.com`, 'args.to')).toThrow(/combining marks in a row/);
  expect(normalisers[name](`a${'\u0316\u0301'.repeat(15)}@example.com`, 'args.to')).toContain('@example.com');
});
