// The lease of an attempt: kept alive while it runs, noticed when it is lost, and what a timeout leaves behind.

import { type AttemptContext, notLanded, type SemelError, systemClock } from 'semel';
import { describe, expect, test } from 'vitest';
import { leaveClaim } from '../../src/semel/index.ts';
import { afterOutage, gate, quick, type Rig, rest, rig, target } from './support.ts';

const base = {
  name: 'post',
  effect: 'write-non-idempotent',
  per: 'ever',
  lease: '30s',
  timeout: '1h',
} as const;

const unusual = { name: 'acme', window: '24h', hosts: ['127.0.0.1'], replaysErrors: true } as const;

describe('heartbeat', () => {
  test('a run of many leases is never taken over', async () => {
    const made = rig();
    const end = gate<string>();
    const call = made.semel.tool({ ...base, run: () => end.promise }).try({});
    await made.clock.advance(10 * 60_000);
    const record = (await made.semel.records.list()).items[0]!;
    expect(record).toMatchObject({ status: 'running', lapsed: false, attempts: 1 });
    end.resolve('done');
    expect(await call).toMatchObject({ ok: true, value: 'done', receipt: { attempt: 1 } });
  });

  test('it ends with the timeout: a hanging effect does not block for ever', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, timeout: '5m', run: () => new Promise(() => undefined) });
    const call = tool.try({});
    await made.clock.advance(5 * 60_000);
    expect(await call).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'unknown' });
  });

  test('a store that is down for a while costs nothing if no other worker takes over', async () => {
    const made = rig();
    const end = gate<string>();
    const call = made.semel.tool({ ...base, run: () => end.promise }).try({});
    await rest();
    made.store.break('renew');
    await made.clock.advance(2 * 60_000);
    made.store.repair();
    await made.clock.advance(60_000);
    end.resolve('done');
    expect(await made.clock.until(call)).toMatchObject({ ok: true, value: 'done' });
  });

  test('a claim that is left to its lease is held that long, also past a renewal that was on its way', async () => {
    const made = rig();
    const begun = await made.semel.begin(made.semel.tool({ ...base, run: () => undefined }), {});
    if (!begun.execute) throw new Error('it was not claimed');
    const passed = gate();
    made.store.before = async (method) => {
      if (method !== 'renew') return;
      made.store.before = undefined;
      await passed.promise;
    };
    await made.clock.advance(15_000);
    const left = leaveClaim(begun.attempt, 3_600_000);
    await rest();
    passed.resolve();
    expect(await left).toBe(true);
    await made.clock.advance(3_599_000);
    expect((await made.semel.records.list()).items[0]).toMatchObject({ lapsed: false, leaseLeftMs: 1_000 });
    await made.clock.advance(1_000);
    expect((await made.semel.records.list()).items[0]).toMatchObject({ lapsed: true });
    // Another process has it by now.
    const other = made.another();
    await other.doubts.resolve((await other.records.list()).items[0]!.ref, 'runAgain', { by: 'test' });
    expect(await leaveClaim(begun.attempt, 3_600_000)).toBe(false);
  });

  test('a lost lease aborts ctx.signal with LEASE_LOST, and says so', async () => {
    const made = rig();
    const events: string[] = [];
    made.semel.on('leaseLost', ({ key }) => events.push(key));
    const stopped = gate<SemelError>();
    const tool = made.semel.tool({
      ...base,
      run: (_args: unknown, ctx) =>
        new Promise((_resolve, reject) =>
          ctx.signal.addEventListener('abort', () => {
            stopped.resolve(ctx.signal.reason);
            reject(ctx.signal.reason);
          }),
        ),
    });
    const call = tool.try({});
    await rest();
    const record = (await made.semel.records.list()).items[0]!;
    await made.semel.doubts.resolve(record.ref, { landed: 'by hand' }, { force: true });
    await made.clock.advance(20_000);
    expect((await stopped.promise).code).toBe('LEASE_LOST');
    expect(events).toEqual([record.key]);
    expect(await call).toMatchObject({ ok: true, value: 'by hand' });
  });

  test('a machine that wakes up notices within ten seconds that another one has taken over', async () => {
    const made = rig();
    const { clock } = made;
    let asleepMs = 0;
    const laptop = made.another({ clock: { ...clock, mono: () => clock.mono() - asleepMs } });
    let stopped: SemelError | undefined;
    const run = (_args: unknown, { signal }: AttemptContext) =>
      new Promise<string>((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          stopped = signal.reason;
          reject(signal.reason);
        }),
      );
    const job = { ...base, lease: '15m', timeout: 'none', onDoubt: 'rerun' } as const;
    const call = laptop.tool({ ...job, run }).try({});
    await rest();
    asleepMs = 3_600_000;
    clock.jump(asleepMs);
    expect(await made.another().tool({ ...job, run: () => 'done' })({})).toBe('done');
    await clock.advance(10_000);
    expect(stopped).toMatchObject({ code: 'LEASE_LOST' });
    expect(await call).toMatchObject({ ok: true, value: 'done' });
  });

  test('a long lease is renewed at each third of it, however often it is looked at', async () => {
    const made = rig();
    const end = gate<string>();
    const call = made.semel.tool({ ...base, lease: '15m', run: () => end.promise }).try({});
    await made.clock.advance(16 * 60_000);
    expect(made.store.calls.filter((method) => method === 'renew')).toHaveLength(3);
    end.resolve('done');
    expect(await call).toMatchObject({ ok: true, value: 'done' });
  });

  test('an event loop that was blocked past the lease is noticed before anything is dispatched', async () => {
    const made = rig();
    let crossed = 0;
    const slow = gate();
    const tool = made.semel.tool({
      ...base,
      dispatch: 'explicit',
      run: async (_args: unknown, ctx) => {
        await slow.promise;
        await ctx.dispatch();
        crossed += 1;
        return 'first';
      },
    });
    const first = tool.try({});
    await rest();
    made.clock.jump(60_000);
    const other = made.another().tool({
      ...base,
      dispatch: 'explicit',
      run: async (_args: unknown, ctx) => {
        await ctx.dispatch();
        crossed += 1;
        return 'second';
      },
    });
    expect(await other({})).toBe('second');
    slow.resolve();
    expect(await first).toMatchObject({ ok: true, value: 'second' });
    expect(crossed).toBe(1);
  });

  test('a worker with a blocked event loop continues if no other took its key', async () => {
    const made = rig();
    const slow = gate();
    const tool = made.semel.tool({
      ...base,
      dispatch: 'explicit',
      run: async (_args: unknown, ctx) => {
        await slow.promise;
        await ctx.dispatch();
        return 'done';
      },
    });
    const call = tool.try({});
    await rest();
    made.clock.jump(60_000);
    slow.resolve();
    expect(await call).toMatchObject({ ok: true, value: 'done' });
  });

  describe('once its lease is over, ctx.fetch sends only what nobody else has taken over', () => {
    const sending = async (how: object, asleepMs = 0) => {
      const made = rig();
      const { clock } = made;
      const startedAt = clock.mono();
      // On Linux the clock that timers and leases are counted by stands still while the machine sleeps.
      const sleepy = { ...clock, mono: () => Math.max(startedAt, clock.mono() - asleepMs) };
      const first = made.another({ clock: sleepy });
      const { url, requests } = await target();
      const slow = gate();
      const definition = { ...base, ...how, verifyAfter: '1s', verify: () => notLanded() } as const;
      const send = (wait?: Promise<void>) => async (_args: unknown, ctx: AttemptContext) => {
        await wait;
        await ctx.fetch(url, { method: 'POST' });
        return 'sent';
      };
      const call = first.tool({ ...definition, run: send(slow.promise) }).try({});
      await rest();
      return { made, requests, slow, call, other: made.another().tool({ ...definition, run: send() }) };
    };
    const ways = [
      ['with a timeout', {}],
      ['without one', { timeout: 'none' }],
      ['with keys that the provider replays errors under', { provider: unusual }],
    ] as const;

    test.each(ways)('a process that stood still: %s', async (_name, how) => {
      const { made, requests, slow, call, other } = await sending(how);
      // Nothing of it has run since, not even its timers.
      made.clock.jump(26 * 3_600_000);
      expect(await other({})).toBe('sent');
      slow.resolve();
      expect(await call).toMatchObject({ ok: true, value: 'sent' });
      expect(requests).toHaveLength(1);
    });

    test.each(ways)('a machine that slept: %s', async (_name, how) => {
      const asleepMs = 26 * 3_600_000;
      const { made, requests, slow, call, other } = await sending(how, asleepMs);
      made.clock.jump(asleepMs);
      expect(await other({})).toBe('sent');
      slow.resolve();
      expect(await call).toMatchObject({ ok: true, value: 'sent' });
      expect(requests).toHaveLength(1);
    });

    test('one that could not reach the store', async () => {
      const { made, requests, slow, call, other } = await sending({ timeout: 'none' });
      made.store.break('renew');
      await made.clock.advance(5 * 60_000);
      expect(await other({})).toBe('sent');
      slow.resolve();
      expect(await made.clock.until(call)).toMatchObject({ ok: true, value: 'sent' });
      expect(requests).toHaveLength(1);
    });

    test('a redirect is followed only while the call is still held', async () => {
      const made = rig();
      const [arrived, answer] = [gate(), gate()];
      const { url, requests } = await target((request, response) => {
        if (request.url !== '/moved') return void response.end('{}');
        arrived.resolve();
        void answer.promise.then(() => response.writeHead(307, { location: '/here' }).end());
      });
      const definition = { ...base, verifyAfter: '1s', verify: () => notLanded() } as const;
      const to = (path: string) => async (_args: unknown, ctx: AttemptContext) => {
        await ctx.fetch(url + path, { method: 'POST', body: '1' });
        return 'sent';
      };
      const call = made.semel.tool({ ...definition, run: to('/moved') }).try({});
      await arrived.promise;
      made.clock.jump(26 * 3_600_000);
      expect(await made.another().tool({ ...definition, run: to('/here') })({})).toBe('sent');
      answer.resolve();
      expect(await call).toMatchObject({ ok: true, value: 'sent' });
      expect(requests.map(({ path }) => path)).toEqual(['/moved', '/here']);
    });

    test('continues if nobody took over', async () => {
      const { made, requests, slow, call } = await sending({ timeout: 'none' });
      made.clock.jump(26 * 3_600_000);
      slow.resolve();
      expect(await call).toMatchObject({ ok: true, value: 'sent', receipt: { attempt: 1 } });
      expect(requests).toHaveLength(1);
    });

    test('what is harmless to repeat needs no store', async () => {
      const { made, requests, slow, call } = await sending({ effect: 'write-idempotent', per: undefined });
      made.store.break('renew');
      made.clock.jump(10 * 60_000);
      slow.resolve();
      expect(await made.clock.until(call)).toMatchObject({ ok: true, value: 'sent' });
      expect(requests).toHaveLength(1);
    });
  });

  test('a real event loop that is really blocked', async () => {
    const semel = quick({ clock: systemClock });
    const tool = semel.tool({
      ...base,
      lease: '60ms',
      dispatch: 'explicit',
      run: async (_args: unknown, ctx) => {
        const until = performance.now() + 100;
        while (performance.now() < until);
        await ctx.dispatch();
        return 'done';
      },
    });
    expect(await tool({})).toBe('done');
  });
});

