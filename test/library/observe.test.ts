// Observe mode: every call runs as it did before semel, and the records say what semel would have done.

import { getEventListeners } from 'node:events';
import { AlreadyLanded, type AttemptContext, MaybeLanded, NotLanded, Rejected } from 'semel';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { gate, quick, rest, rig, target } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

test('every call runs; the receipt and the history say what would have been done', async () => {
  const made = rig({ mode: 'observe' });
  let ran = 0;
  const tool = made.semel.tool({ ...base, run: () => ++ran });
  expect(await tool.try({})).toMatchObject({ value: 1, receipt: { executed: true, observed: undefined } });
  expect(await tool.try({})).toMatchObject({ value: 2, receipt: { executed: true, observed: 'replay' } });
  const { key } = (await tool.try({})).receipt;
  const history = await made.semel.records.history(key);
  expect(history.map(({ type, detail }) => [type, detail.would])).toEqual([['observed', 'replay']]);
});

test('no replay, conflict or busy call is reported if there was none', async () => {
  const made = rig({ mode: 'observe' });
  const told: string[] = [];
  for (const name of ['replayed', 'busy', 'conflict'] as const) made.semel.on(name, () => told.push(name));
  const tool = made.semel.tool({ ...base, run: () => 1 });
  await tool({ id: 1 });
  await tool({ id: 1 });
  await tool({ id: 1 }, { key: 'k' });
  await tool({ id: 2 }, { key: 'k' });
  expect(told).toEqual([]);
});

test('what a call would have met is said: busy, in doubt, a conflict', async () => {
  const made = rig({ mode: 'observe' });
  const end = gate();
  const slow = made.semel.tool({ ...base, name: 'slow', run: () => end.promise });
  const first = slow.try({});
  await rest();
  const second = slow.try({});
  await rest();
  end.resolve();
  expect((await second).receipt.observed).toBe('busy');
  await first;
  const fails = made.semel.tool({
    ...base,
    name: 'fails',
    run: () => {
      throw new Error('reset');
    },
  });
  await fails.try({});
  await fails.try({});
  const history = await made.semel.records.history((await made.semel.doubts.list()).items[0]!.key);
  expect(history.flatMap(({ detail }) => detail.would ?? [])).toEqual(['in doubt']);
  const keyed = made.semel.tool({ ...base, name: 'keyed', run: () => 1 });
  await keyed({ id: 1 }, { key: 'k' });
  expect((await keyed.try({ id: 2 }, { key: 'k' })).receipt.observed).toBe('conflict');
});

test('the caller gets exactly what the effect gave, its own errors too', async () => {
  const made = rig({ mode: 'observe' });
  const broken = new RangeError('mine');
  const socket = { send: () => 1 };
  const tool = made.semel.tool({
    ...base,
    run: (args: { fail: boolean }) => {
      if (args.fail) throw broken;
      return socket;
    },
  });
  expect(await tool({ fail: false })).toBe(socket);
  await expect(tool({ fail: true })).rejects.toBe(broken);
  expect((await made.semel.doubts.list()).items).toHaveLength(1);
});

test('a store that is away is ignored', async () => {
  const made = rig({ mode: 'observe' });
  made.store.break();
  let ran = 0;
  const tool = made.semel.tool({ ...base, run: () => ++ran });
  const result = await made.clock.until(tool.try({}));
  expect(result).toMatchObject({ ok: true, value: 1, receipt: { observed: 'refuse: STORE_UNAVAILABLE' } });
  made.store.repair();
  await made.semel.open();
  made.store.break('settle');
  expect(await made.clock.until(tool({ other: 1 }))).toBe(2);
});

