// Which calls are one intent: fields, periods, earlier forms, deliberate repeats, callers' own keys.

import { runInNewContext } from 'node:vm';
import { type } from 'arktype';
import fc from 'fast-check';
import { day, hour, month, type SemelError, week } from 'semel';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { callerKey, deriveKey, providerKey } from '../../src/core/key/key.ts';
import vectors from './key-vectors.json' with { type: 'json' };
import { quick, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

// biome-ignore lint/suspicious/noExplicitAny: the point is to pass what the compiler would refuse
type Any = any;

/** How many different intents these calls are, and the keys. */
async function keysOf(definition: object, calls: readonly (readonly [unknown, object?])[]) {
  const semel = quick();
  const tool = semel.tool({ ...base, run: () => 'done', ...definition } as Any) as Any;
  const keys: string[] = [];
  for (const [args, options] of calls) {
    const result = await tool.try(args, options);
    if (!result.ok) throw result.error;
    keys.push(result.receipt.key);
  }
  return { keys, count: new Set(keys).size };
}

describe('fields', () => {
  test('without lists, all args are identity, in any order', async () => {
    const { count } = await keysOf({}, [[{ a: 1, b: 2 }], [{ b: 2, a: 1 }], [{ a: 1, b: 3 }], [{ a: 1 }]]);
    expect(count).toBe(3);
  });

  test('undefined is left out: adding an optional arg changes no key', async () => {
    const { count } = await keysOf({}, [[{ a: 1 }], [{ a: 1, b: undefined }], [{ a: 1, b: null }]]);
    expect(count).toBe(2);
  });

  test('with `identity`, all other fields are content', async () => {
    const calls = [[{ id: 1, text: 'a' }], [{ id: 1, text: 'b' }], [{ id: 2, text: 'a' }]] as const;
    expect((await keysOf({ identity: ['id'] }, calls)).count).toBe(2);
  });

  test('with `content` and `volatile`, all other fields are identity', async () => {
    const lists = { content: ['text'], volatile: ['at'] };
    const { count } = await keysOf(lists, [
      [{ id: 1, text: 'a', at: 1 }],
      [{ id: 1, text: 'b', at: 2 }],
      [{ id: 1, more: true }],
    ]);
    expect(count).toBe(2);
  });

  test('nested fields are named by paths', async () => {
    const amount = (minor: number, note: string) => [{ amount: { minor, note } }] as const;
    const calls = [amount(1, 'a'), amount(1, 'b'), amount(2, 'a')];
    expect((await keysOf({ identity: ['amount.minor'] }, calls)).count).toBe(2);
    expect((await keysOf({ content: ['amount.note'] }, calls)).count).toBe(2);
    expect((await keysOf({ volatile: ['amount.note'] }, calls)).count).toBe(2);
  });

  test('volatile fields may hold anything, identity fields only data', async () => {
    expect((await keysOf({ volatile: ['log'] }, [[{ id: 1, log: () => 1 }], [{ id: 1 }]])).count).toBe(1);
    await expect(keysOf({}, [[{ id: 1, log: () => 1 }]])).rejects.toMatchObject({ code: 'NOT_CANONICAL' });
  });

  test('normalisers merge spellings in identity fields', async () => {
    const normalize = { to: 'email', amount: 'money', name: (value: unknown) => String(value).toUpperCase() };
    const { count } = await keysOf({ normalize }, [
      [{ to: 'Ann@Example.com ', amount: '20.00', name: 'x' }],
      [{ to: 'ann@example.com', amount: 20, name: 'X' }],
    ]);
    expect(count).toBe(1);
  });

  test('a normaliser that cannot read its field names it', async () => {
    await expect(
      keysOf({ normalize: { 'who.mail': 'email' } }, [[{ who: { mail: 'ann' } }]]),
    ).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'args.who.mail',
    });
  });

  test('a name with a dot in it is found before the dot divides it', async () => {
    const calls = [[{ 'user.id': 1, x: 1 }], [{ 'user.id': 2, x: 1 }], [{ user: { id: 1 }, x: 1 }]] as const;
    expect((await keysOf({ identity: ['user.id', 'x'] }, calls)).count).toBe(3);
    expect((await keysOf({ volatile: ['user.id'] }, calls)).count).toBe(2);
  });

  test('a path with a dot prefers the field of that exact name to a nested one', async () => {
    const call = (text: string, id: number) => [{ x: 1, 'user.id': text, user: { id } }] as const;
    const calls = [call('a', 1), call('b', 1), call('a', 2)];
    for (const lists of [{ content: ['user.id'] }, { volatile: ['user.id'] }, { identity: ['x', 'user'] }])
      expect((await keysOf(lists, calls)).count).toBe(2);
    const { semel } = rig();
    const tool = semel.tool({ ...base, identity: ['x', 'user.id'], run: () => 1 } as Any) as Any;
    await tool({ x: 1, 'user.id': 'a', user: { id: 1 } });
    const { receipt } = await tool.try({ x: 1, 'user.id': 'a', user: { id: 2 } });
    expect(receipt).toMatchObject({ replayed: true, drift: ['user'] });
  });

  test('an identity field that is not in the args is warned about once', async () => {
    const { semel, warnings } = rig();
    const tool = semel.tool({ ...base, identity: ['orderID', 'amount'], run: () => 1 } as Any) as Any;
    await tool({ orderId: 1, amount: 5 });
    await tool({ orderId: 2, amount: 5 });
    expect(warnings.filter((each) => each.includes('`orderID`'))).toHaveLength(1);
    await tool({ orderID: 2, amount: undefined });
    expect(warnings.filter((each) => each.includes('`amount`'))).toEqual([]);
  });

  test.each(['content', 'markdown', 'html', 'draft', 'output', 'ts', 'idempotency_key'])(
    'the arg `%s` in a key is warned about once, unless the contract says what it is',
    async (field) => {
      const { semel, warnings } = rig();
      const tool = semel.tool({ ...base, run: () => 1 } as Any) as Any;
      await tool({ to: 'a', [field]: '1' });
      await tool({ to: 'a', [field]: '2' });
      const said = () => warnings.filter((each) => each.includes(`\`${field}\` is part of the identity`));
      expect(said()).toHaveLength(1);
      const named = semel.tool({ ...base, name: 'named', content: [field], run: () => 1 } as Any) as Any;
      await named({ to: 'a', [field]: '1' });
      expect(said()).toHaveLength(1);
    },
  );

  test('a normaliser that gives nothing is refused with its field', async () => {
    const normalize = { phone: (value: unknown) => (String(value).startsWith('+') ? value : undefined) };
    await expect(keysOf({ normalize }, [[{ phone: '030 1', text: 'x' }]])).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'args.phone',
    });
  });

  test('objects of another realm are plain objects', async () => {
    const foreign = () => runInNewContext('({ id: 1, at: Date.now(), user: { id: 2, name: "x" } })');
    const lists = { volatile: ['at', 'user.name'] };
    const calls = [[foreign()], [{ id: 1, at: 0, user: { id: 2, name: 'y' } }]] as const;
    expect((await keysOf(lists, calls)).count).toBe(1);
    expect((await keysOf({ ...lists, mode: 'observe' }, calls)).count).toBe(1);
  });

  test('args need not be an object', async () => {
    const calls = [['a'], [['a']], [1], [null], [true], ['1']] as const;
    expect((await keysOf({}, calls)).count).toBe(6);
  });

  test('a tool without args is one intent', async () => {
    expect((await keysOf({}, [[{}], [{}]])).count).toBe(1);
    await expect(keysOf({}, [[undefined]])).rejects.toMatchObject({ code: 'NOT_CANONICAL' });
  });

  test('a call without any of its identity fields is refused: every such call would be one', async () => {
    await expect(keysOf({ identity: ['id'] }, [[{ text: 'a' }]])).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      message: expect.stringMatching(/None of the identity fields.*`?id`?/),
    });
    await expect(keysOf({ volatile: ['a'] }, [[{ a: 1 }]])).rejects.toMatchObject({ code: 'INVALID_ARGS' });
  });
});

