// Identity is what the schema gives out: a constant default is left out of the key, a value that depends on other args
// never is.

import { randomUUID } from 'node:crypto';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { quick, rig } from './support.ts';

const base = { name: 'refund', effect: 'write-non-idempotent', per: 'ever' } as const;

// biome-ignore lint/suspicious/noExplicitAny: the point is to pass schemas of every vendor
type Any = any;

/** Runs the calls through one tool: the keys, how often it ran, and what the callers got. */
async function play(definition: object, calls: readonly unknown[]) {
  const { semel, warnings } = rig();
  const ran: unknown[] = [];
  const run = (args: unknown) => {
    ran.push(args);
    return args;
  };
  const tool = semel.tool({ ...base, run, ...definition } as Any) as Any;
  const results: Any[] = [];
  for (const args of calls) results.push(await tool.try(args));
  const keys = results.map(({ receipt }) => receipt.key as string);
  return { keys, count: new Set(keys).size, ran, results, warnings };
}

const order = z.object({ order: z.string(), paymentId: z.string().optional() });
const derived = order.transform((o) => ({ ...o, paymentId: o.paymentId ?? `pay_${o.order}` }));

describe('a value that is made of other args', () => {
  test.each<[string, object, unknown, unknown]>([
    ['by a transform', { input: derived, identity: ['paymentId'] }, { order: '1' }, { order: '2' }],
    [
      'by a transform, where its source is content',
      { input: derived, content: ['order'] },
      { order: '1' },
      { order: '2' },
    ],
    [
      'by an alias that is stripped',
      {
        input: z.preprocess(
          (o: Any) => ({ paymentId: o.paymentId ?? o.payment_id, reason: o.reason }),
          z.object({ paymentId: z.string().default('none'), reason: z.string().default('none') }),
        ),
        identity: ['paymentId'],
      },
      { payment_id: 'p1' },
      { payment_id: 'p2' },
    ],
    [
      'by what kind another arg is of, where the schema makes them equal',
      {
        input: z
          .object({ to: z.union([z.string(), z.array(z.string()).min(1)]), mode: z.string().optional() })
          .transform(({ to, mode }) => ({
            to: [to].flat(),
            mode: mode ?? (Array.isArray(to) ? 'batch' : 'single'),
          })),
      },
      { to: 'bob' },
      { to: ['bob'] },
    ],
    [
      'by what another arg looks like, where the schema makes them equal',
      {
        input: z
          .object({
            to: z.union([z.object({ email: z.string() }), z.object({ phone: z.string() })]),
            via: z.string().optional(),
          })
          .transform(({ to, via }) => ({
            to: 'email' in to ? to.email : to.phone,
            via: via ?? ('email' in to ? 'mail' : 'sms'),
          })),
      },
      { to: { email: 'bob' } },
      { to: { phone: 'bob' } },
    ],
    [
      'by an alias that stays',
      {
        input: z.preprocess(
          (o: Any) => ({ ...o, paymentId: o.paymentId ?? o.payment_id }),
          z.looseObject({ paymentId: z.string() }),
        ),
        identity: ['paymentId'],
      },
      { payment_id: 'p1' },
      { payment_id: 'p2' },
    ],
    [
      'of a required enum, which no free text can replace',
      {
        input: z
          .object({ kind: z.enum(['eu', 'us']), region: z.string().optional() })
          .transform((o) => ({ ...o, region: o.region ?? o.kind })),
        identity: ['region'],
      },
      { kind: 'eu' },
      { kind: 'us' },
    ],
    [
      'of a text with a form that semel cannot guess',
      {
        input: z
          .object({ order: z.string().regex(/^(EU|US)-\d{4}$/), region: z.string().optional() })
          .transform((o) => ({ ...o, region: o.region ?? o.order.slice(0, 2) })),
        identity: ['region'],
      },
      { order: 'EU-0001' },
      { order: 'US-0001' },
    ],
    [
      'of the length of a text',
      {
        input: z.object({ text: z.string() }).transform(({ text }) => ({ text, size: text.length })),
        identity: ['size'],
      },
      { text: 'abc' },
      { text: 'abcd' },
    ],
    [
      'of a flag',
      {
        input: z.object({ vip: z.boolean() }).transform((o) => ({ ...o, queue: o.vip ? 'fast' : 'slow' })),
        identity: ['queue'],
      },
      { vip: true },
      { vip: false },
    ],
    [
      'of a member of an object',
      {
        input: z
          .object({ customer: z.object({ id: z.string(), name: z.string() }) })
          .transform((o) => ({ ...o, ref: `c-${o.customer.id}` })),
        identity: ['ref'],
      },
      { customer: { id: '1', name: 'Ann' } },
      { customer: { id: '2', name: 'Ann' } },
    ],
    [
      'of the items of a list',
      {
        input: z
          .object({ items: z.array(z.object({ sku: z.string() })).min(1) })
          .transform((o) => ({ ...o, first: o.items[0]?.sku })),
        identity: ['first'],
      },
      { items: [{ sku: 'a' }] },
      { items: [{ sku: 'b' }] },
    ],
    [
      'in a nested object',
      {
        input: z
          .object({ order: z.string(), target: z.object({ id: z.string().optional() }) })
          .transform((o) => ({ ...o, target: { id: o.target.id ?? `t_${o.order}` } })),
        identity: ['target.id'],
      },
      { order: '1', target: {} },
      { order: '2', target: {} },
    ],
    [
      'by the branch of a union',
      {
        input: z.discriminatedUnion('kind', [
          z.object({ kind: z.literal('card'), via: z.string().default('stripe') }),
          z.object({ kind: z.literal('bank'), via: z.string().default('sepa') }),
        ]),
        identity: ['via'],
      },
      { kind: 'card' },
      { kind: 'bank' },
    ],
    [
      'by the branch of a union whose branches want other args',
      {
        input: z.discriminatedUnion('kind', [
          z.object({ kind: z.literal('card'), card: z.string(), via: z.string().default('stripe') }),
          z.object({ kind: z.literal('bank'), iban: z.string(), via: z.string().default('sepa') }),
        ]),
        identity: ['via'],
      },
      { kind: 'card', card: 'x' },
      { kind: 'bank', iban: 'x' },
    ],
    [
      'by the branch of a variant of valibot',
      {
        input: v.variant('kind', [
          v.object({ kind: v.literal('card'), card: v.string(), via: v.optional(v.string(), 'stripe') }),
          v.object({ kind: v.literal('bank'), iban: v.string(), via: v.optional(v.string(), 'sepa') }),
        ]),
        identity: ['via'],
      },
      { kind: 'card', card: 'x' },
      { kind: 'bank', iban: 'x' },
    ],
    [
      'by which of two args is given',
      {
        input: z
          .union([
            z.object({ order: z.string(), email: z.string() }),
            z.object({ order: z.string(), phone: z.string() }),
          ])
          .transform((o) => ({ ...o, channel: 'email' in o ? 'mail' : 'sms' })),
        identity: ['order', 'channel'],
      },
      { order: '1', email: 'ann@example.com' },
      { order: '1', phone: '+14155550123' },
    ],
    [
      'by which of two optional args is given',
      {
        input: z
          .object({ email: z.string().optional(), phone: z.string().optional(), via: z.string().optional() })
          .refine((o) => o.email ?? o.phone)
          .transform((o) => ({ ...o, via: o.via ?? (o.email === undefined ? 'sms' : 'mail') })),
        identity: ['via'],
      },
      { email: 'ann@example.com' },
      { phone: '+14155550123' },
    ],
    [
      'by valibot',
      {
        input: v.pipe(
          v.object({ order: v.string(), paymentId: v.optional(v.string()) }),
          v.transform((o) => ({ ...o, paymentId: o.paymentId ?? `pay_${o.order}` })),
        ),
        identity: ['paymentId'],
      },
      { order: '1' },
      { order: '2' },
    ],
    [
      'by arktype',
      {
        input: type({ order: 'string', 'paymentId?': 'string' }).pipe((o) => ({
          ...o,
          paymentId: o.paymentId ?? `pay_${o.order}`,
        })),
        identity: ['paymentId'],
      },
      { order: '1' },
      { order: '2' },
    ],
    [
      'by a schema that looks it up',
      {
        input: order.transform(async (o) => ({
          ...o,
          paymentId: o.paymentId ?? (await Promise.resolve(`pay_${o.order}`)),
        })),
        identity: ['paymentId'],
      },
      { order: '1' },
      { order: '2' },
    ],
    [
      'by a schema that throws for what it does not know',
      {
        input: order.transform((o) => {
          if (!/^[12]$/.test(o.order)) throw new Error('no such order');
          return { ...o, paymentId: o.paymentId ?? `pay_${o.order}` };
        }),
        identity: ['paymentId'],
      },
      { order: '1' },
      { order: '2' },
    ],
  ])('is identity: %s', async (_name, definition, one, other) => {
    const { count, ran, results } = await play(definition, [one, other, one]);
    expect(count).toBe(2);
    expect(ran).toHaveLength(2);
    expect(results.map(({ value }) => value)).toEqual([ran[0], ran[1], ran[0]]);
  });

  test('is the same intent whether it is given or made', async () => {
    const both = z.object({ a: z.string().optional(), b: z.string().optional() });
    const input = both.transform(({ a, b }) => ({ a: a ?? b?.slice(1), b: b ?? `b${a}` }));
    const { count } = await play({ input }, [{ a: '1' }, { a: '1', b: 'b1' }, { b: 'b1' }]);
    expect(count).toBe(1);
    const other = await play({ input }, [
      { a: '1', b: 'b1' },
      { a: '2', b: 'b2' },
    ]);
    expect(other.count).toBe(2);
    const given = await play({ input: derived, identity: ['paymentId'] }, [
      { order: '1' },
      { order: '9', paymentId: 'pay_1' },
    ]);
    expect(given.count).toBe(1);
  });
});