describe('what would have been refused runs, and the receipt says why it would not have', () => {
  test.each<[string, object, object, unknown, object, string]>([
    ['no turn', { per: 'turn' }, {}, {}, {}, 'NO_IDENTITY'],
    ['args that are no data', {}, {}, { log: () => 1 }, {}, 'NOT_CANONICAL'],
    ['no permission', { permissions: ['mail'] }, {}, {}, {}, 'NOT_PERMITTED'],
    ['too late', {}, {}, {}, { notAfter: 1 }, 'EXPIRED'],
  ])('%s', async (_title, contract, options, args, call, code) => {
    const made = rig({ mode: 'observe', ...options });
    const tool = made.semel.tool({ ...base, run: (given: unknown) => given, ...contract });
    expect(await tool.try(args, call)).toMatchObject({
      ok: true,
      value: args,
      receipt: { observed: `refuse: ${code}` },
    });
  });

  test('a call from inside its own run', async () => {
    const made = rig({ mode: 'observe' });
    let depth = 0;
    const tool = made.semel.tool({
      ...base,
      run: async (args: object): Promise<number> => (++depth < 3 ? tool(args) : depth),
    });
    expect(await tool({})).toBe(3);
  });

  test('but not args that its own schema refuses', async () => {
    const made = rig({ mode: 'observe' });
    const tool = made.semel.tool({ ...base, input: z.object({ id: z.number() }), run: () => 1 });
    expect(await tool.try({ id: 'x' } as never)).toMatchObject({ error: { code: 'INVALID_ARGS' } });
  });
});

