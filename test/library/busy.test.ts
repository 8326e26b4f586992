// What a call does while the same call is being executed: here, in another process, from inside itself.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel, landed, NotLanded, notLanded, Rejected, type SemelError, unsure } from 'semel';
import { afterAll, describe, expect, test } from 'vitest';
import { gate, isEmpty, quick, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever', identity: ['id'] } as const;

interface Post {
  id: number;
  text?: string;
}

const folder = mkdtempSync(join(tmpdir(), 'semel-busy-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A tool that ends when the test says so. */
function slow() {
  const ends: PromiseWithResolvers<unknown>[] = [];
  const ran: Post[] = [];
  const run = (args: Post) => {
    ran.push(args);
    const end = gate<unknown>();
    ends.push(end);
    return end.promise;
  };
  return { run, ran, ends };
}

test('a long wait for another worker warns once, and says when it ends if that worker has died', async () => {
  const made = rig({ owner: 'there:7' });
  const { run, ends } = slow();
  const first = made
    .another()
    .tool({ ...base, lease: '30s', run })
    .try({ id: 1 });
  await rest();
  const waiting = [1, 2].map(() =>
    made
      .another()
      .tool({ ...base, lease: '30s', run })
      .try({ id: 1 }),
  );
  const said = () => made.warnings.filter((warning) => warning.startsWith('post:'));
  await made.clock.advance(4_000);
  expect(said()).toEqual([]);
  await made.clock.advance(8_000);
  const sentence = /^post: a call is waiting for an equal one that there:7 started\..*lease of 30s is over/;
  expect(said()).toEqual([expect.stringMatching(sentence), expect.stringMatching(sentence)]);
  ends[0]!.resolve('done');
  for (const call of [first, ...waiting]) expect(await made.clock.until(call)).toMatchObject({ ok: true });
});

describe('in one process', () => {
  test('a sharing caller waits no longer than `wait`, and the run continues', async () => {
    const made = rig();
    const { run, ran, ends } = slow();
    const tool = made.semel.tool({ ...base, wait: '100ms', run });
    const lead = tool.try({ id: 1 });
    await rest();
    const joining = tool.try({ id: 1 });
    await made.clock.advance(99);
    const stop = new AbortController();
    const another = tool.try({ id: 1 }, { signal: stop.signal });
    await made.clock.advance(1);
    expect(await joining).toMatchObject({ ok: false, error: { code: 'IN_FLIGHT' } });
    stop.abort();
    expect(await another).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    ends[0]!.resolve('done');
    expect(await lead).toMatchObject({ ok: true, value: 'done' });
    expect(ran).toHaveLength(1);
  });

  test('equal calls share one run; each gets a value of its own', async () => {
    const semel = quick();
    const { run, ran, ends } = slow();
    const tool = semel.tool({ ...base, run });
    const calls = [tool.try({ id: 1 }), tool.try({ id: 1 }), tool.try({ id: 1 })];
    await rest();
    ends[0]!.resolve({ list: [1] });
    const results = await Promise.all(calls);
    expect(ran).toHaveLength(1);
    const count = (each: boolean[]) => each.filter(Boolean).length;
    expect(count(results.map((result) => result.receipt.executed))).toBe(1);
    expect(count(results.map((result) => result.receipt.replayed))).toBe(2);
    const [a, b, c] = results.map((result) => (result.ok ? result.value : undefined));
    expect(b).toEqual(a);
    expect(new Set([a, b, c]).size).toBe(3);
  });

  test('a sharer with other wording gets the names of the drifted fields', async () => {
    const semel = quick();
    const { run, ends } = slow();
    await semel.open();
    const tool = semel.tool({ ...base, run });
    const calls = [tool.try({ id: 1, text: 'a' }), tool.try({ id: 1, text: 'b' })];
    await rest();
    ends[0]!.resolve('done');
    expect((await Promise.all(calls)).map(({ receipt }) => receipt.drift)).toEqual([[], ['text']]);
  });

  test('sharers share a failure and an error without attempts of their own, each with a receipt of its own', async () => {
    const semel = quick();
    const { run, ran, ends } = slow();
    await semel.open();
    const tool = semel.tool({ ...base, run });
    for (const [error, code] of [
      [new NotLanded('queue full'), 'NOT_LANDED'],
      [new Rejected('no such list'), 'FAILED'],
      [new Error('reset'), 'IN_DOUBT'],
    ] as const) {
      const id = ran.length;
      const calls = [tool({ id }), tool({ id }), tool({ id })].map((call) =>
        call.catch((e: SemelError) => e),
      );
      await rest();
      ends[id]!.reject(error);
      const errors = (await Promise.all(calls)) as SemelError[];
      expect(errors.map((each) => each.code)).toEqual([code, code, code]);
      expect(errors.map((each) => each.receipt?.executed)).toEqual([code !== 'NOT_LANDED', false, false]);
      expect(ran).toHaveLength(id + 1);
    }
  });

  test("`ifBusy: 'fail'` answers IN_FLIGHT at once, and says when to come back", async () => {
    const semel = quick();
    const { run, ends } = slow();
    const tool = semel.tool({ ...base, run, ifBusy: 'fail', lease: '30s' });
    const first = tool({ id: 1 });
    await rest();
    const second = await tool.try({ id: 1 });
    expect(second).toMatchObject({ ok: false, error: { code: 'IN_FLIGHT', retriable: true } });
    const after = second.ok ? 0 : second.error.retryAfterMs!;
    expect(after).toBeGreaterThan(20_000);
    expect(after).toBeLessThanOrEqual(30_000);
    ends[0]!.resolve(1);
    expect(await first).toBe(1);
  });

  test("`ifBusy: 'skip'` returns at once, without a value", async () => {
    const semel = quick();
    const { run, ends } = slow();
    const tool = semel.tool({ ...base, run, ifBusy: 'skip' });
    const first = tool({ id: 1 });
    await rest();
    const second = await tool.try({ id: 1 });
    expect(second).toMatchObject({ ok: true, value: undefined, receipt: { skipped: true, executed: false } });
    ends[0]!.resolve(1);
    await first;
  });

  test('a call from inside its own run fails at once', async () => {
    const semel = quick();
    const tool = semel.tool({
      ...base,
      run: async (args: Post): Promise<string> => {
        const inner = await tool.try(args);
        return inner.ok ? 'never' : inner.error.code;
      },
    });
    expect(await tool({ id: 1 })).toBe('REENTRANT');
  });

  test('code left behind by a run may call it again once the run is over', async () => {
    const semel = quick();
    const over = gate();
    let later: Promise<unknown> = Promise.resolve();
    const tool = semel.tool({
      ...base,
      run: (args: Post): string => {
        later = over.promise.then(() => tool(args));
        return 'first';
      },
    });
    await tool({ id: 1 });
    over.resolve();
    expect(await later).toBe('first');
  });

  test('a nested call of another tool, or of another intent, does not disturb the outer one', async () => {
    const semel = quick();
    const inner = semel.tool({ ...base, name: 'inner', run: (args: Post) => `inner ${args.id}` });
    const outer = semel.tool({
      ...base,
      name: 'outer',
      run: async (args: Post, ctx): Promise<unknown> => {
        const before = ctx.key;
        const values = [await inner({ id: args.id })];
        if (args.id < 3) values.push((await outer({ id: args.id + 1 })) as string);
        expect(ctx.key).toBe(before);
        return values.flat(9);
      },
    });
    expect(await outer({ id: 1 })).toEqual(['inner 1', 'inner 2', 'inner 3']);
    expect((await semel.records.list({ status: 'succeeded' })).items).toHaveLength(6);
  });

  test('write-idempotent: equal calls at once share one run, calls with another content each run', async () => {
    const semel = quick();
    const { run, ran, ends } = slow();
    await semel.open();
    const tool = semel.tool({ ...base, effect: 'write-idempotent', run });
    const calls = [tool({ id: 1, text: 'a' }), tool({ id: 1, text: 'a' }), tool({ id: 1, text: 'b' })];
    await rest();
    expect(ran).toEqual([{ id: 1, text: 'a' }]);
    ends[0]!.resolve('A');
    while (ends.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    ends[1]!.resolve('B');
    expect(await Promise.all(calls)).toEqual(['A', 'A', 'B']);
    expect(ran).toEqual([
      { id: 1, text: 'a' },
      { id: 1, text: 'b' },
    ]);
  });
});

test.each(['the same process', 'another process'])(
  'write-idempotent, from %s: on, off, on is on, also where the first answer is slow',
  async (place) => {
    const made = rig();
    const states: string[] = [];
    const first = gate<void>();
    let answers: Promise<void> = first.promise;
    const definition = {
      name: 'light.set',
      effect: 'write-idempotent',
      run: async ({ to }: { to: string }) => {
        states.push(to);
        const answering = answers;
        answers = Promise.resolve();
        await answering;
        return to;
      },
    } as const;
    const here = made.semel.tool(definition);
    const there = place === 'the same process' ? here : made.another().tool(definition);
    const slow = here({ to: 'on' });
    await rest();
    await made.clock.until(there({ to: 'off' }));
    // Those that come while it runs share the next one.
    const last = Promise.all([there({ to: 'on' }), there({ to: 'on' })]);
    await rest();
    first.resolve();
    expect(await made.clock.until(last)).toEqual(['on', 'on']);
    expect(await slow).toBe('on');
    expect(states).toEqual(['on', 'off', 'on']);
  },
);

test('write-idempotent: on, off, on is on, also while the store is away', async () => {
  const made = rig();
  const states: string[] = [];
  const first = gate<void>();
  let answers: Promise<void> = first.promise;
  const set = made.semel.tool({
    name: 'light.set',
    effect: 'write-idempotent',
    run: async ({ to }: { to: string }) => {
      states.push(to);
      const answering = answers;
      answers = Promise.resolve();
      await answering;
      return to;
    },
  });
  made.store.break();
  const slow = set({ to: 'on' });
  await made.clock.advance(60_000);
  await made.clock.until(set({ to: 'off' }));
  expect(await made.clock.until(set({ to: 'on' }))).toBe('on');
  expect(states).toEqual(['on', 'off', 'on']);
  first.resolve();
  expect(await slow).toBe('on');
});

test('write-idempotent: a call waits no longer than `wait`, however often others make the same write', async () => {
  const made = rig();
  const definition = { name: 'light.set', effect: 'write-idempotent', wait: '5s' } as const;
  const ends: (() => void)[] = [];
  const others = made.semel.tool({
    ...definition,
    run: (_: object) => new Promise<void>((resolve) => void ends.push(resolve)),
  });
  const write = async () => {
    for (;;) await others({});
  };
  void write();
  await rest();
  const waiting = made
    .another()
    .tool({ ...definition, run: (_: object) => expect.fail('the others are always faster') })
    .try({});
  for (let seconds = 1; seconds <= 6; seconds += 1) {
    await made.clock.advance(1_000);
    ends.pop()?.();
    await rest();
  }
  expect(await Promise.race([waiting, rest()])).toMatchObject({ error: { code: 'IN_FLIGHT' } });
});

describe('giving up', () => {
  test('before anything is claimed: ABORTED, and nothing is claimed', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => expect.fail('not run') });
    const result = await tool.try({ id: 1 }, { signal: AbortSignal.abort(new Error('user left')) });
    expect(result).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    expect(made.store.calls.filter((method) => method !== 'open')).toEqual([]);
  });

  test('before the line: the attempt ends, and is free', async () => {
    const semel = quick();
    const caller = new AbortController();
    let seen: AbortSignal | undefined;
    const tool = semel.tool({
      ...base,
      dispatch: 'explicit',
      run: (_args: Post, ctx) => {
        seen = ctx.signal;
        return new Promise(() => undefined);
      },
    });
    const call = tool.try({ id: 1 }, { signal: caller.signal });
    await rest();
    caller.abort(new Error('user left'));
    const result = await call;
    expect(result).toMatchObject({ ok: false, error: { code: 'ABORTED', retriable: true } });
    expect(seen?.aborted).toBe(true);
    expect((await semel.records.list()).items[0]).toMatchObject({ status: 'released' });
  });

  test('a call made after the last one has left does not get their ABORTED', async () => {
    const semel = quick();
    let ran = 0;
    const tool = semel.tool({
      ...base,
      prepare: (_args: Post, { signal }) =>
        new Promise<string>((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          if (ran++ > 0) resolve('text');
        }),
      run: () => 'sent',
    });
    const caller = new AbortController();
    const first = tool.try({ id: 1 }, { signal: caller.signal });
    await rest();
    caller.abort();
    const second = tool.try({ id: 1 });
    expect(await first).toMatchObject({ error: { code: 'ABORTED' } });
    expect(await second).toMatchObject({ ok: true, value: 'sent' });
  });

  test('after dispatch: the caller is answered at once, without "nothing was run"; the effect is aborted and awaited', async () => {
    const semel = quick();
    const caller = new AbortController();
    const { ends, run } = slow();
    let seen: AbortSignal | undefined;
    const tool = semel.tool({
      ...base,
      run: (args: Post, ctx) => {
        seen = ctx.signal;
        return run(args);
      },
    });
    const call = tool.try({ id: 1 }, { signal: caller.signal });
    await rest();
    caller.abort();
    const result = await call;
    expect(result).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    expect(result.ok ? '' : result.error.message).not.toMatch(/Nothing was run/);
    expect(seen?.aborted).toBe(true);
    ends[0]!.resolve('landed all the same');
    await rest();
    expect(await tool({ id: 1 })).toBe('landed all the same');
  });

  test('an effect that stops on abort leaves a doubt with a consistent history', async () => {
    const semel = quick();
    const caller = new AbortController();
    const tool = semel.tool({
      ...base,
      run: (_args: Post, ctx) =>
        new Promise((_resolve, reject) =>
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
        ),
    });
    const call = tool.try({ id: 1 }, { signal: caller.signal });
    await rest();
    caller.abort();
    await call;
    await rest();
    const record = (await semel.doubts.list()).items[0]!;
    expect(record.error?.message).toMatch(/the caller gave up/);
    expect(record.error?.message).not.toMatch(/Nothing was run|Call again/);
  });

  test('if one of several sharers leaves, even the leader, the run continues for the others', async () => {
    const semel = quick();
    const { run, ran, ends } = slow();
    let seen: AbortSignal | undefined;
    const tool = semel.tool({
      ...base,
      dispatch: 'explicit',
      run: async (args: Post, ctx) => {
        seen = ctx.signal;
        const value = await run(args);
        await ctx.dispatch();
        return value;
      },
    });
    const callers = [new AbortController(), new AbortController(), new AbortController()] as const;
    const calls = callers.map(({ signal }) => tool.try({ id: 1 }, { signal }));
    await rest();
    callers[1].abort();
    expect(await calls[1]).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    callers[0].abort();
    expect(await calls[0]).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    expect(seen?.aborted).toBe(false);
    ends[0]!.resolve('done');
    expect(await calls[2]).toMatchObject({ ok: true, value: 'done' });
    expect(ran).toHaveLength(1);
  });

  test('when the last of several sharers leaves, the attempt ends', async () => {
    const semel = quick();
    const { run } = slow();
    const tool = semel.tool({ ...base, dispatch: 'explicit', run });
    const callers = [new AbortController(), new AbortController()] as const;
    const calls = callers.map(({ signal }) => tool.try({ id: 1 }, { signal }));
    await rest();
    callers[0].abort();
    callers[1].abort();
    expect(await Promise.all(calls)).toMatchObject([
      { error: { code: 'ABORTED' } },
      { error: { code: 'ABORTED' } },
    ]);
    expect((await semel.records.list()).items[0]).toMatchObject({ status: 'released' });
  });

  test('a waiter for another process is answered at once, without disturbing those who share its wait', async () => {
    const made = rig();
    const { run, ends } = slow();
    const here = made.semel.tool({ ...base, run });
    const there = made.another().tool({ ...base, run });
    const running = here({ id: 1 });
    await rest();
    const caller = new AbortController();
    const leader = there.try({ id: 1 }, { signal: caller.signal });
    const sharer = there.try({ id: 1 });
    await made.clock.advance(5_000);
    caller.abort();
    expect(await leader).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    ends[0]!.resolve('done');
    expect(await made.clock.until(sharer)).toMatchObject({ ok: true, value: 'done' });
    await running;
    const alone = new AbortController();
    const second = here({ id: 2 });
    await rest();
    const waiting = there.try({ id: 2 }, { signal: alone.signal });
    await made.clock.advance(5_000);
    alone.abort();
    expect(await waiting).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    ends[1]!.resolve('done');
    await second;
  });
});

describe('across processes', () => {
  test.each(['memory', 'sqlite'])('a waiter gets the winner’s value (%s)', async (kind) => {
    const path = join(folder, 'ledger.db');
    const made = rig();
    const options =
      kind === 'memory' ? { store: made.store, cache: false as const } : { store: `sqlite:${path}` };
    const quiet = { namespace: 'test', onWarning: () => undefined };
    await using one = createSemel({ ...options, ...quiet });
    await using two = createSemel({ ...options, ...quiet });
    const { run, ran, ends } = slow();
    const first = one.tool({ ...base, run })({ id: 1 });
    while (ran.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = two.tool({ ...base, run }).try({ id: 1, text: 'other words' });
    await new Promise((resolve) => setTimeout(resolve, 30));
    ends[0]!.resolve({ at: new Date(0) });
    expect(await first).toEqual({ at: new Date(0) });
    expect(await second).toMatchObject({
      ok: true,
      value: { at: new Date(0) },
      receipt: { executed: false, replayed: true, drift: ['text'] },
    });
    expect(ran).toHaveLength(1);
  });

  test.each([
    [new NotLanded('queue full'), 'NOT_LANDED'],
    [new Rejected('no such list'), 'FAILED'],
    [new Error('reset'), 'IN_DOUBT'],
  ] as const)('waiters share %s without attempts of their own', async (error, code) => {
    const made = rig();
    const { run, ran, ends } = slow();
    const first = made.semel.tool({ ...base, run }).try({ id: 1 });
    await rest();
    const waiters = [made.another(), made.another()].map((semel) =>
      semel.tool({ ...base, run }).try({ id: 1 }),
    );
    await made.clock.advance(100);
    ends[0]!.reject(error);
    const results = await made.clock.until(Promise.all([first, ...waiters]));
    expect(results.map((result) => (result.ok ? 'ok' : result.error.code))).toEqual([code, code, code]);
    expect(ran).toHaveLength(1);
  });

  test('a waiter for a repeatable effect hears what the winner’s caller hears', async () => {
    const made = rig();
    const { run, ends } = slow();
    const upsert = { ...base, effect: 'write-idempotent' } as const;
    const first = made.semel.tool({ ...upsert, run }).try({ id: 1 });
    await rest();
    const waiter = made
      .another()
      .tool({ ...upsert, run })
      .try({ id: 1 });
    await made.clock.advance(100);
    ends[0]!.reject(new Error('reset'));
    const results = await made.clock.until(Promise.all([first, waiter]));
    expect(results.map((result) => (result.ok ? 'ok' : [result.error.code, result.error.retriable]))).toEqual(
      [
        ['FAILED', true],
        ['FAILED', true],
      ],
    );
  });

  test('a repeatable effect with another content waits, and then runs', async () => {
    const made = rig();
    const { run, ran, ends } = slow();
    const upsert = { ...base, effect: 'write-idempotent' } as const;
    const first = made.semel.tool({ ...upsert, run })({ id: 1, text: 'a' });
    await rest();
    const other = made.another().tool({ ...upsert, run })({ id: 1, text: 'b' });
    await made.clock.advance(100);
    ends[0]!.resolve('A');
    await made.clock.advance(2_000);
    expect(ran).toEqual([
      { id: 1, text: 'a' },
      { id: 1, text: 'b' },
    ]);
    ends[1]!.resolve('B');
    expect(await made.clock.until(Promise.all([first, other]))).toEqual(['A', 'B']);
  });

  test('a waiter takes over what its winner left free', async () => {
    const made = rig();
    const lazy = { ...base, dispatch: 'explicit', lease: '10s', timeout: '1h' } as const;
    void made.semel.tool({ ...lazy, run: () => new Promise(() => undefined) }).try({ id: 1 });
    await rest();
    made.store.break('renew');
    const waiter = made.another().tool({
      ...lazy,
      run: async (_args: Post, ctx) => {
        await ctx.dispatch();
        return 'by the waiter';
      },
    });
    const call = waiter.try({ id: 1 });
    await made.clock.advance(12_000);
    made.store.repair();
    expect(await made.clock.until(call)).toMatchObject({
      ok: true,
      value: 'by the waiter',
      receipt: { executed: true, attempt: 2 },
    });
  });

  test('a waiter gets IN_DOUBT if its winner left after dispatch', async () => {
    const made = rig();
    const lease = { ...base, lease: '10s', timeout: '1h' } as const;
    void made.semel.tool({ ...lease, run: () => new Promise(() => undefined) }).try({ id: 1 });
    await rest();
    const call = made
      .another()
      .tool({ ...lease, run: () => expect.fail('not run') })
      .try({ id: 1 });
    made.store.break('renew');
    await made.clock.advance(12_000);
    expect(await made.clock.until(call)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  });

  test('a waiter never runs a newer generation', async () => {
    const made = rig();
    const { run, ran, ends } = slow();
    const short = { ...base, per: 'conversation', window: '1s' } as const;
    const there = { conversation: 'c' };
    const first = made.semel.tool({ ...short, run })({ id: 1 }, there);
    await rest();
    const waiter = made
      .another()
      .tool({ ...short, run })
      .try({ id: 1 }, there);
    await rest();
    ends[0]!.resolve('first');
    await first;
    // Asleep from before the end until long after the window; somebody forgot and pruned meanwhile.
    made.clock.jump(60_000);
    await made.store.prune(10);
    expect(await made.clock.until(waiter)).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
    expect(ran).toHaveLength(1);
  });

  test('waiting is bounded by `wait`', async () => {
    const made = rig();
    const { run } = slow();
    void made.semel.tool({ ...base, wait: '3s', run }).try({ id: 1 });
    await rest();
    const waiter = made
      .another()
      .tool({ ...base, wait: '3s', run })
      .try({ id: 1 });
    const from = made.clock.now();
    expect(await made.clock.until(waiter)).toMatchObject({ ok: false, error: { code: 'IN_FLIGHT' } });
    expect(made.clock.now() - from).toBeLessThan(3_100);
  });
});

describe('notAfter', () => {
  test('a call that comes too late is refused, and claims nothing', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => expect.fail('not run') });
    const result = await tool.try({ id: 1 }, { notAfter: made.clock.now() - 1 });
    expect(result).toMatchObject({ ok: false, error: { code: 'EXPIRED', retriable: false } });
    expect(await isEmpty(made)).toBe(true);
  });

  test('a waiter that would have to start too late is refused', async () => {
    const made = rig();
    const lazy = { ...base, dispatch: 'explicit', lease: '10s', timeout: '1h' } as const;
    void made.semel.tool({ ...lazy, run: () => new Promise(() => undefined) }).try({ id: 1 });
    await rest();
    made.store.break('renew');
    const late = made.another().tool({ ...lazy, run: () => expect.fail('not run') });
    const call = late.try({ id: 1 }, { notAfter: new Date(made.clock.now() + 5_000) });
    await made.clock.advance(12_000);
    made.store.repair();
    expect(await made.clock.until(call)).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
  });

  test('a late caller still gets the result of what ran in time', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => 'done' });
    await tool({ id: 1 });
    const late = { notAfter: made.clock.now() - 1 };
    const replayed = { ok: true, value: 'done', receipt: { replayed: true } };
    expect(await tool.try({ id: 1 }, late)).toMatchObject(replayed);
    const other = made.another().tool({ ...base, run: () => expect.fail('not run') });
    expect(await other.try({ id: 1 }, late)).toMatchObject(replayed);
  });

  test('what may have been done in time is in doubt, and `verify` is asked', async () => {
    const made = rig();
    const reset = (): Promise<string> => Promise.reject(new Error('reset'));
    const lost = { ...base, run: reset } as const;
    const late = { notAfter: made.clock.now() - 1 };
    const plain = made.semel.tool(lost);
    await plain.try({ id: 1 });
    expect(await plain.try({ id: 1 }, late)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    const verified = made.semel.tool({ ...lost, name: 'verified', verify: () => landed('found') });
    await verified.try({ id: 1 });
    expect(await verified.try({ id: 1 }, late)).toMatchObject({ ok: true, value: 'found' });
    const verdicts = [notLanded(), notLanded()];
    const gone = made.semel.tool({
      ...lost,
      name: 'gone',
      verifyAfter: 0,
      timeout: '1s',
      verify: () => verdicts.pop() ?? unsure(),
    });
    await gone.try({ id: 1 });
    await made.clock.advance(120_000);
    expect(await gone.try({ id: 1 }, late)).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
    expect((await made.semel.doubts.list()).items.map(({ contract }) => contract)).toEqual([base.name]);
  });

  test("a caller with time left is not refused because another caller's time is over", async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => 'done' });
    await made.semel.open();
    made.store.before = (method) => {
      if (method !== 'claim') return;
      made.store.before = undefined;
      made.clock.jump(10_000);
    };
    const hurried = tool.try({ id: 1 }, { notAfter: made.clock.now() + 5_000 });
    const patient = tool.try({ id: 1 });
    expect(await made.clock.until(hurried)).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
    expect(await made.clock.until(patient)).toMatchObject({ ok: true, value: 'done' });
  });

  test('a call in time is not', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => 'done' });
    expect(await tool({ id: 1 }, { notAfter: made.clock.now() + 1 })).toBe('done');
  });
});
