// A repeatable write with other content is other work: it is written as it was asked for, whatever became of the one before.

import { landed, notLanded } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

interface Light {
  readonly id: number;
  readonly to: string;
}

const base = { name: 'light.set', effect: 'write-idempotent', identity: ['id'], lease: '30s' } as const;

const kinds = {
  'a plain write': {},
  'a prepared write': { prepare: ({ to }: Light) => ({ to }) },
  'a write with a key of the provider': {
    provider: { name: 'ann.lights', window: '24h', hosts: ['lights.example'] },
  },
  'a prepared write with a key of the provider': {
    prepare: ({ to }: Light) => ({ to }),
    provider: { name: 'ann.lights', window: '24h', hosts: ['lights.example'] },
  },
} as const;

test.each(Object.entries(kinds))(
  '%s: after one that failed, the next is written as asked for',
  async (_, kind) => {
    const made = rig();
    const writes: { to: string; key: string }[] = [];
    const set = made.semel.tool({
      ...base,
      ...kind,
      run: ({ to }: Light, ctx) => {
        const sent = (ctx.prepared as { to: string } | undefined)?.to ?? to;
        writes.push({ to: sent, key: ctx.key });
        if (writes.length <= 2) throw new Error('socket hang up');
        return sent;
      },
    });
    await set.try({ id: 1, to: 'on' });
    await set.try({ id: 1, to: 'on' });
    expect(await set.try({ id: 1, to: 'off' })).toMatchObject({
      ok: true,
      value: 'off',
      receipt: { drift: [] },
    });
    expect(writes.map(({ to }) => to)).toEqual(['on', 'on', 'off']);
    // A provider would refuse another request under the first one's key.
    if ('provider' in kind) expect(writes[2]!.key).not.toBe(writes[1]!.key);
    expect(writes[1]!.key).toBe(writes[0]!.key);
  },
);

test.each(Object.entries(kinds))(
  '%s: after one whose worker died, the next is written as asked for',
  async (_, kind) => {
    const made = rig();
    const writes: { to: string; key: string }[] = [];
    const definition = {
      ...base,
      ...kind,
      run: ({ to }: Light, ctx: { prepared: unknown; key: string }) => {
        const sent = (ctx.prepared as { to: string } | undefined)?.to ?? to;
        writes.push({ to: sent, key: ctx.key });
        return writes.length === 1 ? new Promise<string>(() => undefined) : sent;
      },
    };
    void made.another().tool(definition).try({ id: 1, to: 'on' });
    await rest();
    made.store.break('renew');
    await made.clock.advance(31_000);
    made.store.repair();
    const result = await made.clock.until(made.semel.tool(definition).try({ id: 1, to: 'off' }));
    expect(result).toMatchObject({ ok: true, value: 'off', receipt: { drift: [] } });
    expect(writes.map(({ to }) => to)).toEqual(['on', 'off']);
    if ('provider' in kind) expect(writes[1]!.key).not.toBe(writes[0]!.key);
  },
);
test('a write that failed does not get the late success of another one', async () => {
  const made = rig();
  const first = gate<string>();
  const second = gate<string>();
  const states: string[] = [];
  const write = (ending: Promise<string>) => (args: Light) => {
    states.push(args.to);
    return ending;
  };
  const slow = made
    .another()
    .tool({ ...base, run: write(first.promise) })
    .try({ id: 1, to: 'on' });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();
  const next = made.semel.tool({ ...base, run: write(second.promise) }).try({ id: 1, to: 'off' });
  await made.clock.advance(10);
  expect(states).toEqual(['on', 'off']);
  first.resolve('on');
  await made.clock.until(slow);
  second.reject(new Error('socket hang up'));
  expect(await made.clock.until(next)).toMatchObject({ ok: false });
  expect((await made.semel.records.list()).items).toMatchObject([
    { status: expect.not.stringMatching('succeeded') },
  ]);
});

test('a write after one whose worker died is made, although an earlier one reported its late success', async () => {
  const made = rig();
  const first = gate<string>();
  const states: string[] = [];
  const write = (ending: Promise<string>) => (args: Light) => {
    states.push(args.to);
    return ending;
  };
  const slow = made
    .another()
    .tool({ ...base, run: write(first.promise) })
    .try({ id: 1, to: 'on' });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  void made
    .another()
    .tool({ ...base, run: write(new Promise(() => undefined)) })
    .try({ id: 1, to: 'off' });
  await made.clock.advance(10);
  expect(states).toEqual(['on', 'off']);
  first.resolve('on');
  await made.clock.until(slow);
  await made.clock.advance(31_000);
  made.store.repair();
  const last = made.semel.tool({ ...base, run: write(Promise.resolve('dim')) }).try({ id: 1, to: 'dim' });
  expect(await made.clock.until(last)).toMatchObject({ ok: true, value: 'dim' });
  expect(states).toEqual(['on', 'off', 'dim']);
});