describe('equal outputs are one intent, however they came about', () => {
  const urgency = (...words: [string, ...string[]]) =>
    z
      .object({ id: z.string(), urgency: z.enum(words) })
      .transform((o) => ({ ...o, channel: o.urgency === 'high' ? 'sms' : 'mail' }));

  test.each<[string, object, readonly unknown[]]>([
    [
      'made of an enum',
      { input: urgency('low', 'high', 'normal'), identity: ['id', 'channel'] },
      [
        { id: '1', urgency: 'low' },
        { id: '1', urgency: 'normal' },
      ],
    ],
    [
      'made of a number, which may be one that semel tries',
      {
        input: z
          .object({ id: z.string(), n: z.number().positive() })
          .transform((o) => ({ ...o, isLarge: o.n > 5 })),
        identity: ['id', 'isLarge'],
      },
      [
        { id: '1', n: 1 },
        { id: '1', n: 2 },
      ],
    ],
    [
      'by an alias, which may hold a value that semel tries',
      {
        input: z.preprocess(
          (o: Any) => ({ ...o, order: o.order ?? o.order_id, order_id: undefined }),
          z.object({ order: z.number(), priority: z.string().default('normal') }),
        ),
      },
      [{ order: 0 }, { order_id: 0 }, { order_id: 0, priority: 'normal' }],
    ],
    [
      'given beside an arg of which it would be made otherwise',
      {
        input: z
          .object({ id: z.string(), vip: z.boolean().optional(), queue: z.string().optional() })
          .transform((o) => ({ ...o, queue: o.queue ?? (o.vip ? 'fast' : 'slow') })),
        identity: ['id', 'queue'],
      },
      [{ id: '1' }, { id: '1', vip: true, queue: 'slow' }],
    ],
    [
      'given because another arg asks for it',
      {
        input: z
          .object({ to: z.string(), sms: z.boolean().optional(), tpl: z.string().optional() })
          .refine((o) => !o.sms || o.tpl !== undefined, { path: ['tpl'] })
          .transform((o) => ({ ...o, tpl: o.tpl ?? 'plain' })),
        identity: ['to', 'tpl'],
      },
      [{ to: 'a' }, { to: 'a', sms: true, tpl: 'plain' }],
    ],
    [
      'made of list items with a default that may be given',
      {
        input: z
          .object({ items: z.array(z.object({ sku: z.string(), n: z.number().default(1) })).min(1) })
          .transform(({ items }) => ({ items, total: items.reduce((sum, { n }) => sum + n, 0) })),
      },
      [{ items: [{ sku: 'a' }] }, { items: [{ sku: 'a', n: 1 }] }],
    ],
    ...(
      [
        [
          'zod',
          z.object({
            id: z.string(),
            opts: z.object({ lang: z.string().default('en') }).default({ lang: 'en' }),
          }),
        ],
        [
          'valibot',
          v.object({
            id: v.string(),
            opts: v.optional(v.object({ lang: v.optional(v.string(), 'en') }), {}),
          }),
        ],
        ['arktype', type({ id: 'string', opts: type({ lang: 'string = "en"' }).default(() => ({})) })],
      ] as [string, Any][]
    ).map(([vendor, input]): [string, object, unknown[]] => [
      `in an object that may be left out as a whole: ${vendor}`,
      { input },
      [{ id: 'a' }, { id: 'a', opts: {} }, { id: 'a', opts: { lang: 'en' } }],
    ]),
    [
      'in an object that is filled in otherwise than its members are',
      {
        input: z.object({
          id: z.string(),
          opts: z.object({ lang: z.string().default('en') }).prefault({ lang: 'de' }),
        }),
      },
      [{ id: 'a' }, { id: 'a', opts: { lang: 'de' } }],
    ],
    [
      'beside an arg of another kind',
      {
        input: z.object({
          id: z.string(),
          level: z.union([z.literal('low'), z.literal(1)]),
          lang: z.string().default('en'),
        }),
        identity: ['id', 'lang'],
      },
      [
        { id: 'a', level: 'low' },
        { id: 'a', level: 1, lang: 'en' },
      ],
    ],
    [
      'in an object that may be given as a text',
      {
        input: z.object({
          id: z.string(),
          to: z
            .union([
              z.string().transform((name) => ({ name, lang: 'en' })),
              z.object({ name: z.string(), lang: z.string().default('en') }),
            ])
            .optional(),
        }),
      },
      [
        { id: 'a', to: 'bob' },
        { id: 'a', to: { name: 'bob' } },
      ],
    ],
    [
      'in a nested object, beside an optional one',
      {
        input: z.object({
          c: z.object({ id: z.string(), tier: z.string().default('std') }),
          o: z.object({ y: z.string().optional() }).optional(),
        }),
        identity: ['c'],
      },
      [{ c: { id: 'a' } }, { c: { id: 'a' }, o: { y: '' } }, { c: { id: 'a', tier: 'std' } }],
    ],
  ])('%s', async (_name, definition, calls) => {
    expect((await play(definition, calls)).count).toBe(1);
  });

  test('unless it is a Date, which no key can hold: that is refused', async () => {
    const input = z.object({
      customer: z.string(),
      day: z.date().default(() => new Date('2026-11-16T00:00:00Z')),
    });
    const { results, ran } = await play({ input }, [{ customer: 'c' }]);
    expect(results[0]).toMatchObject({ ok: false, error: { code: 'NOT_CANONICAL', path: 'args.day' } });
    expect(ran).toEqual([]);
    const volatile = { input, volatile: ['day'] };
    expect((await play(volatile, [{ customer: 'c' }])).ran).toHaveLength(1);
  });

  test.each<[string, (instant: Date) => unknown]>([
    ['an ISO date', (instant) => instant.toISOString().slice(0, 10)],
    ['its midnight as a text', (instant) => instant.toISOString()],
    [
      'its midnight in another zone',
      (instant) => new Date(instant.getTime() - 5.75 * 3_600_000).toISOString(),
    ],
    ['its midnight in milliseconds', (instant) => instant.getTime()],
    ['an American date', (instant) => instant.toLocaleDateString('en-US', { timeZone: 'UTC' })],
    ['a German date', (instant) => instant.toLocaleDateString('de', { timeZone: 'UTC' })],
    ['a date with its weekday', (instant) => new Date(instant.getTime() + 12 * 3_600_000).toDateString()],
    [
      'a date in words',
      (instant) => instant.toLocaleDateString('en', { dateStyle: 'full', timeZone: 'UTC' }),
    ],
    ['a weekday', (instant) => instant.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })],
    ['a short weekday', (instant) => instant.toLocaleDateString('en', { weekday: 'short', timeZone: 'UTC' })],
    [
      'a British date',
      (instant) => instant.toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' }),
    ],
  ])('on another day too, where the default is the day: %s', async (_name, written) => {
    const [monday, tuesday] = [new Date('2026-11-16T00:00:00Z'), new Date('2026-11-17T00:00:00Z')].map(
      written,
    );
    let today = monday;
    const input = z.object({ customer: z.string(), day: z.any().default(() => today) });
    const { semel } = rig();
    let ran = 0;
    const report = semel.tool({ ...base, input, run: () => ++ran });
    await report({ customer: 'c' });
    await report({ customer: 'c', day: today });
    today = tuesday;
    await report({ customer: 'c', day: monday });
    expect(ran).toBe(1);
    await report({ customer: 'c' });
    expect(ran).toBe(2);
  });
});

