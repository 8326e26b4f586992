// Of any schema: two calls have one key if and only if what the schema gives out for their identity is equal.

import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineContract } from '../../src/core/contract/contract.ts';
import { deriveIdentity } from '../../src/core/key/identity.ts';
import { compileIdentity } from '../../src/core/key/identity-text.ts';
import { validateArgs } from '../../src/semel/calls/validation.ts';
import { type Chance, chanceOf } from '../processes/chance.ts';

// biome-ignore lint/suspicious/noExplicitAny: schemas of every kind
type Any = any;
/** A schema, and what may be given; undefined: nothing. */
type Arg = readonly [schema: z.ZodType, ...given: unknown[]];

const none = undefined;
const withDefault = z.object({ x: z.string().default('a') });
const currency = (name: string) => z.string().default(name);

const args: readonly Arg[] = [
  [z.string(), 'a', 'b', '', '5'],
  [z.string().min(1), 'a', 'b', '5'],
  [z.number(), 0, 1, 5, 1000],
  [z.string().optional(), none, 'a', ''],
  [z.string().default('a'), none, 'a', 'b'],
  [z.number().default(5), none, 5, 1, 0],
  [z.enum(['a', 'b', 'c']), 'a', 'b', 'c'],
  [z.enum(['a', 'b']).default('b'), none, 'a', 'b'],
  [z.string().nullable(), null, 'a', 'b'],
  [z.string().nullable().default('a'), null, none, 'a', 'b'],
  [
    z
      .string()
      .nullish()
      .transform((text) => text ?? 'none'),
    ...[null, none, 'a', 'none'],
  ],
  [z.coerce.number(), 5, '5', 1, '1', true],
  [z.coerce.number().default(5), none, 5, '5', 1, '1'],
  [z.string().catch('a'), none, 'a', 'b', 5],
  [z.stringbool().default(true), none, 'true', 'false', 'yes'],
  [z.literal('a').default('a'), none, 'a'],
  [z.union([z.literal('a'), z.literal(1)]), 'a', 1],
  [z.union([z.string(), z.number()]).transform(String), '5', 5, 1, '1'],
  [
    z.union([z.string(), z.array(z.string())]).transform((given) => [given].flat()),
    ...['a', ['a'], ['a', 'b'], 'b'],
  ],
  [z.string().startsWith('cus_').or(z.array(z.string()).min(1)), 'cus_1', ['cus_1'], 'cus_2'],
  [
    z
      .array(z.string())
      .min(1)
      .transform((list) => [...list].sort()),
    ...[['a'], ['a', 'b'], ['b', 'a']],
  ],
  [
    z.array(z.object({ x: z.string().default('a'), n: z.number() })).default([]),
    ...[none, [], [{ n: 1 }], [{ x: 'a', n: 1 }], [{ x: 'b', n: 1 }]],
  ],
  [z.record(z.string(), z.string()).default({}), none, {}, { a: 'b' }],
  [withDefault, {}, { x: 'a' }, { x: 'b' }],
  [withDefault.optional(), none, {}, { x: 'a' }, { x: 'b' }],
  [withDefault.default({ x: 'a' }), none, {}, { x: 'a' }, { x: 'b' }],
  [withDefault.prefault({ x: 'b' }), none, {}, { x: 'a' }, { x: 'b' }],
  [
    z.object({ x: z.object({ y: z.string().default('a') }).default({ y: 'b' }) }).default({ x: { y: 'c' } }),
    ...[none, {}, { x: {} }, { x: { y: 'a' } }, { x: { y: 'b' } }, { x: { y: 'c' } }],
  ],
  [
    z
      .union([z.string().min(1), z.object({ n: z.string() })])
      .transform((given) => (typeof given === 'string' ? given : given.n)),
    ...['a', { n: 'a' }, 'b', { n: 'b' }],
  ],
  [
    z.union([
      z
        .string()
        .min(1)
        .transform((n) => ({ n, x: 'a' })),
      z.object({ n: z.string(), x: z.string().default('a') }),
    ]),
    ...['a', { n: 'a' }, 'b', { n: 'b', x: 'a' }, { n: 'a', x: 'b' }],
  ],
  [
    z.preprocess((given) => (typeof given === 'string' ? JSON.parse(given) : given), withDefault).optional(),
    ...[none, '{}', {}, '{"x":"a"}', { x: 'a' }, { x: 'b' }, '{"x":"b"}'],
  ],
  [
    z
      .union([z.object({ email: z.string() }), z.object({ phone: z.string() })])
      .transform((to: Any) => to.email ?? to.phone),
    ...[{ email: 'a' }, { phone: 'a' }, { email: 'b' }],
  ],
  [
    z.discriminatedUnion('t', [
      z.object({ t: z.literal('a'), v: z.string(), c: currency('usd') }),
      z.object({ t: z.literal('b'), v: z.string(), c: currency('eur') }),
    ]),
    ...[
      { t: 'a', v: 'x' },
      { t: 'b', v: 'x' },
      { t: 'a', v: 'x', c: 'usd' },
      { t: 'b', v: 'x', c: 'usd' },
    ],
  ],
  [
    z.union([
      z.object({ v: z.string(), c: currency('usd') }),
      z.object({ w: z.string(), c: currency('eur') }),
    ]),
    ...[{ v: 'x' }, { w: 'x' }, { v: 'x', c: 'usd' }, { w: 'x', c: 'eur' }, { w: 'x', c: 'usd' }],
  ],
];

