// A tool that sends by its own client and reads no key of ours: its provider knows none, so nobody may re-run it on the
// provider's word.

import { randomUUID } from 'node:crypto';
import { type AttemptContext, NotLanded, type ToolDefinition } from 'semel';
import { describe, expect, test } from 'vitest';
import { type Rig, rest, rig } from './support.ts';

const provider = { name: 'pay', window: '48h', hosts: ['pay.invalid'] } as const;
const lost = new Error('the reply was lost');

/** Honours keys, does its work, and loses every reply that it is told to. */
function payments() {
  const effects = new Set<string>();
  return {
    effects,
    losesReplies: true,
    send(key: string = randomUUID()): string {
      effects.add(key);
      if (this.losesReplies) throw lost;
      return 'refunded';
    },
  };
}

type Payments = ReturnType<typeof payments>;
type Run = (pay: Payments, ctx: AttemptContext, args: { order: number }) => unknown;

function refund(semel: Rig['semel'], pay: Payments, run: Run, more: object = {}) {
  const terms = { name: 'refund', effect: 'irreversible', per: 'ever', window: '24h', provider } as const;
  const definition = {
    ...terms,
    ...more,
    run: async (args: { order: number }, ctx: AttemptContext) => run(pay, ctx, args),
  } as unknown as ToolDefinition<{ order: number }, unknown>;
  return semel.tool(definition as never) as unknown as {
    (args: { order: number }): Promise<unknown>;
    try(args: { order: number }): Promise<object>;
  };
}

const byOwnClient: Run = (pay) => pay.send();
const withKey: Run = (pay, ctx) => pay.send(ctx.key);
const doubt = { ok: false, error: { code: 'IN_DOUBT' } };
const told = (warnings: readonly string[]) =>
  warnings.filter((text) => text.includes('ended without reading a key'));

/** The process dies while the store does not take what its tool says. */
async function die(made: Rig, call: () => Promise<unknown>, isSent: () => boolean): Promise<void> {
  made.store.before = (method) => (method === 'settle' ? new Promise(() => undefined) : undefined);
  void call();
  while (!isSent()) await rest();
  await rest();
  made.store.before = undefined;
  made.clock.jump(61_000);
}

