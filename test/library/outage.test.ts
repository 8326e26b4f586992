// A store that does not answer: nothing that is remembered runs unguarded, nothing that was done is lost.

import { NotLanded } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, isEmpty, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

test.each(['write-non-idempotent', 'irreversible'] as const)(
  '%s is refused, and nothing runs',
  async (effect) => {
    const made = rig();
    made.store.break();
    let ran = 0;
    const tool = made.semel.tool({ ...base, effect, run: () => ++ran });
    const result = await made.clock.until(tool.try({}));
    expect(result).toMatchObject({ ok: false, error: { code: 'STORE_UNAVAILABLE', retriable: true } });
    expect(result.ok ? '' : result.error.message).toMatch(/connection lost.*Nothing was run/s);
    expect(ran).toBe(0);
    made.store.repair();
    expect(await tool({})).toBe(1);
  },
);

test('a short outage is waited out, and the caller notices nothing', async () => {
  const made = rig();
  const tool = made.semel.tool({ ...base, run: () => 'done' });
  await made.semel.open();
  made.store.break('claim');
  const call = tool({});
  await made.clock.advance(50);
  made.store.repair();
  expect(await made.clock.until(call)).toBe('done');
});

test('a claim whose answer was lost is given back as soon as the store answers', async () => {
  const made = rig();
  const tool = made.semel.tool({ ...base, run: () => 'done' });
  await made.semel.open();
  const inner = made.store.claim;
  made.store.claim = async (request) => {
    await inner(request);
    throw new Error('connection lost');
  };
  expect(await made.clock.until(tool.try({}))).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } });
  made.store.claim = inner;
  await made.clock.advance(1_000);
  expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'released' });
  expect(await tool({})).toBe('done');
});

test.each(['the newer form was claimed once', 'older forms too'])(
  'a claim whose answer was lost is released under the newer form that a link points to: %s',
  async (forms) => {
    const made = rig();
    const refuse = () => {
      throw new NotLanded('not now');
    };
    await made.semel.tool({ ...base, name: 'newer', was: [{ name: base.name }], run: refuse }).try({});
    const was = forms === 'older forms too' ? { was: [{ name: 'oldest' }] } : {};
    const tool = made.semel.tool({ ...base, ...was, run: () => 'done' });
    const inner = made.store.claim;
    made.store.claim = async (request) => {
      await inner(request);
      throw new Error('connection lost');
    };
    expect(await made.clock.until(tool.try({}))).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } });
    made.store.claim = inner;
    await made.clock.advance(1_000);
    const { items } = await made.semel.records.list();
    expect(new Set(items.map(({ status }) => status))).toEqual(new Set(['released']));
    expect(await tool({})).toBe('done');
  },
);

test('a repeatable effect runs, and the receipt says unguarded', async () => {
  const made = rig();
  made.store.break();
  let ran = 0;
  const tool = made.semel.tool({ name: 'set', effect: 'write-idempotent', run: () => ++ran });
  expect(await made.clock.until(tool.try({}))).toMatchObject({
    ok: true,
    value: 1,
    receipt: { unguarded: true, executed: true },
  });
});

test('its errors are typed like those of a guarded run', async () => {
  const made = rig();
  made.store.break();
  const tool = made.semel.tool({
    name: 'set',
    effect: 'write-idempotent',
    run: () => {
      throw new Error('reset');
    },
  });
  await expect(made.clock.until(tool({}))).rejects.toMatchObject({ code: 'FAILED', retriable: true });
});

test('`unguarded: false` refuses it too', async () => {
  const made = rig({ unguarded: false });
  made.store.break();
  let ran = 0;
  const tool = made.semel.tool({ name: 'set', effect: 'write-idempotent', run: () => ++ran });
  expect(await made.clock.until(tool.try({}))).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } });
  expect(ran).toBe(0);
});

test('read needs no store', async () => {
  const made = rig();
  made.store.break();
  expect(await made.semel.tool({ name: 'search', effect: 'read', run: () => 'found' })({})).toBe('found');
});

test('done but not recorded: UNRECORDED with the value; settled in the background when the store is back', async () => {
  const made = rig();
  let ran = 0;
  const tool = made.semel.tool({ ...base, run: () => ({ id: ++ran }) });
  await made.semel.open();
  made.store.break('settle');
  const result = await made.clock.until(tool.try({}));
  expect(result).toMatchObject({
    ok: false,
    error: { code: 'UNRECORDED', retriable: false, value: { id: 1 } },
    receipt: { executed: true },
  });
  expect(result.ok ? '' : result.error.message).toMatch(/is done.*do not repeat it/s);
  expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'running' });
  made.store.repair();
  await made.clock.advance(2_000);
  expect(await tool({})).toEqual({ id: 1 });
  expect(ran).toBe(1);
});

