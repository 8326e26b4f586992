// How long a record answers for its key, and what runs every time.

import { day, NotLanded, Rejected, week } from 'semel';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { quick, rest, rig } from './support.ts';

const minute = 60_000;
const hourMs = 60 * minute;
const dayMs = 24 * hourMs;

function counting(definition: object) {
  const made = rig();
  let ran = 0;
  const tool = made.semel.tool({
    name: 'post',
    effect: 'write-non-idempotent',
    per: 'conversation',
    run: (_args: unknown) => ++ran,
    ...definition,
  });
  const call = (args: object = {}) => tool.try(args, { conversation: 'c', turn: '1' });
  return { ...made, tool, call, ran: () => ran };
}

describe('windows', () => {
  test.each([
    ['write-non-idempotent', {}, dayMs],
    ['write-non-idempotent of high stakes', { stakes: 'high' }, 7 * dayMs],
    ['irreversible', { effect: 'irreversible' }, 30 * dayMs],
    ['one of its own', { window: '90m' }, 90 * minute],
  ])('%s answers until its window is over, to the millisecond', async (_title, definition, windowMs) => {
    const { call, clock, ran } = counting(definition);
    await call();
    clock.jump(windowMs - 1);
    expect(await call()).toMatchObject({ value: 1, receipt: { replayed: true } });
    clock.jump(1);
    expect(await call()).toMatchObject({ value: 2, receipt: { replayed: false } });
    expect(ran()).toBe(2);
  });

  test('a new generation has a new key at the provider', async () => {
    const keys: string[] = [];
    const { call, clock } = counting({ run: (_args: unknown, ctx: { key: string }) => keys.push(ctx.key) });
    await call();
    clock.jump(2 * dayMs);
    await call();
    expect(new Set(keys).size).toBe(2);
  });

  test('a calendar period is answered for until its end and its window after that', async () => {
    const { call, clock, ran } = counting({ per: day('UTC'), window: '1h', identity: ['id'] });
    await call({ id: 1 });
    clock.jump(14 * hourMs);
    expect(new Date(clock.now()).toISOString()).toBe('2026-06-19T23:02:00.000Z');
    expect((await call({ id: 1 })).receipt.replayed).toBe(true);
    clock.jump(hourMs);
    await call({ id: 1 });
    expect(ran()).toBe(2);
  });

  test('a weekly digest that is called daily is sent weekly', async () => {
    const { call, clock, ran } = counting({ per: week('Europe/Paris'), window: '1h' });
    for (let today = 0; today < 40; today += 1) {
      await call();
      clock.jump(dayMs);
    }
    // From Friday 19 June on, 40 days touch seven ISO weeks.
    expect(ran()).toBe(7);
  });

  test('failures answer for the failure window only', async () => {
    const made = counting({
      failureWindow: '5m',
      run: () => {
        throw new Rejected('no');
      },
    });
    await made.call();
    made.clock.jump(5 * minute - 1);
    expect((await made.call()).receipt.replayed).toBe(true);
    made.clock.jump(1);
    expect((await made.call()).receipt.replayed).toBe(false);
  });

  test('what was released answers for nothing', async () => {
    let ran = 0;
    const { call } = counting({
      run: () => {
        ran += 1;
        throw new NotLanded('later');
      },
    });
    await call();
    await call();
    expect(ran).toBe(2);
  });

  test('expiry needs no pruning, and pruning removes only what has expired', async () => {
    const { call, clock, semel } = counting({});
    await call();
    expect(await semel.records.prune()).toBe(0);
    clock.jump(dayMs);
    expect(await semel.records.prune()).toBe(1);
    expect((await semel.records.list()).items).toEqual([]);
  });

  test('pruning leaves open questions alone, however old', async () => {
    const { call, clock, semel } = counting({
      run: () => {
        throw new Error('reset');
      },
    });
    await call();
    clock.jump(400 * dayMs);
    expect(await semel.records.prune()).toBe(0);
    expect((await semel.doubts.list()).items).toHaveLength(1);
  });
});

describe('per ever', () => {
  test('keeps the key for good: pruned to a tombstone, it still prevents the effect and reports what it knows', async () => {
    const { call, clock, semel, ran } = counting({
      per: 'ever',
      run: (_args: unknown, ctx: { note(ref: string): void }) => {
        ctx.note('msg_9');
        return { id: 9, text: 'longer than a key '.repeat(9) };
      },
    });
    await call();
    clock.jump(3 * 365 * dayMs);
    expect(await semel.records.prune()).toBe(1);
    expect(await semel.records.prune()).toBe(0);
    const later = await call();
    expect(later).toMatchObject({
      ok: false,
      error: { code: 'RESULT_OMITTED', evidence: { remoteRef: 'msg_9' } },
      receipt: { remoteRef: 'msg_9', replayed: true },
    });
    expect(later.ok ? '' : later.error.message).toMatch(/was done at 2026-06-19T09:02:00.000Z/);
    const record = (await semel.records.list()).items[0]!;
    expect(record).toMatchObject({ status: 'succeeded', args: undefined, value: undefined });
    expect(ran()).toBe(0);
  });

  test('a refusal is not kept for good', async () => {
    let ran = 0;
    const { call, clock } = counting({
      per: 'ever',
      run: () => {
        ran += 1;
        throw new Rejected('no');
      },
    });
    await call();
    clock.jump(hourMs);
    await call();
    expect(ran).toBe(2);
  });
});