describe('what listens to ctx.signal runs as part of its call', () => {
  const undoing = async (effect: 'read' | 'write-non-idempotent', leave: (made: Rig) => Promise<unknown>) => {
    const made = rig();
    const { semel } = made;
    const undo = semel.tool({ ...base, name: 'undo', per: 'turn', run: () => 'undone' });
    const undone = gate<unknown>();
    const tool = semel.tool({
      ...base,
      effect,
      timeout: '30s',
      run: (_args: unknown, ctx) =>
        new Promise((_resolve, reject) =>
          ctx.signal.addEventListener('abort', () => {
            undo.try({}).then(undone.resolve);
            reject(ctx.signal.reason);
          }),
        ),
    });
    // Started first, as somebody else: the two have their timers in common.
    const other = semel.within({ caller: 'bob', conversation: 'b', turn: '1' }, () =>
      semel.once('other', 1, () => new Promise((resolve) => setTimeout(resolve, 5))),
    );
    const call = semel.within({ caller: 'ann', conversation: 'a', turn: '1' }, () =>
      tool.try({}).catch(() => 0),
    );
    await rest();
    await leave(made);
    await Promise.all([call, other]);
    const own = await semel.within({ caller: 'ann', conversation: 'a', turn: '1' }, () => undo.try({}));
    return [await undone.promise, own];
  };
  const asOne = [
    { ok: true, value: 'undone', receipt: { replayed: false } },
    { ok: true, value: 'undone', receipt: { replayed: true } },
  ];

  test('when its timeout is over', async () => {
    expect(await undoing('write-non-idempotent', ({ clock }) => clock.advance(30_000))).toMatchObject(asOne);
  });

  test('when a read has taken too long', async () => {
    expect(await undoing('read', ({ clock }) => clock.advance(30_000))).toMatchObject(asOne);
  });

  test('when the lease is lost', async () => {
    const lose = async ({ semel, clock }: Rig) => {
      const record = (await semel.records.list({ contract: base.name })).items[0]!;
      await semel.doubts.resolve(record.ref, { landed: 'by hand' }, { force: true });
      await clock.advance(20_000);
    };
    expect(await undoing('write-non-idempotent', lose)).toMatchObject(asOne);
  });
});