test.each(['fails', 'succeeds'])(
  'a write that is taken over by another one and %s does not get its value',
  async (how) => {
    const made = rig();
    const first = gate<string>();
    const states: string[] = [];
    const write = (ending: Promise<string>) => (args: Light) => {
      states.push(args.to);
      return ending;
    };
    const slow = made
      .another()
      .tool({ ...base, run: write(first.promise) })
      .try({ id: 1, to: 'on' });
    await rest();
    made.store.break('renew');
    await made.clock.advance(31_000);
    made.store.repair();
    const next = made.semel.tool({ ...base, run: write(Promise.resolve('off')) }).try({ id: 1, to: 'off' });
    expect(await made.clock.until(next)).toMatchObject({ ok: true, value: 'off' });
    if (how === 'fails') first.reject(new Error('socket hang up'));
    else first.resolve('on');
    const expected =
      how === 'fails' ? { ok: false, error: { code: 'LEASE_LOST' } } : { ok: true, value: 'on' };
    expect(await made.clock.until(slow)).toMatchObject(expected);
    expect(states).toEqual(['on', 'off']);
  },
);

test('a late write is not reported as done because an earlier one landed', async () => {
  const made = rig();
  void made
    .another()
    .tool({ ...base, run: () => new Promise<string>(() => undefined) })
    .try({ id: 1, to: 'on' });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();
  const late = made.semel
    .tool({ ...base, verify: ({ to }: Light) => landed(to), run: (): string => expect.fail('too late') })
    .try({ id: 1, to: 'off' }, { notAfter: new Date(made.clock.now() - 1) });
  expect(await made.clock.until(late)).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
});

test('a failed write is not reported as done because `verify` finds what a crashed one wrote', async () => {
  const made = rig();
  void made
    .another()
    .tool({ ...base, run: () => new Promise<string>(() => undefined) })
    .try({ id: 1, to: 'on' });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();
  const set = made.semel.tool({
    ...base,
    run: (_: Light): string => {
      throw new Error('socket hang up');
    },
    verify: () => landed('on'),
  });
  const result = await made.clock.until(set.try({ id: 1, to: 'off' }));
  expect(result).toMatchObject({ ok: false, error: { retriable: true } });
});

test('a tool that is known to be repeatable by now always runs', async () => {
  const made = rig();
  const states: string[] = [];
  const run = ({ to }: { to: string }) => {
    states.push(to);
    return to;
  };
  const before = { name: 'lamp.set', effect: 'write-non-idempotent', per: 'ever', run } as const;
  await made.semel.tool(before)({ to: 'on' });
  const set = made.another().tool({ name: 'lamp.set', effect: 'write-idempotent', run });
  for (const to of ['off', 'on', 'off', 'on']) expect(await set({ to })).toBe(to);
  expect(states).toEqual(['on', 'off', 'on', 'off', 'on']);
  // What the earlier contract remembers is remembered for its workers.
  expect(await made.another().tool(before).try({ to: 'on' })).toMatchObject({ receipt: { replayed: true } });
});

const setByCaller = {
  name: 'lamp.set',
  effect: 'write-idempotent',
  retry: { tries: 3 },
  run: (_: { to: string }): string => expect.fail('the caller of begin executes it'),
} as const;

const unclaimed = {
  'only an earlier contract remembers': async (made: ReturnType<typeof rig>) => {
    const before = { name: 'lamp.set', effect: 'write-non-idempotent', per: 'ever' } as const;
    await made.another().tool({ ...before, run: ({ to }: { to: string }) => to })({ to: 'on' });
  },
  'no store can record': async ({ store }: ReturnType<typeof rig>) => store.break(),
};

describe.each(Object.entries(unclaimed))('begin of a write that %s', (_, prepare) => {
  test('lets the caller execute it', async () => {
    const made = rig();
    await prepare(made);
    const begun = await made.clock.until(made.semel.begin(made.semel.tool(setByCaller), { to: 'on' }));
    if (!begun.execute) return expect.fail('not executed');
    expect(begun.attempt.args).toEqual({ to: 'on' });
    expect(await begun.attempt.succeed('set')).toMatchObject({
      ok: true,
      value: 'set',
      receipt: { executed: true, unguarded: true },
    });
  });

  test('is executed by the caller once, whatever the contract says of retries', async () => {
    const made = rig();
    await prepare(made);
    const begun = await made.clock.until(made.semel.begin(made.semel.tool(setByCaller), { to: 'on' }));
    if (!begun.execute) return expect.fail('not executed');
    expect(await begun.attempt.threw(new Error('socket hang up'))).toMatchObject({
      ok: false,
      error: { retriable: true },
      receipt: { executed: true, unguarded: true },
    });
  });

  test('is not waited for longer than its timeout', async () => {
    const made = rig();
    await prepare(made);
    const set = made.semel.tool({ ...setByCaller, timeout: '2s' });
    const begun = await made.clock.until(made.semel.begin(set, { to: 'on' }));
    expect(begun.execute).toBe(true);
    await made.clock.advance(3_000);
    made.store.repair();
    await made.clock.until(made.semel.close());
  });
});