test('what the caller changes after the call changes neither its key nor its effect', async () => {
  const semel = quick();
  const sent: unknown[] = [];
  const definition = {
    ...base,
    run: (args: { to: { mail: string }; cc: string[] }) => sent.push(structuredClone(args)),
  };
  const tool = semel.tool(definition);
  const args = { to: { mail: 'ann' }, cc: ['x'] };
  const calls = [tool(args)];
  args.to.mail = 'bob';
  args.cc.push('y');
  calls.push(tool(args));
  await Promise.all(calls);
  expect(sent).toEqual(
    expect.arrayContaining([
      { to: { mail: 'ann' }, cc: ['x'] },
      { to: { mail: 'bob' }, cc: ['x', 'y'] },
    ]),
  );
});

test.each([
  ['many objects', () => ({ id: 1, rows: Array.from({ length: 120_000 }, () => ({ n: 1 })) })],
  [
    'deep ones',
    () => ({ id: 1, rows: Array.from({ length: 300 }).reduce<unknown>((row) => [row], { n: 1 }) }),
  ],
  [
    'one object in many places',
    () => {
      const shared = { n: 1 };
      return { id: 1, rows: Array.from({ length: 120_000 }, () => shared) };
    },
  ],
])('what the caller changes after the call changes no effect, also of %s', async (_name, make) => {
  const seen: string[] = [];
  const run = (args: Any) => void seen.push(JSON.stringify(args));
  const tool = quick().tool({ ...base, identity: ['id'], run } as Any) as Any;
  const args = make() as Any;
  const before = JSON.stringify(args);
  const call = tool(args);
  let last = args.rows;
  while (Array.isArray(last)) last = last.at(-1);
  last.n = 2;
  await call;
  expect(seen).toEqual([before]);
});