describe('a timeout', () => {
  test('aborts ctx.signal with a TimeoutError', async () => {
    const made = rig();
    const reasons: unknown[] = [];
    const tool = made.semel.tool({
      ...base,
      timeout: '5s',
      run: (_args: unknown, ctx) =>
        new Promise(() => ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))),
    });
    const call = tool.try({});
    await made.clock.advance(5_000);
    await call;
    expect(reasons).toMatchObject([
      { name: 'TimeoutError', message: 'post ran longer than its timeout of 5s' },
    ]);
  });

  test('what succeeds after it still settles the record', async () => {
    const made = rig();
    const end = gate<string>();
    const tool = made.semel.tool({ ...base, timeout: '5s', run: () => end.promise });
    const call = tool.try({});
    await made.clock.advance(5_000);
    expect(await call).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    end.resolve('late, but landed');
    await rest();
    expect((await made.semel.doubts.list()).items).toEqual([]);
    expect(await tool({})).toBe('late, but landed');
  });

  test('what is refused after it settles the record too', async () => {
    const made = rig();
    const end = gate<string>();
    const { NotLanded } = await import('semel');
    const tool = made.semel.tool({ ...base, timeout: '5s', run: () => end.promise });
    const call = tool.try({});
    await made.clock.advance(5_000);
    await call;
    end.reject(new NotLanded('never left the queue'));
    await rest();
    expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'released', doubt: false });
  });

  test('counts for verify as well, with what was left of it', async () => {
    const made = rig();
    const end = gate<string>();
    const tool = made.semel.tool({
      ...base,
      timeout: '5s',
      run: () => end.promise,
      verify: () => new Promise<never>(() => undefined),
    });
    const call = tool.try({});
    await made.clock.advance(3_000);
    end.reject(new Error('reset'));
    await made.clock.advance(2_000);
    const result = await call;
    expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT', cause: { message: 'reset' } } });
    expect(result.ok ? '' : result.error.message).toMatch(
      /: reset\. .*`verify` could not tell: post ran longer than its timeout/,
    );
  });

  test('counts for the verify of a later call', async () => {
    const made = rig();
    let fails = true;
    const tool = made.semel.tool({
      ...base,
      timeout: '5s',
      run: (_args: unknown) => {
        if (fails) throw new Error('reset');
        return 'done';
      },
      verify: afterOutage(() => new Promise<never>(() => undefined)),
    });
    await tool.try({});
    fails = false;
    const call = tool.try({});
    await made.clock.advance(5_000);
    const result = await call;
    expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(result.ok ? '' : result.error.message).toMatch(
      /`verify` could not tell: post ran longer than its timeout/,
    );
  });

  test("`timeout: 'none'` lets a run take its time", async () => {
    const made = rig();
    const end = gate<string>();
    const call = made.semel.tool({ ...base, timeout: 'none', run: () => end.promise }).try({});
    await made.clock.advance(6 * 3_600_000);
    end.resolve('done');
    expect(await call).toMatchObject({ ok: true, value: 'done' });
  });
});

describe('workers that die before the line', () => {
  test('are followed by others, up to `maxAttempts`; then the record is POISON until somebody reopens it', async () => {
    const made = rig();
    const dying = { ...base, dispatch: 'explicit', maxAttempts: 3 } as const;
    let ran = 0;
    for (let worker = 1; worker <= 3; worker += 1) {
      void made
        .another()
        .tool({
          ...dying,
          run: () => {
            ran += 1;
            return new Promise(() => undefined);
          },
        })
        .try({});
      await rest();
      made.clock.jump(31_000);
    }
    const tool = made.another().tool({
      ...dying,
      run: async (_args: unknown, ctx) => {
        await ctx.dispatch();
        return 'done';
      },
    });
    const result = await tool.try({});
    expect(ran).toBe(3);
    expect(result).toMatchObject({ ok: false, error: { code: 'POISON', retriable: false } });
    await made.semel.records.reopen(result.receipt.key);
    expect(await tool({})).toBe('done');
  });
});