describe('a constant default', () => {
  const before = z.object({ id: z.string(), kind: z.enum(['a', 'b']), text: z.string() });

  test.each<[string, Any]>([
    ['beside content and an enum', before.extend({ channel: z.string().default('mail') })],
    [
      'before a transform of another field',
      before.extend({ channel: z.string().default('mail'), text: z.string().transform((t) => t.length) }),
    ],
    [
      'in a pipe',
      before.extend({ channel: z.string().default('mail') }).transform((o) => ({ ...o, made: o.id.length })),
    ],
    [
      'of an async schema',
      before.extend({
        channel: z
          .string()
          .default('mail')
          .refine(async () => true),
      }),
    ],
    [
      'of valibot',
      v.object({
        id: v.string(),
        kind: v.picklist(['a', 'b']),
        text: v.string(),
        channel: v.optional(v.string(), 'mail'),
      }),
    ],
    ['of arktype', type({ id: 'string', kind: "'a'|'b'", text: 'string', channel: "string = 'mail'" })],
  ])('changes no key: %s', async (_name, input) => {
    const identity = ['id', 'channel'];
    const args = { id: 'x', kind: 'b', text: 'hello' };
    const was = await play({ input: before, identity: ['id'] }, [args]);
    const now = await play({ input, identity }, [
      args,
      { ...args, channel: 'mail', text: 'other' },
      { ...args, channel: 'sms' },
    ]);
    expect(now.keys.slice(0, 2)).toEqual([was.keys[0], was.keys[0]]);
    expect(now.count).toBe(2);
  });

  test('inside an optional object changes no key either', async () => {
    const plain = z.object({ id: z.string(), opts: z.object({ a: z.number() }).optional() });
    const more = z.object({
      id: z.string(),
      opts: z.object({ a: z.number(), b: z.string().default('x') }).optional(),
    });
    const calls = [{ id: '1' }, { id: '1', opts: { a: 1 } }];
    expect((await play({ input: more }, calls)).keys).toEqual((await play({ input: plain }, calls)).keys);
  });

  test('inside an object that may also be given as a text stays in the key, and that is said', async () => {
    const named = z.object({ name: z.string(), lang: z.string().default('en') });
    const short = z.string().transform((name) => ({ name, lang: 'en' }));
    const input = z.object({ id: z.string(), to: z.union([short, named]) });
    const { keys, warnings } = await play({ input }, [{ id: '1', to: { name: 'bob' } }]);
    const whole = { id: '1', to: { name: 'bob', lang: 'en' } };
    expect(keys).toEqual((await play({ input: z.looseObject({}) }, [whole])).keys);
    expect(warnings.join()).toMatch(/`to` may also be something other than an object/);
  });

  test('of a nested identity field leaves no empty object in the key', async () => {
    const plain = z.object({ id: z.string(), customer: z.object({ name: z.string().optional() }) });
    const more = z.object({ id: z.string(), customer: z.object({ tier: z.string().default('basic') }) });
    const identity = ['id', 'customer.tier'];
    const was = await play({ input: plain, identity }, [{ id: '1', customer: {} }]);
    const now = await play({ input: more, identity }, [
      { id: '1', customer: {} },
      { id: '1', customer: { tier: 'basic' } },
    ]);
    expect(now.keys).toEqual([was.keys[0], was.keys[0]]);
  });

  test('stays in the key where semel cannot tell whether it depends on an arg, and that is said', async () => {
    const input = z.object({
      id: z.string(),
      sku: z.string().regex(/^SKU-\d{6}$/),
      channel: z.string().default('mail'),
    });
    const { semel, warnings } = rig();
    const tool = semel.tool({ ...base, input, identity: ['id', 'channel'], run: () => 1 });
    await tool({ id: '1', sku: 'SKU-000001' });
    await tool({ id: '2', sku: 'SKU-000001' });
    expect(warnings.filter((each) => each.includes('`sku`'))).toHaveLength(1);
  });

  test('is left out of the key of an earlier form too', async () => {
    const input = z.object({ id: z.string(), lang: z.string().default('en'), region: z.string() });
    const { semel, another } = rig();
    const old = semel.tool({ ...base, input, identity: ['id', 'lang'], run: () => 'old' });
    const was = [{ identity: ['id', 'lang'] }];
    const now = another().tool({ ...base, input, identity: ['id', 'region'], was, run: () => 'new' });
    await old({ id: '1', region: 'eu' });
    expect(await now({ id: '1', region: 'eu' })).toBe('old');
  });
});