describe.each([
  ['fetch', {}],
  ['tool', { provider: { name: 'pay', window: '48h', sentBy: 'tool' } }],
])('a run that never reads its key (sentBy: %s)', (_, more) => {
  test('is not run again: five calls refund once, and one warning says why', async () => {
    const pay = payments();
    const { semel, warnings } = rig();
    const tool = refund(semel, pay, byOwnClient, more);
    for (let call = 1; call <= 5; call += 1) expect(await tool.try({ order: 1 })).toMatchObject(doubt);
    expect(pay.effects.size).toBe(1);
    expect(told(warnings)).toHaveLength(1);
  });

  test('nor by the tries of one call', async () => {
    const pay = payments();
    const { semel, clock } = rig();
    const tool = refund(semel, pay, byOwnClient, { ...more, retry: { tries: 3, backoff: '1s' } });
    await clock.until(tool.try({ order: 1 }));
    expect(pay.effects.size).toBe(1);
  });

  test('nor by another process, which has not seen it', async () => {
    const pay = payments();
    const made = rig();
    await refund(made.semel, pay, byOwnClient, more).try({ order: 1 });
    expect(await refund(made.another(), pay, byOwnClient, more).try({ order: 1 })).toMatchObject(doubt);
    expect(pay.effects.size).toBe(1);
  });

  test('nor while it hangs past its timeout', async () => {
    const pay = payments();
    const { semel, clock } = rig();
    const hang: Run = () => {
      pay.effects.add(randomUUID());
      return new Promise(() => undefined);
    };
    const tool = refund(semel, pay, hang, more);
    expect(await clock.until(tool.try({ order: 1 }))).toMatchObject(doubt);
    expect(await clock.until(tool.try({ order: 1 }))).toMatchObject(doubt);
    expect(pay.effects.size).toBe(1);
  });

  test('is warned about when it first succeeds', async () => {
    const pay = payments();
    pay.losesReplies = false;
    const { semel, warnings } = rig();
    const tool = refund(semel, pay, byOwnClient, more);
    expect(await tool({ order: 1 })).toBe('refunded');
    expect(await tool({ order: 2 })).toBe('refunded');
    expect(told(warnings)).toHaveLength(1);
  });

  test('does not count on a key in later calls of a process that has seen it: what dies then is in doubt', async () => {
    const pay = payments();
    pay.losesReplies = false;
    const made = rig();
    const tool = refund(made.semel, pay, byOwnClient, more);
    await tool({ order: 1 });
    await die(
      made,
      () => tool.try({ order: 2 }),
      () => pay.effects.size === 2,
    );
    expect(await refund(made.another(), pay, byOwnClient, more).try({ order: 2 })).toMatchObject(doubt);
    expect(pay.effects.size).toBe(2);
  });

  test('and such a process does not re-run what another one left', async () => {
    const pay = payments();
    pay.losesReplies = false;
    const made = rig();
    await die(
      made,
      () => refund(made.semel, pay, byOwnClient, more).try({ order: 1 }),
      () => pay.effects.size === 1,
    );
    const other = refund(made.another(), pay, byOwnClient, more);
    await other({ order: 2 });
    expect(await other.try({ order: 1 })).toMatchObject(doubt);
    expect(pay.effects.size).toBe(2);
  });

  test('nor by what was prepared without a key in an attempt that sent nothing', async () => {
    const pay = payments();
    const made = rig();
    let isClosed = true;
    const run: Run = () => {
      if (isClosed) throw new NotLanded('closed');
      return pay.send();
    };
    const prepare = () => ({ reference: randomUUID() });
    await refund(made.semel, pay, run, { ...more, prepare }).try({ order: 1 });
    isClosed = false;
    for (let call = 1; call <= 3; call += 1)
      expect(await refund(made.another(), pay, run, { ...more, prepare }).try({ order: 1 })).toMatchObject(
        doubt,
      );
    expect(pay.effects.size).toBe(1);
  });

  test('nor does it by a verdict, once `verify` has said "not landed"', async () => {
    const pay = payments();
    const made = rig();
    let isFound = false;
    const verify = () => (isFound ? { verdict: 'unsure' } : { verdict: 'notLanded' });
    const tool = refund(made.semel, pay, byOwnClient, { ...more, verify });
    await tool.try({ order: 1 });
    made.clock.jump(10 * 60_000);
    isFound = false;
    await die(
      made,
      () => tool.try({ order: 1 }),
      () => pay.effects.size === 2,
    );
    isFound = true;
    made.clock.jump(10 * 60_000);
    expect(
      await refund(made.another(), pay, byOwnClient, { ...more, verify }).try({ order: 1 }),
    ).toMatchObject(doubt);
    expect(pay.effects.size).toBe(2);
  });
});