test('a sweep does not write again what another write may have replaced', async () => {
  const made = rig();
  const states: string[] = [];
  const definition = {
    name: 'lamp.set',
    effect: 'write-idempotent',
    lease: '30s',
    run: ({ to }: { to: string }) => {
      states.push(to);
      return states.length === 1 ? new Promise<string>(() => undefined) : to;
    },
  } as const;
  void made.another().tool(definition).try({ to: 'on' });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();
  await made.semel.tool(definition)({ to: 'off' });
  expect(await made.clock.until(made.semel.doubts.sweep())).toMatchObject({ landed: 0, open: 1 });
  expect(states).toEqual(['on', 'off']);
  // Whoever asks for it again gets it.
  await made.semel.tool(definition)({ to: 'on' });
  expect(states).toEqual(['on', 'off', 'on']);
  expect(await made.semel.doubts.sweep()).toMatchObject({ landed: 0, open: 0 });
});

test.each(['landed', 'notLanded'] as const)(
  'a write that waited for another one, which failed, is made, although `verify` says "%s" about that one',
  async (verdict) => {
    const made = rig();
    const second = gate<string>();
    const states: string[] = [];
    const definition = (run: (args: Light) => string | Promise<string>) => ({
      ...base,
      verify: ({ to }: Light) => (verdict === 'landed' ? landed(to) : notLanded()),
      run: (args: Light) => {
        states.push(args.to);
        return run(args);
      },
    });
    void made
      .another()
      .tool(definition(() => new Promise(() => undefined)))
      .try({ id: 1, to: 'dim' });
    await rest();
    made.store.break('renew');
    await made.clock.advance(31_000);
    made.store.repair();
    const failing = made
      .another()
      .tool(definition(() => second.promise))
      .try({ id: 1, to: 'off' });
    const waiting = made.semel.tool(definition(({ to }) => to)).try({ id: 1, to: 'on' });
    await made.clock.advance(100);
    expect(states).toEqual(['dim', 'off']);
    second.reject(new Error('socket hang up'));
    await made.clock.until(failing);
    expect(await made.clock.until(waiting)).toMatchObject({ ok: true, value: 'on' });
    expect(states).toEqual(['dim', 'off', 'on']);
  },
);

test('a write whose lease is over, and which fails, does not get the late success of another one', async () => {
  const made = rig();
  const first = gate<string>();
  const second = gate<string>();
  const start = (semel: typeof made.semel, ending: Promise<string>, to: string) =>
    semel.tool({ ...base, run: (_: Light) => ending }).try({ id: 1, to });
  const slow = start(made.another(), first.promise, 'off');
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  const next = start(made.semel, second.promise, 'on');
  await made.clock.advance(31_000);
  first.resolve('off');
  expect(await made.clock.until(slow)).toMatchObject({ ok: true, value: 'off' });
  made.store.repair();
  second.reject(new Error('socket hang up'));
  expect(await made.clock.until(next)).toMatchObject({ ok: false });
  expect((await made.semel.records.list()).items).toMatchObject([
    { status: expect.not.stringMatching('succeeded') },
  ]);
});

describe('a write whose content is redacted', () => {
  const secret = { name: 'password.set', effect: 'write-idempotent', identity: ['id'] } as const;
  const redactions = { 'the field': ['to'], 'a part of it': ['to.text'] } as const;

  test.each(Object.entries(redactions))('%s: is not shared with another one', async (_, redact) => {
    const made = rig();
    const writes: string[] = [];
    const gate = Promise.withResolvers<void>();
    const set = made.semel.tool({
      ...secret,
      redact,
      run: async ({ to }: { id: number; to: { text: string } }) => {
        writes.push(to.text);
        if (to.text === 'first') await gate.promise;
        return to.text;
      },
    });
    const call = (text: string) => set.try({ id: 1, to: { text } });
    const first = call('first');
    await rest();
    // Both wait for the first: neither has started when the other comes.
    const others = ['old', 'new'].map(call);
    await rest();
    gate.resolve();
    const [, second, third] = await made.clock.until(Promise.all([first, ...others]));
    expect(second).toMatchObject({ value: 'old', receipt: { drift: [] } });
    expect(third).toMatchObject({ value: 'new', receipt: { executed: true } });
    expect(writes.toSorted()).toEqual(['first', 'new', 'old']);
  });

  test('is not sent as what was prepared for one whose worker died, nor under its key', async () => {
    const made = rig();
    const writes: { to: string; key: string }[] = [];
    const define = (semel: typeof made.semel, end: () => Promise<string>) =>
      semel.tool({
        ...secret,
        ...kinds['a prepared write with a key of the provider'],
        lease: '30s',
        redact: ['to'],
        run: (_: Light, ctx) => {
          writes.push({ to: (ctx.prepared as { to: string }).to, key: ctx.key });
          return end();
        },
      });
    void define(made.another(), () => new Promise(() => undefined)).try({ id: 1, to: 'old' });
    await rest();
    made.store.break('renew');
    await made.clock.advance(31_000);
    made.store.repair();
    const next = define(made.semel, async () => 'done').try({ id: 1, to: 'new' });
    expect(await made.clock.until(next)).toMatchObject({ ok: true });
    expect(writes.map(({ to }) => to)).toEqual(['old', 'new']);
    expect(writes[1]!.key).not.toBe(writes[0]!.key);
  });
});