test('args of more objects than can be copied are refused', async () => {
  const rows = Array.from({ length: 500_001 }, () => []);
  const result = await (quick().tool({ ...base, identity: ['id'], run: () => 1 } as Any) as Any).try({
    id: 1,
    rows,
  });
  expect(result.error).toMatchObject({ code: 'INVALID_ARGS', path: 'args' });
});

test('args that are not plain are judged as they are', async () => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  const getter = Object.defineProperty({}, 'x', {
    enumerable: true,
    get: () => {
      throw new Error('mine');
    },
  });
  for (const [args, path] of [
    [loop, 'args.self'],
    [getter, 'args.x'],
    [{ a: Object.assign([1, 3], { length: 3 }) }, 'args.a[2]'],
    [{ [Symbol('s')]: 1 }, undefined],
  ] as const)
    await expect(keysOf({}, [[args]])).rejects.toMatchObject({
      code: 'NOT_CANONICAL',
      ...(path && { path }),
    });
  const proto = JSON.parse('{"__proto__": 1, "a": 2}');
  expect((await keysOf({}, [[proto], [{ a: 2 }]])).count).toBe(2);
});

describe('defaults of the schema are left out, so that adding one changes no key', () => {
  const plain = z.object({ to: z.string(), amount: z.object({ minor: z.number() }) });
  const given = { to: 'ann', amount: { minor: 1 } };

  test.each([
    [
      'zod',
      z.object({
        to: z.string(),
        lang: z.string().default('en'),
        amount: z.object({ minor: z.number(), currency: z.string().default('EUR') }),
      }),
    ],
    [
      'valibot',
      v.object({
        to: v.string(),
        lang: v.optional(v.string(), 'en'),
        amount: v.object({ minor: v.number(), currency: v.optional(v.string(), 'EUR') }),
      }),
    ],
    [
      'arktype',
      type({ to: 'string', lang: "string = 'en'", amount: { minor: 'number', currency: "string = 'EUR'" } }),
    ],
  ])('%s', async (_name, input) => {
    const before = await keysOf({ input: plain }, [[given]]);
    const after = await keysOf({ input }, [
      [given],
      [{ ...given, lang: 'en' }],
      [{ ...given, amount: { minor: 1, currency: 'EUR' } }],
      [{ ...given, lang: 'de' }],
      [{ ...given, amount: { minor: 1, currency: 'USD' } }],
    ]);
    expect(after.keys.slice(0, 3)).toEqual([before.keys[0], before.keys[0], before.keys[0]]);
    expect(after.count).toBe(3);
  });

  test('a call in which everything is a default is an intent too', async () => {
    const input = z.object({ region: z.string().default('eu'), size: z.number().optional() });
    const { count } = await keysOf({ input }, [[{}], [{ region: 'eu' }], [{ region: 'us' }]]);
    expect(count).toBe(2);
    expect((await keysOf({ input, identity: ['region'] }, [[{ size: 3 }], [{ region: 'eu' }]])).count).toBe(
      1,
    );
  });

  test('a default that is fresh each time is not identity, and is warned about once', async () => {
    const { semel, warnings } = rig();
    let made = 0;
    const input = z.object({ to: z.string(), messageId: z.string().default(() => `m${++made}`) });
    const tool = semel.tool({ ...base, input, run: ({ messageId }) => messageId });
    const first = await tool.try({ to: 'ann' });
    const second = await tool.try({ to: 'ann' });
    expect(second.receipt).toMatchObject({ key: first.receipt.key, replayed: true });
    expect((await tool.try({ to: 'ann', messageId: 'mine' })).receipt.key).not.toBe(first.receipt.key);
    expect(warnings.filter((each) => each.includes('`messageId`'))).toHaveLength(1);
  });

  test('what a schema renames or takes apart stays identity', async () => {
    const renamed = z.object({ mail: z.string() }).transform(({ mail }) => ({ to: mail }));
    expect((await keysOf({ input: renamed }, [[{ mail: 'ann' }], [{ mail: 'bob' }]])).count).toBe(2);
    const apart = z.object({ at: z.string().transform((text) => ({ name: text, size: 1 })) });
    expect((await keysOf({ input: apart }, [[{ at: 'a' }], [{ at: 'b' }]])).count).toBe(2);
    const stripped = z.object({ to: z.string(), lang: z.string().default('en') });
    expect((await keysOf({ input: stripped }, [[{ to: 'a' }], [{ to: 'a', extra: 1 }]])).count).toBe(1);
  });

  test('run gets what the schema made of the args', async () => {
    const semel = quick();
    const input = z.object({
      when: z.string().transform((text) => text.length),
      lang: z.string().default('en'),
    });
    const tool = semel.tool({ ...base, input, run: (args) => args });
    expect(await tool({ when: 'abc' })).toEqual({ when: 3, lang: 'en' });
  });
});