/** What is made of the other args, where it is not given. */
const makers: readonly ((args: Any) => Any)[] = [
  (o) => ({ ...o, made: o.made ?? (o.a === undefined ? 'without' : 'with') }),
  (o) => ({ ...o, made: o.made ?? typeof o.a }),
  (o) => ({ ...o, made: o.made ?? (o.a > 100 ? 'high' : 'low') }),
  (o) => ({ ...o, made: o.made ?? String(o.a) }),
  (o) => ({ ...o, made: o.made ?? String(o.b?.x ?? 'none') }),
  (o) => ({ ...o, made: o.made ?? (o.b == null ? 'no' : 'yes') }),
  (o) => ({ ...o, b: o.b ?? (o.a ? 'yes' : 'no') }),
  (o) => (o.a === undefined ? o : { ...o, made: o.made ?? 'x' }),
  (o) => ({
    ...o,
    made:
      o.made ??
      (typeof o.a === 'object'
        ? Object.keys(o.a ?? {})
            .sort()
            .join()
        : 'text'),
  }),
  ({ a, ...o }) => ({ ...o, made: o.made ?? a ?? 'none' }),
  ({ a, ...o }) => ({ ...o, made: o.made ?? (a === 'a' ? 'is' : 'not') }),
  ({ a, ...o }) => ({
    ...o,
    a: JSON.stringify(a ?? null).replace(/["[\]]/g, ''),
    made: o.made ?? (Array.isArray(a) ? 'list' : typeof a),
  }),
];

const identities = [none, none, ['a', 'made'], ['b', 'made'], ['a', 'b', 'made'], ['a', 'b']];
const limits = { maxDepth: 64, maxBytes: 1_000_000 };

function schemaOf(shape: Record<string, z.ZodType>, { pick, is }: Chance): z.ZodType {
  const object = pick([z.object, z.looseObject])(shape);
  if (is(0.2)) return object;
  const make = pick(makers);
  const more = { ...shape, made: z.string().optional() };
  if (is(0.3)) return z.preprocess(make, z.looseObject(more).partial());
  return z.looseObject(more).transform(make);
}

async function play(seed: number): Promise<void> {
  const random = chanceOf(seed);
  const { pick, is } = random;
  const chosen = ['a', 'b', 'c'].slice(0, 1 + random.whole(3)).map((name) => [name, pick(args)] as const);
  const schema = schemaOf(Object.fromEntries(chosen.map(([name, [arg]]) => [name, arg])), random);
  const identity = pick(identities);
  const content = identity === undefined && is(0.4) ? { content: [pick(['a', 'b'])] } : {};
  const contract = defineContract(
    {
      name: 'try',
      effect: 'write-non-idempotent',
      per: 'ever',
      ...(identity && { identity }),
      ...content,
    } as Any,
    { hasVerify: false, hasPrepare: false },
    {},
  );
  const text = compileIdentity(contract.fields, {}, limits);
  const seen: { readonly given: unknown; readonly made: string; readonly key: string }[] = [];
  for (let call = 0; call < 20; call += 1) {
    const given: Record<string, unknown> = {};
    for (const [name, [, ...values]] of is(0.5) ? chosen : chosen.toReversed()) {
      const value = pick(values);
      if (value !== undefined) given[name] = value;
    }
    if (is(0.3)) given.made = pick(['x', 'low', 'a', 'string', 'with', 'is', 'none']);
    let made: string;
    let key: string;
    try {
      const { args: out, leftOut } = await validateArgs(schema, given, contract);
      made = deriveIdentity(out, contract.fields, {}, limits);
      key = text(out, leftOut.get(contract.fields));
    } catch {
      // Refused: it has no key.
      continue;
    }
    for (const other of seen)
      if ((other.made === made) !== (other.key === key))
        expect.fail(`seed ${seed}: ${JSON.stringify([other, { given, made, key }], undefined, 1)}`);
    seen.push({ given, made, key });
  }
}

test('equal args have one key, and others another', async () => {
  for (let seed = 1; seed <= 600; seed += 1) await play(seed);
});