describe.each(['observe', 'off'] as const)('with mode %s inside a call that is enforced', (mode) => {
  const inner = (Word: new (text: string) => Error) => {
    const { semel } = rig({ mode });
    const run = (): unknown => {
      throw new Word('the inner one');
    };
    const tool = semel.tool({ ...base, name: 'inner', run });
    const stepped = semel.tool({ ...base, name: 'stepped', run: (_: object, ctx) => ctx.step('a', run) });
    return {
      tool: () => tool({}),
      once: () => semel.once('inner', 1, run),
      step: () => stepped({}),
      async try() {
        const result = await tool.try({});
        if (!result.ok) throw result.error;
        return result.value;
      },
      async begin() {
        const begun = await semel.begin(tool, {});
        const result = begun.execute ? await begun.attempt.threw(new Word('the inner one')) : begun.result;
        if (!result.ok) throw result.error;
        return result.value;
      },
    };
  };
  const ways = ['tool', 'once', 'step', 'try', 'begin'] as const;

  test.each(ways.flatMap((way) => [NotLanded, Rejected, MaybeLanded].map((Word) => [way, Word] as const)))(
    'what an effect says of itself (%s, %o) says nothing about the call around it',
    async (way, Word) => {
      const { semel } = rig();
      const call = inner(Word)[way];
      let sent = 0;
      const outer = semel.tool({
        ...base,
        run() {
          sent += 1;
          return call();
        },
      });
      for (const _ of [1, 2]) expect(await outer.try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
      expect(sent).toBe(1);
    },
  );

  test.each(ways)('what had landed already (%s) does not end the call around it', async (way) => {
    const { semel } = rig();
    const call = inner(AlreadyLanded as never)[way];
    const sent: unknown[] = [];
    const outer = semel.tool({ ...base, run: async () => sent.push(await call()) });
    expect(await outer.try({})).toMatchObject({ ok: true, value: 1 });
    expect(sent).toEqual(['the inner one']);
  });

  test('no error advises to repeat what may have landed', async () => {
    const { semel } = rig({ mode });
    const run = () => {
      throw new Error('socket hang up');
    };
    const tool = semel.tool({ ...base, run });
    const error = { code: 'FAILED', retriable: false, correctiveAction: expect.stringContaining('may have') };
    expect(await tool.try({})).toMatchObject({ ok: false, error });
    const begun = await semel.begin(tool, {});
    expect(begun.execute && (await begun.attempt.threw(new Error('reset')))).toMatchObject({ error });
    const light = semel.tool({ ...base, name: 'light', effect: 'write-idempotent', run });
    expect(await light.try({})).toMatchObject({ error: { retriable: true } });
  });
});

test.each([{}, { via: 'steps' }] as const)(
  'an observed call with a step that landed is not free (%o)',
  async (more) => {
    const made = rig();
    const sent: string[] = [];
    const definition = {
      ...{ ...base, ...more },
      async run(_: object, ctx: AttemptContext) {
        await ctx.step('charge', () => sent.push('charge'));
        throw new NotLanded('out of stock');
      },
    } as const;
    const observed = made.another({ mode: 'observe' }).tool(definition);
    expect(await observed.try({})).toMatchObject({ error: { code: 'NOT_LANDED' } });
    expect(await made.semel.tool(definition).try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(sent).toEqual(['charge']);
    // A step that did not land leaves nothing.
    const free = made.another({ mode: 'observe' }).tool({
      ...{ ...definition, name: 'free' },
      run: (_: object, ctx) =>
        ctx.step('charge', () => {
          throw new NotLanded('no funds');
        }),
    });
    expect(await free.try({})).toMatchObject({ error: { code: 'NOT_LANDED' } });
    const [record] = (await made.semel.records.list({ contract: 'free' })).items;
    expect(record?.status).toBe(more.via === 'steps' ? 'released' : 'unknown');
  },
);

test('each step of an observed call has a key of its own, and none is made again by the key of the call', async () => {
  const made = rig();
  const provider = { name: 'psp', window: '30d', sentBy: 'tool' } as const;
  const keys: string[] = [];
  const definition = {
    ...{ ...base, provider },
    async run(_: object, ctx: AttemptContext) {
      await ctx.step('charge', { provider }, ({ key }) => keys.push(key));
      await ctx.step('ship', { provider }, ({ key }) => keys.push(key));
      throw new Error('socket hang up');
    },
  } as const;
  const observed = made.another({ mode: 'observe' }).tool(definition);
  await expect(observed({})).rejects.toThrow('socket hang up');
  expect(new Set(keys).size).toBe(2);
  expect(await made.semel.tool(definition).try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(keys).toHaveLength(2);
  await expect(observed({})).rejects.toThrow('socket hang up');
  expect(new Set(keys).size).toBe(4);
});

test('nor is one made again whose call could not be marked before it, because the store was away', async () => {
  const made = rig();
  const sent: string[] = [];
  const definition = {
    ...base,
    via: 'steps',
    async run(_: object, ctx: AttemptContext) {
      await ctx.step('charge', () => sent.push('charge'));
      throw new Error('socket hang up');
    },
  } as const;
  made.store.break('dispatch');
  const observed = made.another({ mode: 'observe' }).tool(definition);
  await expect(made.clock.until(observed({}))).rejects.toThrow('socket hang up');
  made.store.repair();
  expect(await made.semel.tool(definition).try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(sent).toEqual(['charge']);
});

test('a step of an observed call crosses the line, where its process dies in it', async () => {
  const made = rig();
  const definition = {
    ...base,
    dispatch: 'explicit',
    run: (_: object, ctx: AttemptContext) => ctx.step('mail', () => new Promise(() => {})),
  } as const;
  void made.another({ mode: 'observe' }).tool(definition)({});
  await rest();
  expect((await made.semel.records.list()).items).toMatchObject([{ status: 'running' }]);
  expect((await made.semel.records.list()).items[0]?.lastDispatchedAt).toBeDefined();
});

test('what has not run when its call returns is not recorded as done', async () => {
  const made = rig({ mode: 'observe' });
  const mails: number[] = [];
  const send = async (id: number) => {
    await rest();
    mails.push(id);
  };
  const listed = made.semel.tool({ ...base, name: 'listed', run: () => [send(1), send(2)] });
  const value = await listed({});
  expect(mails).toEqual([]);
  await Promise.all(value as Promise<void>[]);
  expect((await made.semel.records.list({ contract: 'listed' })).items).toMatchObject([
    { status: 'unknown' },
  ]);
  const stepped = made.semel.tool({
    ...{ ...base, name: 'stepped' },
    run(_: object, ctx) {
      void ctx.step('mail', () => send(3));
    },
  });
  await stepped({});
  expect(mails).toEqual([1, 2, 3]);
});

test('the timeout of the contract ends nothing', async () => {
  const made = rig({ mode: 'observe' });
  const end = gate<string>();
  const tool = made.semel.tool({ ...base, timeout: '5s', run: () => end.promise });
  const call = tool.try({});
  await made.clock.advance(60_000);
  expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'unknown' });
  end.resolve('took its time');
  expect(await call).toMatchObject({ ok: true, value: 'took its time' });
  await rest();
  expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'succeeded' });
});