describe('redact', () => {
  async function stored(redact: readonly string[], args: unknown, more: object = {}) {
    const { semel, warnings } = rig();
    const tool = semel.tool({ ...base, redact, run: () => 1, ...more } as Any) as Any;
    await tool(args);
    return { args: (await semel.records.list()).items[0]?.args, warnings };
  }

  test('covers every element of a list, and names that contain a dot', async () => {
    const args = { id: 1, cards: [{ number: '4111', last: '11' }, { number: '4222' }], 'api.key': 'sk' };
    const seen = await stored(['cards.number', 'api.key'], args);
    expect(seen.args).toEqual({ id: 1, cards: [{ last: '11' }, {}] });
    expect(seen.warnings.filter((each) => each.includes('redact'))).toEqual([]);
  });

  test('leaves no digest of a redacted field, and warns where the key holds one', async () => {
    const { semel, warnings, store } = rig();
    const secret = { ...base, name: 'pay', redact: ['card', 'note'], run: () => 1 } as Any;
    const tool = semel.tool({ ...secret, identity: ['id'] }) as Any;
    await tool({ id: 1, card: '4111', note: 'x', text: 'y' });
    const { items } = await store.list({ namespace: 'test', limit: 1 });
    expect(Object.keys(JSON.parse(items[0]?.content ?? ''))).toEqual(['text']);
    expect(warnings.filter((each) => each.includes('never stored'))).toEqual([]);
    semel.tool({ ...secret, name: 'pay2', content: ['note'] });
    expect(warnings.filter((each) => each.includes('never stored'))).toEqual([
      expect.stringContaining('pay2: `card`'),
    ]);
  });

  test('redacts inside objects of another realm, and removes a value whole if it cannot look inside', async () => {
    const foreign = runInNewContext('({ id: 1, body: { secret: "sk", text: "x" } })');
    const own = { identity: ['id'] };
    expect((await stored(['body.secret'], foreign, own)).args).toEqual({ id: 1, body: { text: 'x' } });
    expect((await stored(['body.secret'], foreign, { ...own, mode: 'observe' })).args).toEqual({
      id: 1,
      body: { text: 'x' },
    });
    const map = { id: 1, body: new Map([['secret', 'sk']]) };
    expect(JSON.stringify((await stored(['body.secret'], map, own)).args)).not.toContain('sk');
    const loop: unknown[] = [];
    loop.push(loop, loop);
    expect((await stored(['body.secret'], { id: 1, body: loop }, own)).args).toBeUndefined();
  });

  test('a path that is spelt otherwise than the field is warned about; one that is not there is not', async () => {
    const { warnings } = await stored(['Password', 'user.api_key', 'token'], {
      password: 'hunter2',
      user: { apiKey: 'sk' },
    });
    expect(warnings.filter((each) => each.includes('redact'))).toEqual([
      expect.stringMatching(/`Password`.*`password`/),
      expect.stringMatching(/`user.api_key`.*`user.apiKey`/),
    ]);
  });
});