test('an ending in doubt that could not be recorded is recorded later', async () => {
  const made = rig();
  const tool = made.semel.tool({
    ...base,
    run: () => {
      throw new Error('reset');
    },
  });
  await made.semel.open();
  made.store.break('settle');
  const result = await made.clock.until(tool.try({}));
  expect(result).toMatchObject({ ok: false, error: { code: 'STORE_UNAVAILABLE' } });
  expect(result.ok ? '' : result.error.message).toMatch(/reset/);
  expect(result.ok ? '' : result.error.message).not.toMatch(/Nothing was run/);
  made.store.repair();
  await made.clock.advance(2_000);
  expect((await made.semel.doubts.list()).items).toHaveLength(1);
});

test('storeDown and storeUp are emitted once each, with how long the store was down', async () => {
  const made = rig();
  const told: unknown[] = [];
  made.semel.on('storeDown', ({ error }) => told.push(error));
  made.semel.on('storeUp', ({ downForMs }) => told.push(downForMs));
  const tool = made.semel.tool({ ...base, run: () => 'done' });
  made.store.break();
  await made.clock.until(tool.try({ id: 1 }));
  await made.clock.until(tool.try({ id: 2 }));
  made.clock.jump(60_000);
  made.store.repair();
  await tool({ id: 3 });
  expect(told).toHaveLength(2);
  expect(told[0]).toMatch(/connection lost/);
  expect(told[1]).toBeGreaterThanOrEqual(60_000);
});