test('no two runs share a key at the provider', async () => {
  const server = await target();
  const made = rig({ mode: 'observe' });
  const provider = { name: 'mailer', window: '48h', hosts: [server.host] } as const;
  const tool = made.semel.tool({
    ...base,
    provider,
    run: async (_args: object, ctx) => (await ctx.fetch(server.url, { method: 'POST' })).status,
  });
  await tool({});
  await tool({});
  await tool({});
  expect(new Set(server.requests.map(({ key }) => key)).size).toBe(3);
});

test('switching to enforce changes no keys: what was done while observing is replayed', async () => {
  const made = rig();
  let ran = 0;
  const definition = { ...base, run: () => ++ran };
  await made.another({ mode: 'observe' }).tool(definition)({ id: 1 });
  expect(await made.semel.tool(definition).try({ id: 1 })).toMatchObject({
    value: 1,
    receipt: { replayed: true },
  });
});

describe('an effect that may have landed, and was made again while observing', () => {
  const provider = { name: 'psp', window: '30d', sentBy: 'tool' } as const;

  async function repeated(more: object = {}) {
    const made = rig();
    const keys: string[] = [];
    const marks: string[] = [];
    let isLost = true;
    const definition = {
      ...base,
      provider,
      ...more,
      run: (_: { id: number }, ctx: { key: string; mark(): string }) => {
        keys.push(ctx.key);
        marks.push(ctx.mark());
        if (isLost) throw new Error('socket hang up');
        return keys.length;
      },
    };
    const observing = made.another({ mode: 'observe' });
    const observed = observing.tool(definition);
    await expect(observed({ id: 1 })).rejects.toThrow('socket hang up');
    return {
      ...{ made, keys, marks, observed, enforced: made.semel.tool(definition) },
      answer: () => {
        isLost = false;
      },
    };
  }

  test('is answered with its value once calls are enforced', async () => {
    const { made, keys, marks, observed, enforced, answer } = await repeated();
    answer();
    const { receipt } = await observed.try({ id: 1 });
    expect(receipt).toMatchObject({ executed: true, observed: 'in doubt', acceptedRepeat: true });
    expect(await enforced.try({ id: 1 })).toMatchObject({ value: 2, receipt: { replayed: true } });
    expect(await made.semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 0 });
    expect([new Set(keys).size, new Set(marks).size]).toEqual([2, 1]);
  });

  test("is not made a third time by the provider's key, which only the first one had", async () => {
    const { made, keys, observed, enforced } = await repeated();
    await expect(observed({ id: 1 })).rejects.toThrow('socket hang up');
    expect(await enforced.try({ id: 1 })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(await made.semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
    expect(keys).toHaveLength(2);
  });

  test.each<[string, object, object]>([
    ['a strict field differs', { strict: ['amount'] }, {}],
    ['it is a write of its own', {}, { effect: 'write-idempotent' }],
  ])('stays in doubt where %s', async (_title, contract, observedAs) => {
    const made = rig();
    let isLost = true;
    const definition = {
      ...{ ...base, identity: ['order' as const], ...contract },
      run: ({ amount }: { order: string; amount: number }) => {
        if (isLost) throw new Error('socket hang up');
        return amount;
      },
    };
    const enforced = made.semel.tool(definition);
    expect(await enforced.try({ order: 'o', amount: 10 })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    isLost = false;
    const observed = made.another({ mode: 'observe' }).tool({ ...definition, ...observedAs });
    expect(await observed.try({ order: 'o', amount: 20 })).toMatchObject({
      value: 20,
      receipt: { executed: true, observed: 'in doubt', acceptedRepeat: false },
    });
    expect(await enforced.try({ order: 'o', amount: 10 })).toMatchObject({ error: { code: 'IN_DOUBT' } });
  });

  test('without a repeat, the key decides as ever', async () => {
    const { keys, enforced, answer } = await repeated();
    answer();
    expect(await enforced.try({ id: 1 })).toMatchObject({ value: 2, receipt: { executed: true } });
    expect(new Set(keys).size).toBe(1);
  });
});

test('a single tool may be observed while the others are enforced', async () => {
  const made = rig();
  let ran = 0;
  const observed = made.semel.tool({ ...base, mode: 'observe', run: () => ++ran });
  const enforced = made.semel.tool({ ...base, name: 'other', run: () => ++ran });
  await observed({});
  await observed({});
  await enforced({});
  await enforced({});
  expect(ran).toBe(3);
});

test('the line is where it would be', async () => {
  const made = rig({ mode: 'observe' });
  const tool = made.semel.tool({
    ...base,
    dispatch: 'explicit',
    run: async (args: { cross: boolean }, ctx) => {
      if (args.cross) await ctx.dispatch();
      throw new Error('reset');
    },
  });
  await tool.try({ cross: false });
  await tool.try({ cross: true });
  const statuses = (await made.semel.records.list()).items.map(({ status }) => status);
  expect(statuses.sort()).toEqual(['released', 'unknown']);
});

test("a run without a claim lets go of the caller's signal", async () => {
  const semel = quick();
  const { signal } = new AbortController();
  const read = semel.tool({ name: 'look', effect: 'read', run: (_args: object) => 1 });
  const seen = semel.tool({
    name: 'post',
    effect: 'write-non-idempotent',
    per: 'ever',
    mode: 'observe',
    run: (_args: object) => 1,
  });
  for (let id = 0; id < 20; id += 1) {
    await read({ id }, { signal });
    await seen({ id: id % 2 }, { signal });
  }
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

describe('begin', () => {
  const begun = async (made: ReturnType<typeof rig>, args: object) => {
    const tool = made.semel.tool({ ...base, run: () => 'unused' });
    const begun = await made.semel.begin(tool, args);
    if (!begun.execute) throw new Error('an observed call always executes');
    return begun.attempt;
  };

  test('always executes, and the record and the receipt say what would have been done', async () => {
    const made = rig({ mode: 'observe' });
    const first = await begun(made, { id: 1 });
    expect(await first.succeed('sent')).toMatchObject({
      ok: true,
      value: 'sent',
      receipt: { executed: true },
    });
    const second = await begun(made, { id: 1 });
    expect(await second.succeed('sent again')).toMatchObject({
      value: 'sent again',
      receipt: { executed: true, observed: 'replay' },
    });
    const [record] = (await made.semel.records.list()).items;
    expect(record).toMatchObject({ status: 'succeeded', value: 'sent', attempts: 1 });
  });

  test.each([
    ['fail', 'failed', 'FAILED'],
    ['release', 'released', 'NOT_LANDED'],
    ['unknown', 'unknown', 'IN_DOUBT'],
    ['threw', 'unknown', 'FAILED'],
  ] as const)('%s is recorded as %s', async (ending, status, code) => {
    const made = rig({ mode: 'observe' });
    const attempt = await begun(made, { id: 1 });
    expect(await attempt[ending](new Error('reset'))).toMatchObject({ ok: false, error: { code } });
    const [record] = (await made.semel.records.list()).items;
    expect(record).toMatchObject({ status, error: { message: 'reset' } });
  });

  test('continues without the store', async () => {
    const made = rig({ mode: 'observe' });
    made.store.break();
    const attempt = await made.clock.until(begun(made, { id: 1 }));
    expect(await attempt.succeed('sent')).toMatchObject({
      value: 'sent',
      receipt: { observed: 'refuse: STORE_UNAVAILABLE' },
    });
  });
});