describe('classes that are not remembered', () => {
  test('write-idempotent always runs: A, B, A are three writes', async () => {
    const made = rig();
    const written: unknown[] = [];
    const tool = made.semel.tool({
      name: 'status.set',
      effect: 'write-idempotent',
      run: (args: { id: number; value: string }) => written.push(args.value),
    });
    for (const value of ['A', 'B', 'A']) await tool({ id: 1, value });
    expect(written).toEqual(['A', 'B', 'A']);
    const { items } = await made.semel.records.list();
    expect(items.map(({ status, args }) => [status, args])).toEqual(
      expect.arrayContaining([
        ['succeeded', { id: 1, value: 'A' }],
        ['succeeded', { id: 1, value: 'B' }],
      ]),
    );
  });

  test('also while its last run is in the cache of this process', async () => {
    const made = rig({ cache: {} });
    let ran = 0;
    const tool = made.semel.tool({ name: 'set', effect: 'write-idempotent', run: () => ++ran });
    await tool({});
    await tool({});
    expect(ran).toBe(2);
  });

  test('what a dead worker left unfinished is run again', async () => {
    const made = rig();
    const set = { name: 'set', effect: 'write-idempotent', lease: '10s', timeout: '1h' } as const;
    void made.semel.tool({ ...set, run: () => new Promise(() => undefined) }).try({});
    await rest();
    made.clock.jump(11_000);
    expect(await made.another().tool({ ...set, run: () => 'again' })({})).toBe('again');
  });

  test('read is not recorded, runs each time, and its own errors pass as they are', async () => {
    const made = rig();
    let ran = 0;
    const broken = new RangeError('no such page');
    const read = made.semel.tool({
      name: 'search',
      effect: 'read',
      run: (args: { q: string }) => {
        ran += 1;
        if (args.q === '') throw broken;
        return args.q;
      },
    });
    expect([await read({ q: 'a' }), await read({ q: 'a' })]).toEqual(['a', 'a']);
    await expect(read({ q: '' })).rejects.toBe(broken);
    expect(await read.try({ q: '' })).toMatchObject({ ok: false, error: { code: 'FAILED', cause: broken } });
    expect(ran).toBe(4);
    expect(made.store.calls).toEqual([]);
  });

  test('a read accepts args that are not plain data', async () => {
    const made = rig();
    const read = made.semel.tool({
      name: 'search',
      effect: 'read',
      run: (args: { pick: () => string }) => args.pick(),
    });
    expect(await read({ pick: () => 'picked' })).toBe('picked');
  });
});

describe('the cache of this process', () => {
  test('answers without the store, for a while, and not after an operator’s act', async () => {
    const made = rig({ cache: {} });
    let ran = 0;
    const tool = made.semel.tool({ name: 'post', effect: 'irreversible', per: 'ever', run: () => ++ran });
    await tool({});
    const before = made.store.calls.length;
    expect(await tool({})).toBe(1);
    expect(made.store.calls.length).toBe(before);
    await made.clock.advance(6_000);
    expect(await tool({})).toBe(1);
    expect(made.store.calls.length).toBeGreaterThan(before);
    const { key } = (await tool.try({})).receipt;
    await made.semel.records.forget(key);
    expect(await tool({})).toBe(2);
  });

  test('an earlier reader cannot change what a later one reads', async () => {
    const made = rig({ cache: {} });
    const tool = made.semel.tool({
      name: 'post',
      effect: 'irreversible',
      per: 'ever',
      run: () => ({ list: [1] }),
    });
    const first = await tool({});
    first.list.push(2);
    const second = await tool({});
    second.list.push(3);
    expect(await tool({})).toEqual({ list: [1] });
  });

  test('a replay that was under way while somebody forgot the record does not bring it back', async () => {
    const made = rig({ cache: {} });
    let ran = 0;
    const tool = made.semel.tool({ name: 'post', effect: 'irreversible', per: 'ever', run: () => ++ran });
    const { key } = (await tool.try({})).receipt;
    await made.clock.advance(6_000);
    const held = Promise.withResolvers<void>();
    made.store.before = (method) => (method === 'resolve' ? held.promise : undefined);
    const forgetting = made.semel.records.forget(key);
    await rest();
    expect(await tool({})).toBe(1);
    held.resolve();
    await forgetting;
    expect(await tool({})).toBe(2);
  });

  test('nor does one whose answer is heard only after it was forgotten', async () => {
    const made = rig({ cache: {} });
    let ran = 0;
    const tool = made.semel.tool({ name: 'post', effect: 'irreversible', per: 'ever', run: () => ++ran });
    const { key } = (await tool.try({})).receipt;
    await made.clock.advance(6_000);
    const held = Promise.withResolvers<void>();
    made.store.after = (method) => (method === 'claim' ? held.promise : undefined);
    const replaying = tool({});
    await rest();
    await made.semel.records.forget(key);
    made.store.after = undefined;
    held.resolve();
    expect(await replaying).toBe(1);
    expect(await tool({})).toBe(2);
  });
});

describe('the clock of the system', () => {
  afterEach(() => void vi.useRealTimers());

  test('a timer of more than 24 days does not fire at once, and can be cleared in any part of it', () => {
    vi.useFakeTimers();
    const fired: string[] = [];
    const days = 86_400_000;
    systemClock.setTimeout(() => fired.push('long'), 60 * days);
    const cleared = systemClock.setTimeout(() => fired.push('cleared'), 60 * days, 'background');
    vi.advanceTimersByTime(30 * days);
    expect(fired).toEqual([]);
    systemClock.clearTimeout(cleared);
    vi.advanceTimersByTime(30 * days - 1);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['long']);
  });

  test('a tool may have a timeout of months', async () => {
    const run = () => new Promise((resolve) => setTimeout(() => resolve('ok'), 20));
    const tool = quick().tool({ name: 'long', effect: 'irreversible', per: 'ever', timeout: '30d', run });
    expect(await tool({ id: 1 })).toBe('ok');
  });
});