test('content that expands to an endless text is not read to its end, and counts as re-worded', async () => {
  const semel = quick();
  const tool = semel.tool({ ...base, identity: ['id'], run: () => 1 } as Any) as Any;
  let body: Any = {};
  for (let depth = 0; depth < 40; depth += 1) body = { a: body, b: body };
  await tool({ id: 1, body });
  expect((await tool.try({ id: 1, body })).receipt.drift).toEqual(['body']);
  const text = 'x'.repeat(3_000_000);
  await tool({ id: 2, text });
  expect((await tool.try({ id: 2, text })).receipt.drift).toEqual([]);
  expect((await tool.try({ id: 2, text: `${text}y` })).receipt.drift).toEqual(['text']);
});

describe('drift', () => {
  async function driftBetween(definition: object, first: object, second: object) {
    const semel = quick();
    const tool = semel.tool({ ...base, run: () => 'done', ...definition } as Any) as Any;
    const one = await tool.try(first);
    const two = await tool.try(second);
    expect(two.receipt).toMatchObject({ replayed: true, executed: false });
    expect(one.receipt.drift).toEqual([]);
    return two.receipt.drift;
  }

  test('a replay lists the content fields that differ from what was executed', async () => {
    const first = { id: 1, subject: 'a', body: 'b', cc: ['x'] };
    expect(await driftBetween({ identity: ['id'] }, first, first)).toEqual([]);
    expect(await driftBetween({ identity: ['id'] }, first, { ...first, body: 'B', cc: ['y'] })).toEqual([
      'body',
      'cc',
    ]);
    expect(await driftBetween({ identity: ['id'] }, first, { id: 1, subject: 'a', body: 'b' })).toEqual([
      'cc',
    ]);
  });

  test('siblings of nested identity fields are content too', async () => {
    const drift = await driftBetween(
      { identity: ['amount.minor'], volatile: ['amount.at'] },
      { amount: { minor: 1, note: 'a', at: 1 } },
      { amount: { minor: 1, note: 'b', at: 2 } },
    );
    expect(drift).toEqual(['amount.note']);
  });

  test('neither the order of members nor a volatile field is drift', async () => {
    expect(
      await driftBetween(
        { identity: ['id'], volatile: ['trace'] },
        { id: 1, o: { a: 1, b: 2 }, trace: 1 },
        { id: 1, o: { b: 2, a: 1 }, trace: 2 },
      ),
    ).toEqual([]);
  });
});