test('a store that throws on opening is asked again at the next call', async () => {
  const made = rig();
  made.store.break();
  const tool = made.semel.tool({ ...base, run: () => 'done' });
  await expect(made.clock.until(made.semel.open())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  made.store.repair();
  expect(await made.semel.open()).toMatchObject({ kind: 'memory' });
  expect(await tool({})).toBe('done');
  expect(await isEmpty(made)).toBe(false);
});

test('a waiter survives an outage of the store', async () => {
  const made = rig();
  const end = gate<string>();
  const first = made.semel.tool({ ...base, run: () => end.promise })({});
  await rest();
  const waiter = made
    .another()
    .tool({ ...base, run: () => 'never' })
    .try({});
  await made.clock.advance(100);
  made.store.break('read');
  await made.clock.advance(200);
  made.store.repair();
  end.resolve('done');
  expect(await made.clock.until(Promise.all([first, waiter]))).toMatchObject([
    'done',
    { ok: true, value: 'done' },
  ]);
});

test('after three failed calls in a row, calls are refused without asking the store, except one per second', async () => {
  const made = rig();
  await made.semel.open();
  let asked = 0;
  made.store.break();
  const inner = made.store.claim;
  made.store.claim = async (request) => {
    asked += 1;
    return inner(request);
  };
  let ran = 0;
  const tool = made.semel.tool({ ...base, run: () => ++ran });
  for (let n = 0; n < 3; n += 1) await made.clock.until(tool.try({ n }));
  const askedBefore = asked;
  for (let n = 0; n < 20; n += 1) {
    // Nothing is waited for: the clock stands still.
    const result = await tool.try({ n });
    expect(result).toMatchObject({
      ok: false,
      error: { code: 'STORE_UNAVAILABLE', retriable: true, retryAfterMs: expect.any(Number) },
    });
    expect(result.ok ? '' : result.error.message).toMatch(/failed 3 times in a row.*connection lost/s);
  }
  expect(asked).toBe(askedBefore);

  // Giving back what may have been claimed asks as well, and finds out as well as a call does.
  await made.clock.advance(1_000);
  await made.clock.until(Promise.all(Array.from({ length: 10 }, (_, n) => tool.try({ n: 100 + n }))));
  expect(asked - askedBefore).toBeLessThanOrEqual(4);
  expect(ran).toBe(0);

  made.store.repair();
  await made.clock.advance(1_000);
  expect(await tool({ n: 3 })).toBe(1);
  // The first success closes it for all.
  expect(await Promise.all([tool({ n: 4 }), tool({ n: 5 })])).toEqual([2, 3]);
});

test('requests for a running effect are sent even while new calls fail fast', async () => {
  const made = rig();
  const end = gate<string>();
  const tool = made.semel.tool({ ...base, run: () => end.promise });
  const call = tool.try({ n: 0 });
  await rest();
  made.store.break('claim');
  for (let n = 1; n < 5; n += 1) await made.clock.until(tool.try({ n }));
  end.resolve('done');
  expect(await made.clock.until(call)).toMatchObject({ ok: true, value: 'done' });
});

describe('a store of your own that never answers', () => {
  const never = () => new Promise<never>(() => {});

  test.each(['claim', 'settle'] as const)('%s is not waited for for ever', async (method) => {
    const made = rig();
    await made.semel.open();
    const inner = made.store[method];
    made.store[method] = never as never;
    let ran = 0;
    const tool = made.semel.tool({ ...base, run: () => ++ran });
    const code = method === 'claim' ? 'STORE_UNAVAILABLE' : 'UNRECORDED';
    expect(await made.clock.until(tool.try({}))).toMatchObject({ ok: false, error: { code } });
    expect(ran).toBe(method === 'claim' ? 0 : 1);
    made.store[method] = inner as never;
  });

  test('a signal ends the wait at once, and a claim that was won after all is given back', async () => {
    const made = rig();
    await made.semel.open();
    const inner = made.store.claim;
    const answered = gate();
    made.store.claim = (async (request: never) => {
      await answered.promise;
      return inner(request);
    }) as never;
    const leaving = new AbortController();
    const tool = made.semel.tool({ ...base, run: () => 'done' });
    const call = tool.try({}, { signal: leaving.signal });
    await rest();
    leaving.abort();
    expect(await call).toMatchObject({ ok: false, error: { code: 'ABORTED' }, receipt: { executed: false } });
    made.store.claim = inner;
    answered.resolve();
    await made.clock.advance(1_000);
    expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'released' });
    expect(await tool({})).toBe('done');
  });

  test('a claim that was won under a newer form of its contract is released there', async () => {
    const made = rig();
    const refuse = () => {
      throw new NotLanded('not now');
    };
    await made.semel.tool({ ...base, name: 'newer', was: [{ name: base.name }], run: refuse }).try({});
    const answered = gate();
    made.store.after = (method) => (method === 'claim' ? answered.promise : undefined);
    const leaving = new AbortController();
    const run = () => expect.fail('it was started');
    const call = made.semel.tool({ ...base, run }).try({}, { signal: leaving.signal });
    await rest();
    leaving.abort();
    expect(await call).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    answered.resolve();
    await made.clock.advance(1_000);
    const { items } = await made.semel.records.list();
    expect(items.map(({ status }) => status)).toEqual(['released', 'released']);
  });

  test('a call that waited for a claim continues when the claim is released', async () => {
    const made = rig();
    await made.semel.open();
    const answered = gate();
    const leaving = new AbortController();
    const definition = { ...base, run: () => 'done' };
    const tool = made.semel.tool(definition);
    made.store.after = (method) => (method === 'claim' ? answered.promise : undefined);
    const left = tool.try({}, { signal: leaving.signal });
    await rest();
    made.store.after = undefined;
    const waiting = made.another().tool(definition).try({});
    await rest();
    leaving.abort();
    expect(await left).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
    answered.resolve();
    expect(await made.clock.until(waiting)).toMatchObject({
      ok: true,
      value: 'done',
      receipt: { executed: true },
    });
  });

  test('close ends calls that wait for it, and itself', async () => {
    const made = rig();
    await made.semel.open();
    made.store.claim = never as never;
    made.store.close = never;
    const call = made.semel.tool({ ...base, run: () => 'done' }).try({});
    await rest();
    const closing = made.semel.close({ grace: '1s' });
    await made.clock.until(closing.catch((error) => error));
    expect(await call).toMatchObject({ ok: false });
  });
});

test('a sweep that only asks runs nothing while the store is away, also what is harmless to repeat', async () => {
  const made = rig();
  let ran = 0;
  const definition = { name: 'set', effect: 'write-idempotent', run: () => ++ran } as const;
  made.store.before = (method) => {
    if (method === 'settle') throw new Error('connection lost');
  };
  await made.clock.until(made.semel.tool(definition).try({ id: 1 }));
  await made.clock.advance(120_000);
  const other = made.another();
  other.tool(definition);
  expect((await other.doubts.list()).items).toHaveLength(1);
  made.store.break('claim');
  expect(await made.clock.until(other.doubts.sweep({ execute: false }))).toMatchObject({ open: 1 });
  expect(ran).toBe(1);
});