describe('a default that is fresh for each call', () => {
  test.each<[string, Any]>([
    ['a UUID', z.object({ id: z.string().default(() => randomUUID()) })],
    ['an instant', z.object({ id: z.string().default(() => `${Date.now()}${Math.random()}`) })],
  ])('is refused where it is the whole identity: %s', async (_name, input) => {
    const { ran, results } = await play({ input }, [{}, {}]);
    expect(ran).toEqual([]);
    expect(results.map(({ error }) => error.code)).toEqual(['INVALID_ARGS', 'INVALID_ARGS']);
    const given = await play({ input, identity: ['id'] }, [{ id: 'a' }, { id: 'b' }, { id: 'a' }]);
    expect(given.count).toBe(2);
  });

  test('does not make a constant beside it look fresh', async () => {
    let ticks = 0;
    const input = z.object({
      to: z.string(),
      at: z.number().default(() => Math.floor(ticks++ / 3)),
      lang: z.string().default('en'),
    });
    const { count } = await play({ input }, [{ to: 'a' }, { to: 'a', lang: 'en' }, { to: 'a' }, { to: 'a' }]);
    expect(count).toBe(1);
  });
});

describe('a schema is tried out once for all args of one shape', () => {
  const fields = { to: 'a@semel.example', kind: 'full', amount: 3 };
  const vendors: Readonly<Record<string, Any>> = {
    zod: z.object({
      to: z.email(),
      kind: z.enum(['full', 'part']),
      amount: z.number().min(1),
      currency: z.enum(['EUR', 'USD']).default('EUR'),
      notify: z.boolean().default(true),
    }),
    valibot: v.object({
      to: v.pipe(v.string(), v.email()),
      kind: v.picklist(['full', 'part']),
      amount: v.number(),
      currency: v.optional(v.picklist(['EUR', 'USD']), 'EUR'),
      notify: v.optional(v.boolean(), true),
    }),
    arktype: type({
      to: 'string.email',
      kind: "'full' | 'part'",
      amount: 'number',
      currency: "'EUR' | 'USD' = 'EUR'",
      notify: 'boolean = true',
    }),
  };
  const calls = [
    fields,
    { ...fields, currency: 'EUR' },
    { ...fields, currency: 'EUR', notify: true },
    { ...fields, currency: 'USD' },
    { ...fields, currency: 'USD', notify: false },
    { ...fields, kind: 'part', notify: false },
    { ...fields, kind: 'part', notify: true, currency: 'EUR' },
  ];

  test.each(Object.keys(vendors))(
    'and then each call is one validation, two where it gives what has a default: %s',
    async (vendor) => {
      let validations = 0;
      const { validate } = vendors[vendor]['~standard'];
      const counted = (input: unknown) => {
        validations += 1;
        return validate(input);
      };
      const input = { '~standard': { version: 1, vendor, validate: counted } };
      const first = await play({ input }, calls);
      const keys = first.keys;
      expect([keys[1], keys[2]]).toEqual([keys[0], keys[0]]);
      expect(first.count).toBe(5);
      validations = 0;
      const again = await play(
        { input },
        calls.map((args) => ({ ...args, amount: 5 })),
      );
      expect(again.count).toBe(5);
      const overriding = calls.filter((args) => 'currency' in args || 'notify' in args);
      expect(validations).toBe(calls.length + overriding.length);
    },
  );

  test('and a default that depends on the time is read again, whenever it was learned', async () => {
    let today = '17.11.2026';
    const schema = () => z.object({ customer: z.string(), date: z.string().default(() => today) });
    const calls = [
      { customer: 'c' },
      { customer: 'c', date: '17.11.2026' },
      { customer: 'c', date: '18.11.2026' },
    ];
    const early = schema();
    expect((await play({ input: early }, calls)).count).toBe(2);
    today = '18.11.2026';
    const { keys, count } = await play({ input: early }, calls);
    expect(keys[2]).toBe(keys[0]);
    expect(count).toBe(2);
    // A process that was started today makes the same keys.
    expect((await play({ input: schema() }, calls)).keys).toEqual(keys);
  });

  test.each(Object.keys(vendors))('to the same keys, whichever call came first: %s', async (vendor) => {
    const fresh = () => ({ '~standard': { ...vendors[vendor]['~standard'] } });
    const forward = await play({ input: fresh() }, calls);
    const backward = await play({ input: fresh() }, calls.toReversed());
    expect(backward.keys.toReversed()).toEqual(forward.keys);
    for (const [index, args] of calls.entries())
      expect((await play({ input: fresh() }, [args])).keys).toEqual([forward.keys[index]]);
  });

  test('unless an arg selects other args: then its defaults stay in the key', async () => {
    const { semel, warnings } = rig();
    const input = z
      .object({ kind: z.enum(['card', 'bank']), iban: z.string().optional(), via: z.string().optional() })
      .superRefine(({ kind, iban }, ctx) => {
        if (kind === 'bank' && iban === undefined)
          ctx.addIssue({ code: 'custom', path: ['iban'], message: 'is missing' });
      })
      .transform((o) => ({ ...o, via: o.via ?? (o.kind === 'card' ? 'stripe' : 'sepa') }));
    const tool = semel.tool({ ...base, input, identity: ['via'], run: () => 1 }) as Any;
    for (const args of [{ kind: 'card' }, { kind: 'card', via: 'stripe' }]) {
      await tool(args);
      expect((await semel.keyOf(tool, args)).identity).toEqual({ via: 'stripe' });
    }
    expect(warnings.filter((each) => each.includes('`kind`'))).toHaveLength(1);
  });

  test('unless no constant fits: then a default is found for each call, given or not', async () => {
    const input = z.object({ sku: z.string().regex(/^SKU-\d{6}$/), channel: z.string().default('mail') });
    const { keys, count } = await play({ input }, [
      { sku: 'SKU-000001', channel: 'mail' },
      { sku: 'SKU-000001' },
      { sku: 'SKU-000001', channel: 'post' },
      { sku: 'SKU-000002' },
    ]);
    expect(keys[1]).toBe(keys[0]);
    expect(count).toBe(3);
  });

  test('whose kinds are part of it', async () => {
    const input = z
      .object({ id: z.union([z.string(), z.number()]), unit: z.string().optional() })
      .transform((o) => ({ ...o, unit: o.unit ?? (typeof o.id === 'number' ? 'piece' : 'box') }));
    const { keys, count } = await play({ input }, [
      { id: 1, unit: 'piece' },
      { id: 1 },
      { id: '1', unit: 'box' },
      { id: '1' },
      { id: '1', unit: 'piece' },
    ]);
    expect([keys[1], keys[3]]).toEqual([keys[0], keys[2]]);
    expect(count).toBe(3);
  });
});