describe('periods', () => {
  test('a turn is one intent, wherever the call comes from', async () => {
    const at = (conversation: string, turn: string, toolCallId = 'call_0') =>
      [{}, { conversation, turn, toolCallId }] as const;
    const { count, keys } = await keysOf({ per: 'turn' }, [
      at('c1', '1'),
      at('c1', '1', 'call_7'),
      at('c1', '2'),
      at('c2', '1'),
    ]);
    expect(count).toBe(3);
    expect(keys[0]!.split('/')[1]).toBe(keys[2]!.split('/')[1]);
    expect(keys[0]).not.toContain('c1');
  });

  test('a conversation is one intent, and so is a run', async () => {
    const conversation = await keysOf({ per: 'conversation' }, [
      [{}, { conversation: 'c1', turn: '1' }],
      [{}, { conversation: 'c1', turn: '2' }],
      [{}, { conversation: 'c2' }],
    ]);
    expect(conversation.count).toBe(2);
    expect(
      (
        await keysOf({ per: 'run' }, [
          [{}, { run: 'r1' }],
          [{}, { run: 'r1' }],
          [{}, { run: 'r2' }],
        ])
      ).count,
    ).toBe(2);
  });

  test('`ever` is one intent for all conversations', async () => {
    const { count, keys } = await keysOf({}, [[{}, { conversation: 'a', turn: '1' }], [{}]]);
    expect(count).toBe(1);
    expect(keys[0]).toMatch(/^post\/-\/[0-9a-hjkmnp-tv-z]{32}$/);
  });

  test.each([
    ['hour', hour('Europe/Paris'), '2026-06-19T11+02:00'],
    ['day', day('Europe/Paris'), '2026-06-19'],
    ['week', week('Europe/Paris'), '2026-W25'],
    ['month', month('Europe/Paris'), '2026-06'],
  ])('a %s stands readable in the key', async (_name, per, slot) => {
    const at = new Date('2026-06-19T09:02:00Z');
    const { keys } = await keysOf({ per }, [
      [{}, { at }],
      [{}, { at: at.getTime() }],
    ]);
    expect(keys[0]).toMatch(new RegExp(`^post/${slot.replace('+', '\\+')}/[0-9a-z]{32}$`));
    expect(keys[1]).toBe(keys[0]);
  });

  test('the zone decides which day it is, and is part of the identity', async () => {
    const late = { at: new Date('2026-06-19T22:30:00Z') };
    const paris = await keysOf({ per: day('Europe/Paris') }, [[{}, late]]);
    const utc = await keysOf({ per: day('UTC') }, [[{}, late]]);
    expect(paris.keys[0]).toContain('/2026-06-20/');
    expect(utc.keys[0]).toContain('/2026-06-19/');
    const noon = { at: new Date('2026-06-19T12:00:00Z') };
    expect((await keysOf({ per: day('UTC') }, [[{}, noon]])).keys).not.toEqual(
      (await keysOf({ per: day('Africa/Abidjan') }, [[{}, noon]])).keys,
    );
  });

  test.each([
    ['turn', {}, 'conversation'],
    ['turn', { conversation: 'c' }, 'turn'],
    ['turn', { turn: '1' }, 'conversation'],
    ['conversation', { turn: '1' }, 'conversation'],
    ['run', { conversation: 'c', turn: '1' }, 'run'],
  ])('per %s with %j is refused for want of a %s', async (per, options, path) => {
    const made = rig();
    const tool = made.semel.tool({ ...base, per, run: () => 1 } as Any) as Any;
    expect(await tool.try({}, options)).toMatchObject({ error: { code: 'NO_IDENTITY', path } });
    expect(made.store.calls).toEqual([]);
  });

  test('a guessed turn is marked, warned of once, and refused for what is irreversible unless accepted', async () => {
    const made = rig();
    const { semel } = made;
    const guessed = { conversation: 'c', turn: 'hash', weak: true };
    const mail = semel.tool({ ...base, per: 'turn', run: () => 1 });
    const deploy = semel.tool({ ...base, name: 'deploy', effect: 'irreversible', per: 'turn', run: () => 1 });
    const accepting = semel.tool({
      ...base,
      name: 'publish',
      effect: 'irreversible',
      per: 'turn',
      weak: 'accept',
      run: () => 1,
    });
    await semel.within(guessed, async () => {
      expect((await mail.try({})).receipt.weak).toBe(true);
      expect((await mail.try({})).receipt.weak).toBe(true);
      expect(await deploy.try({})).toMatchObject({ error: { code: 'NO_IDENTITY', path: 'turn' } });
      expect((await accepting.try({})).ok).toBe(true);
      expect((await mail.try({}, { turn: '7' })).receipt.weak).toBe(false);
      await semel.within({ turn: '8' }, async () => expect((await deploy.try({})).ok).toBe(true));
      await semel.within({ conversation: 'd', turn: '8' }, async () =>
        expect((await deploy.try({})).ok).toBe(true),
      );
    });
    expect(made.warnings.filter((message) => message.includes('guessed'))).toHaveLength(2);
  });
});

describe('a deliberate repeat', () => {
  test('`again` says why, is another intent, and is one itself', async () => {
    const { count } = await keysOf({}, [
      [{}],
      [{}, { again: 'customer asked on 20 June' }],
      [{}, { again: 'customer asked on 20 June' }],
      [{}, { again: 'customer asked on 21 June' }],
      [{}, { key: 'k' }],
      [{}, { key: 'k', again: 'x' }],
    ]);
    expect(count).toBe(5);
  });
});