describe('a run that reads its key', () => {
  test.each<[string, Run]>([
    ['ctx.key', withKey],
    ['ctx.keyFor', (pay, ctx) => pay.send(ctx.keyFor('refund'))],
    ['a copy of ctx', (pay, ctx) => pay.send({ ...ctx }.key)],
  ])('by %s is run again, without a warning', async (_, run) => {
    const pay = payments();
    const { semel, warnings } = rig();
    const tool = refund(semel, pay, run);
    for (let call = 1; call <= 3; call += 1)
      expect(await tool.try({ order: 1 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
    expect(pay.effects.size).toBe(1);
    expect(told(warnings)).toEqual([]);
  });

  test('in `prepare` is run again with what was prepared', async () => {
    const pay = payments();
    const made = rig();
    const run: Run = (_, ctx) => pay.send((ctx.prepared as { key: string }).key);
    const prepare = (_: object, ctx: AttemptContext) => ({ key: ctx.key });
    for (const semel of [made.semel, made.semel, made.another()])
      expect(await refund(semel, pay, run, { prepare }).try({ order: 1 })).toMatchObject({
        error: { code: 'IN_DOUBT', retriable: true },
      });
    expect(pay.effects.size).toBe(1);
    expect(told(made.warnings)).toEqual([]);
  });

  test.each([
    ['of a part', (ctx: AttemptContext) => ctx.keyFor('refund')],
    ['in another form', (ctx: AttemptContext) => Buffer.from(ctx.key).toString('base64')],
  ])('%s in `prepare` is run again by another process, as often as the reply is lost', async (_, read) => {
    const pay = payments();
    const made = rig();
    const run: Run = (_, ctx) => pay.send((ctx.prepared as { key: string }).key);
    const prepare = (_: object, ctx: AttemptContext) => ({ key: read(ctx) });
    for (const semel of [made.semel, made.another(), made.another()])
      expect(await refund(semel, pay, run, { prepare }).try({ order: 1 })).toMatchObject({
        error: { code: 'IN_DOUBT', retriable: true },
      });
    expect(pay.effects.size).toBe(1);
    expect(told(made.warnings)).toEqual([]);
  });

  test('and throws before it once, leaves that call in doubt and no other', async () => {
    const pay = payments();
    const { semel } = rig();
    const run: Run = (_, ctx, { order }) => {
      if (order === 2) throw new TypeError('a mistake before the key is read');
      return pay.send(ctx.key);
    };
    const tool = refund(semel, pay, run);
    await tool.try({ order: 1 });
    expect(await tool.try({ order: 2 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: false } });
    expect(await tool.try({ order: 3 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
  });

  test('is trusted after a call that had nothing to send', async () => {
    const pay = payments();
    const { semel } = rig();
    const run: Run = (_, ctx, { order }) => (order === 2 ? 'nothing to refund' : pay.send(ctx.key));
    const tool = refund(semel, pay, run);
    await tool.try({ order: 1 });
    expect(await tool({ order: 2 })).toBe('nothing to refund');
    for (const order of [1, 3])
      expect(await tool.try({ order })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
  });

  test('is trusted again once it has read it, where its first call had nothing to send', async () => {
    const pay = payments();
    const { semel } = rig();
    const run: Run = (_, ctx, { order }) => (order === 1 ? 'nothing to refund' : pay.send(ctx.key));
    const tool = refund(semel, pay, run);
    await tool({ order: 1 });
    expect(await tool.try({ order: 2 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: false } });
    expect(await tool.try({ order: 3 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
  });

  test('or sends nothing, and says so, is not suspected', async () => {
    const { semel, warnings } = rig();
    const tool = refund(semel, payments(), () => {
      throw new NotLanded('closed');
    });
    expect(await tool.try({ order: 1 })).toMatchObject({ error: { code: 'NOT_LANDED' } });
    expect(told(warnings)).toEqual([]);
  });
});

test('a request that `ctx.fetch` refused does not stand for the one that its own client sent', async () => {
  const pay = payments();
  const { semel, warnings } = rig();
  const run: Run = async (_, ctx) => {
    await ctx.fetch('https://log.invalid/refunds', { method: 'POST' }).catch(() => undefined);
    return pay.send();
  };
  const tool = refund(semel, pay, run);
  for (let call = 1; call <= 2; call += 1) expect(await tool.try({ order: 1 })).toMatchObject(doubt);
  expect(pay.effects.size).toBe(1);
  expect(told(warnings)).toHaveLength(1);
});

test('sends the first words again, also where this process has seen no key read', async () => {
  const first = rig();
  const sent: string[] = [];
  type Args = { order: number; reason: string };
  const define = ({ semel }: Rig, run: (args: Args, ctx: AttemptContext) => unknown) =>
    semel.tool({
      name: 'refund',
      effect: 'irreversible',
      per: 'ever',
      window: '24h',
      provider,
      onDoubt: 'rerun',
      identity: ['order'],
      run: async (args: Args, ctx: AttemptContext) => run(args, ctx),
    });
  const withKey = define(first, ({ reason }, ctx) => {
    sent.push(`${ctx.key.slice(0, 4)} ${reason}`);
    throw lost;
  });
  const second = { ...first, semel: first.another() };
  let isEarly = true;
  const slow = define(second, ({ reason }, ctx) => {
    if (isEarly) throw new Error('it failed before it read its key');
    sent.push(`${ctx.key.slice(0, 4)} ${reason}`);
    return 'refunded';
  });
  await withKey.try({ order: 1, reason: 'it arrived broken' });
  await slow.try({ order: 1, reason: 'it is damaged' });
  isEarly = false;
  await slow.try({ order: 1, reason: 'it is damaged' });
  expect(sent).toHaveLength(2);
  expect(new Set(sent).size).toBe(1);
});

test('what is harmless to repeat needs no key: it is run again, without a warning', async () => {
  const pay = payments();
  const { semel, warnings } = rig();
  const tool = refund(semel, pay, byOwnClient, {
    effect: 'write-idempotent',
    per: undefined,
    window: undefined,
  });
  for (let call = 1; call <= 2; call += 1) await tool.try({ order: 1 });
  expect(pay.effects.size).toBe(2);
  expect(told(warnings)).toEqual([]);
});

describe('begin', () => {
  const begin = async (semel: Rig['semel'], pay: Payments, readsKey: boolean) => {
    const tool = refund(semel, pay, byOwnClient);
    const begun = await semel.begin(tool as never, { order: 1 } as never);
    if (!begun.execute) return begun.result;
    pay.effects.add(readsKey ? begun.attempt.key : randomUUID());
    return begun.attempt.threw(lost);
  };

  test.each([true, false])('counts on the key where its caller has read it: %s', async (readsKey) => {
    const pay = payments();
    const { semel, warnings } = rig();
    for (let call = 1; call <= 3; call += 1)
      expect(await begin(semel, pay, readsKey)).toMatchObject({ error: { retriable: readsKey } });
    expect(pay.effects.size).toBe(1);
    expect(told(warnings)).toHaveLength(readsKey ? 0 : 1);
  });
});

test('`once` remembers it from call to call', async () => {
  const pay = payments();
  const made = rig();
  const once = (semel: Rig['semel'], order: number) =>
    semel.once('refund', order, { provider, window: '24h' }, () => pay.send());
  pay.losesReplies = false;
  await once(made.semel, 1);
  await die(
    made,
    () => once(made.semel, 2),
    () => pay.effects.size === 2,
  );
  await expect(once(made.another(), 2)).rejects.toMatchObject({ code: 'IN_DOUBT' });
  expect(pay.effects.size).toBe(2);
});

test('what is only observed without a key is not run again once calls are enforced', async () => {
  const pay = payments();
  const made = rig();
  await refund(made.semel, pay, byOwnClient, { mode: 'observe' }).try({ order: 1 });
  expect(await refund(made.another(), pay, byOwnClient).try({ order: 1 })).toMatchObject(doubt);
  expect(pay.effects.size).toBe(1);
});

test('nor is what hangs past its timeout while it is only observed', async () => {
  const pay = payments();
  const made = rig();
  const hang: Run = () => {
    pay.effects.add(randomUUID());
    return new Promise(() => undefined);
  };
  void refund(made.semel, pay, hang, { mode: 'observe', timeout: '30s' }).try({ order: 1 });
  while (pay.effects.size === 0) await rest();
  await made.clock.advance(60_000);
  expect(await refund(made.another(), pay, byOwnClient).try({ order: 1 })).toMatchObject(doubt);
  expect(pay.effects.size).toBe(1);
});