test('an identity of which nothing is left is refused', async () => {
  const { results, ran } = await play({ content: ['amount.note'] }, [{ amount: { note: 'a' } }]);
  expect(results[0].error).toMatchObject({ code: 'INVALID_ARGS' });
  const unset = await play({ volatile: ['at'] }, [{ at: 1, id: undefined }]);
  expect(unset.results[0].error).toMatchObject({ code: 'INVALID_ARGS' });
  expect([...ran, ...unset.ran]).toEqual([]);
});

test('a read is not tried out: it has no identity', async () => {
  let asked = 0;
  const input = z.object({ q: z.string().refine(() => ++asked > 0), lang: z.string().default('en') });
  const search = quick().tool({ name: 'search', effect: 'read', input, run: ({ q }) => q });
  expect(await search({ q: 'x' })).toBe('x');
  expect(asked).toBe(1);
});

describe('args with thousands of members', () => {
  const many = (count: number, value: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`member${n}`, value]));

  /** How often the schema is asked, which is what takes the time. */
  function counted(schema: Any) {
    const { validate, ...standard } = schema['~standard'];
    const asked = { times: 0 };
    const count = (input: unknown) => {
      asked.times += 1;
      return validate(input);
    };
    return { asked, input: { '~standard': { ...standard, validate: count } } };
  }

  const strict = z.object({ order: z.string(), note: z.string().default('none') });

  test.each([
    ['that the schema strips', strict],
    ['that the schema lets through', z.looseObject(strict.shape)],
  ])('%s are left out in bulk', async (_, schema) => {
    const { asked, input } = counted(schema);
    const junk = many(3_000, 1);
    const calls = [{ order: '1' }, { order: '1', ...junk }, { order: '1', note: 'none', ...junk }];
    const { count } = await play({ input, identity: ['order', 'note'] }, calls);
    expect(count).toBe(1);
    expect(asked.times).toBeLessThan(300);
  });

  test('members of a record are left out in bulk', async () => {
    const { asked, input } = counted(z.object({ order: z.string(), by: z.record(z.string(), z.number()) }));
    await play({ input }, [{ order: '1', by: many(3_000, 1) }]);
    expect(asked.times).toBeLessThan(300);
  });

  test('members of the first item of a list are left out in bulk', async () => {
    const item = z.looseObject({ sku: z.string() });
    const { asked, input } = counted(z.object({ order: z.string(), items: z.array(item).min(1) }));
    await play({ input }, [{ order: '1', items: [{ sku: 'a', ...many(3_000, 1) }] }]);
    expect(asked.times).toBeLessThan(300);
  });

  test('those that cannot be left out are tried for a while only, and all of them count', async () => {
    const parts = z.object({
      total: z.number(),
      by: z.record(z.string(), z.number()),
      note: z.string().default('none'),
    });
    const sum = (by: Record<string, number>) => Object.values(by).reduce((a, b) => a + b, 0);
    const { asked, input } = counted(parts.refine(({ total, by }) => total === sum(by)));
    const by = many(3_000, 1);
    const calls = [
      { total: 3_000, by },
      { total: 3_000, by: { ...by, member0: 2, member1: 0 } },
    ];
    const { count, warnings } = await play({ input }, calls);
    expect(count).toBe(2);
    expect(asked.times).toBeLessThan(1_000);
    expect(warnings.join()).toMatch(/so many members that semel cannot tell/);
  });
});