describe('a caller’s own key', () => {
  test('replaces the derived one, readable and escaped', async () => {
    const { keys } = await keysOf({ identity: ['id'] }, [
      [{ id: 1, text: 'a' }, { key: 'order 17/ä' }],
      [{ id: 1, text: 'b' }, { key: 'order 17/ä' }],
    ]);
    expect(keys).toEqual(['post/=order%2017%2F%C3%A4', 'post/=order%2017%2F%C3%A4']);
  });

  test('used again with other identity args it is a conflict, and nothing is run', async () => {
    const semel = quick();
    let ran = 0;
    const tool = semel.tool({ ...base, identity: ['id'], run: (_args: { id: number }) => ++ran });
    await tool({ id: 1 }, { key: 'k' });
    const error: SemelError = await tool({ id: 2 }, { key: 'k' }).catch((each) => each);
    expect(error).toMatchObject({ code: 'KEY_CONFLICT', retriable: false });
    expect(error.evidence).toMatchObject({ key: 'post/=k' });
    expect(ran).toBe(1);
  });

  test('at the same time too', async () => {
    const semel = quick();
    const tool = semel.tool({
      ...base,
      identity: ['id'],
      run: (args: { id: number }) => new Promise((resolve) => setTimeout(() => resolve(args.id), 10)),
    });
    const results = await Promise.all([tool.try({ id: 1 }, { key: 'k' }), tool.try({ id: 2 }, { key: 'k' })]);
    expect(results.map((result) => (result.ok ? 'ok' : result.error.code)).sort()).toEqual([
      'KEY_CONFLICT',
      'ok',
    ]);
  });

  test('never goes to the provider', async () => {
    const semel = quick();
    const tool = semel.tool({ ...base, run: (_args: object, ctx) => [ctx.key, ctx.keyFor('second')] });
    const keys = await tool({}, { key: 'order-17' });
    expect(keys[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(keys[1]).not.toBe(keys[0]);
    expect(keys.join()).not.toContain('17');
  });
});

describe('a time zone', () => {
  const at = new Date('2026-06-19T20:00:00Z');
  const keyIn = async (zone: string, unit: 'day' | 'hour') =>
    (await keysOf({ per: { unit, zone } }, [[{ id: 1 }, { at }]])).keys[0];

  test.each([
    [
      'UTC',
      ['utc', 'Etc/UTC', 'etc/utc', 'Zulu', 'Etc/Zulu', 'UCT', 'Universal', 'GMT', 'Etc/GMT', 'Greenwich'],
    ],
    ['Asia/Kolkata', ['Asia/Calcutta', 'asia/calcutta', 'ASIA/KOLKATA']],
    ['Europe/Berlin', ['europe/berlin']],
    ['Europe/Kyiv', ['Europe/Kiev']],
    ['America/New_York', ['US/Eastern']],
    ['Asia/Kathmandu', ['Asia/Katmandu']],
  ])('%s is one period, however it is spelt', async (zone, spellings) => {
    for (const unit of ['day', 'hour'] as const)
      for (const spelling of spellings) expect(await keyIn(spelling, unit)).toBe(await keyIn(zone, unit));
  });

  test('is another one where the clocks only happen to agree', async () => {
    expect(await keyIn('Europe/Amsterdam', 'day')).not.toBe(await keyIn('Europe/Brussels', 'day'));
    expect(await keyIn('CET', 'day')).not.toBe(await keyIn('Europe/Brussels', 'day'));
    expect(await keyIn('cet', 'day')).toBe(await keyIn('CET', 'day'));
  });

  test('has one name in the contract, so that two spellings define one tool', () => {
    const semel = quick();
    semel.tool({ ...base, per: day('Etc/UTC'), run: () => 1 });
    expect(semel.tool({ ...base, per: day('utc'), run: () => 1 }).contract.per).toEqual(day());
  });
});

describe('earlier forms', () => {
  const was = async (before: object, beforeCall: Any, now: object, nowCall: Any) => {
    const made = rig();
    const first = made.semel.tool({ ...base, run: () => 'first', ...before } as Any) as Any;
    await first(...beforeCall);
    const second = made.another().tool({ ...base, run: () => 'second', ...now } as Any) as Any;
    return second(...nowCall);
  };

  test('a renamed tool finds what it did under its old name', async () => {
    expect(
      await was({ name: 'old' }, [{ id: 1 }], { name: 'new', was: [{ name: 'old' }] }, [{ id: 1 }]),
    ).toBe('first');
    expect(await was({ name: 'old' }, [{ id: 1 }], { name: 'new' }, [{ id: 1 }])).toBe('second');
    expect(
      await was({ name: 'old' }, [{}, { key: 'k' }], { name: 'new', was: [{ name: 'old' }] }, [
        {},
        { key: 'k' },
      ]),
    ).toBe('first');
  });

  test('a changed identity finds what was done under the former', async () => {
    const args = { id: 1, region: 'eu' };
    const now = { identity: ['id', 'region'], was: [{ identity: ['id'] }] };
    expect(await was({ identity: ['id'] }, [args], now, [args])).toBe('first');
    expect(await was({ content: ['region'] }, [args], { was: [{ content: ['region'] }] }, [args])).toBe(
      'first',
    );
  });

  test('a changed period finds what was done under the former', async () => {
    const now = { per: 'ever', was: [{ per: 'conversation' }] };
    const inside = { conversation: 'c' };
    expect(await was({ per: 'conversation' }, [{}, inside], now, [{}, inside])).toBe('first');
  });

  test('an earlier name is checked like a name', () => {
    const semel = quick();
    expect(() => semel.tool({ ...base, was: [{ name: 'a/b' }], run: () => 1 })).toThrow(/name/);
  });
});

describe('keys are frozen', () => {
  test.each(vectors.derived)('$title', ({ parts, key }) => {
    expect(deriveKey(parts as Any)).toBe(key);
  });

  test.each(vectors.tools)(
    '$title',
    async ({ namespace, contract, calendar, args, options, key, provider }) => {
      const semel = quick({ namespace });
      const per = calendar === undefined ? {} : { per: { unit: calendar[0], zone: calendar[1] } };
      const tool = semel.tool({
        ...base,
        ...contract,
        ...per,
        run: (_args: Any, ctx: Any) => ctx.key,
      } as Any) as Any;
      const result = await tool.try(args, options);
      expect([result.receipt.key, result.value]).toEqual([key, provider]);
    },
  );

  test('different parts never give equal keys', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 8 });
    const parts = fc.record({
      namespace: text,
      contract: fc.constantFrom('a', 'b', 'a.b'),
      period: fc.record({ text: fc.constantFrom('-', '2026-06-19'), exact: text }),
      identity: fc.json({ maxDepth: 2 }),
      again: fc.option(text, { nil: undefined }),
    });
    const seen = new Map<string, string>();
    fc.assert(
      fc.property(parts, (each) => {
        const key = deriveKey(each);
        const { namespace, contract, period, identity, again } = each;
        const exact = JSON.stringify([
          namespace,
          contract,
          period.text,
          period.exact,
          identity,
          again ?? null,
        ]);
        const before = seen.get(key);
        seen.set(key, exact);
        return before === undefined || before === exact;
      }),
      { numRuns: 3_000 },
    );
  });

  test('moving text from one part to the next gives another key', () => {
    const period = { text: '-', exact: 'ever' };
    const keys = [
      deriveKey({ namespace: 'ab', contract: 'c', period, identity: '1' }),
      deriveKey({ namespace: 'a', contract: 'bc', period, identity: '1' }),
      deriveKey({ namespace: 'ab', contract: 'c', period, identity: '1', again: '' }),
      deriveKey({ namespace: 'ab', contract: 'c', period: { text: '-', exact: 'ever1' }, identity: '' }),
    ].map((key) => key.split('/')[2]);
    expect(new Set(keys).size).toBe(4);
  });

  test('a derived key and a caller’s own never meet, nor do two generations at the provider', () => {
    expect(callerKey('a', '-/x')).toBe('a/=-%2Fx');
    const keys = [
      providerKey('n', 'k', 1),
      providerKey('n', 'k', 2),
      providerKey('n', 'k', 1, '2'),
      providerKey('m', 'k', 1),
    ];
    expect(new Set(keys).size).toBe(4);
  });
});

test('warns that a tool which looks like a setter runs "on, off, on" as "on, off"', () => {
  const { semel, warnings } = rig();
  const run = () => 1;
  for (const name of ['lamp.set', 'updateIssue', 'asset.move', 'settle']) semel.tool({ ...base, name, run });
  semel.tool({ name: 'lamp.enable', effect: 'write-idempotent', run });
  const said = warnings.filter((each) => each.includes('write-idempotent'));
  expect(said.map((each) => each.split(' ')[0])).toEqual(['lamp.set', 'updateIssue']);
});
