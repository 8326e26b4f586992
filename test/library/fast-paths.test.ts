// What goes past the store's queue, or past the store: glances, late calls, audits, unguarded runs. Each case was a bug.

import { AlreadyLanded, createSemel, notLanded, Rejected, type Store, unsure } from 'semel';
import { memoryStore } from 'semel/memory';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { gate, quick, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;
const quiet = { namespace: 'test', onWarning: () => undefined };

describe('a glance', () => {
  test("does not bypass a wrapper around the store's claims", async () => {
    const inner = memoryStore();
    await createSemel({ ...quiet, namespace: 'a', store: inner }).once('post', 1, () => 'of a');
    const tenant = <T extends { namespace: string }>(request: T): T => ({ ...request, namespace: 'b' });
    const wrapped: Store = {
      ...inner,
      claim: (request) => inner.claim(tenant(request)),
      settle: (request) => inner.settle(tenant(request)),
    };
    const semel = createSemel({ ...quiet, namespace: 'a', store: wrapped, cache: false });
    expect(await semel.once('post', 1, () => 'of b')).toBe('of b');
  });

  test('that throws leaves it to the claim', async () => {
    const inner = memoryStore();
    const glance = () => {
      throw new Error('not now');
    };
    const store: Store = {
      ...inner,
      claim: Object.assign((request: Parameters<Store['claim']>[0]) => inner.claim(request), { glance }),
    };
    const semel = createSemel({ ...quiet, store, cache: false });
    expect(await semel.once('post', 1, () => 'done')).toBe('done');
    expect(await semel.once('post', 1, () => expect.fail('not run'))).toBe('done');
  });

  test('a call that polls does not starve the one it waits for', async () => {
    const semel = quick({ cache: false });
    const tool = semel.tool({
      ...base,
      ifBusy: 'fail',
      run: () => new Promise((resolve) => setTimeout(resolve, 20, 'done')),
    });
    await semel.open();
    const first = tool({});
    let asked = 0;
    while (!(await tool.try({})).ok && asked < 1_000_000) asked += 1;
    expect(asked).toBeLessThan(1_000_000);
    await first;
  });

  test('what fetches the live value is one flight, is waited for, and may not call itself', async () => {
    const semel = quick();
    const end = gate<string>();
    let fetched = 0;
    const tool = semel.tool({
      ...base,
      run: () => 'stored',
      onReplay: () => {
        fetched += 1;
        return end.promise;
      },
    });
    await tool({});
    const calls = Promise.all([tool({}), tool({})]);
    await rest();
    const closing = semel.close();
    end.resolve('live');
    expect(await calls).toEqual(['live', 'live']);
    expect(fetched).toBe(1);
    await closing;
    const inner = quick();
    const own: { tool?: (args: object) => Promise<unknown> } = {};
    own.tool = inner.tool({ ...base, run: (): unknown => 1, onReplay: () => own.tool?.({}) });
    await own.tool({});
    await expect(own.tool({})).rejects.toMatchObject({
      code: 'RESULT_OMITTED',
      cause: { code: 'REENTRANT' },
    });
  });
});

describe('too late', () => {
  test('asking does not lift the limit', async () => {
    const made = rig();
    let ran = 0;
    const answers = [notLanded(), unsure('not yet'), unsure('not at once')];
    const tool = made.semel.tool({
      ...base,
      verify: () => answers.pop() ?? unsure(),
      run: () => {
        ran += 1;
        throw new Error('reset');
      },
    });
    const notAfter = made.clock.now() + 60_000;
    await tool.try({}, { notAfter });
    made.clock.jump(3_600_000);
    expect(await tool.try({}, { notAfter })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    await made.semel.doubts.sweep();
    expect(ran).toBe(1);
    expect((await made.semel.doubts.list()).items).toEqual([]);
  });

  test('while another process executes it, the outcome is awaited', async () => {
    const made = rig();
    const end = gate<string>();
    const first = made.semel.tool({ ...base, run: () => end.promise })({});
    await rest();
    const other = made.another().tool({ ...base, run: () => expect.fail('not run') });
    const late = other.try({}, { notAfter: made.clock.now() - 1 });
    await rest();
    end.resolve('done');
    expect(await made.clock.until(late)).toMatchObject({ ok: true, value: 'done' });
    await first;
  });

  test('observe says what would have been done', async () => {
    const made = rig({ mode: 'observe' });
    const tool = made.semel.tool({ ...base, run: () => 'done' });
    const notAfter = made.clock.now() - 1;
    const observed = async () => (await tool.try({}, { notAfter })).receipt.observed;
    expect(await observed()).toBe('refuse: EXPIRED');
    await tool({});
    expect(await observed()).toBe('replay');
  });

  test('calls without a deadline share an execution that started in time', async () => {
    const made = rig({ limits: { resultBytes: 10 } });
    const end = gate<string>();
    const tool = made.semel.tool({ ...base, run: () => end.promise });
    const first = tool({}, { notAfter: made.clock.now() + 60_000 });
    await rest();
    const second = tool({});
    await rest();
    end.resolve('longer than ten bytes');
    expect(await Promise.all([first, second])).toEqual(Array(2).fill('longer than ten bytes'));
  });
});

describe('begin, observed and never settled', () => {
  const begun = async () => {
    const made = rig({ mode: 'observe' });
    const tool = made.semel.tool({ ...base, timeout: '5s', run: () => 'unused' });
    await made.semel.begin(tool, {});
    return made;
  };

  test('ends with its timeout', async () => {
    const made = await begun();
    await made.clock.advance(6_000);
    const [record] = (await made.semel.records.list()).items;
    expect(record).toMatchObject({ status: 'unknown' });
  });

  test('is not waited for by close', async () => {
    const made = await begun();
    await made.clock.until(made.semel.close({ grace: 10 }));
  });
});

describe('the audit', () => {
  const replays = async ({ semel, store }: ReturnType<typeof rig>) => {
    const [record] = (await semel.records.list()).items;
    return (await store.history('test', record?.key ?? '')).filter(({ type }) => type === 'replayed');
  };

  test('close waits for what a timer has begun to write', async () => {
    const made = rig();
    await made.semel.once('post', 1, () => 1);
    await made.semel.once('post', 1, () => 1);
    const slow = gate();
    made.store.before = (method) => (method === 'append' ? slow.promise : undefined);
    await made.clock.advance(600);
    const closing = made.semel.close();
    await rest();
    slow.resolve();
    await closing;
    expect(made.store.calls.filter((method) => method === 'append')).toHaveLength(1);
  });

  test('each generation has its own', async () => {
    const made = rig();
    const ask = () => made.semel.once('post', 1, () => 1);
    await ask();
    await ask();
    await made.clock.advance(1_000);
    const [record] = (await made.semel.records.list()).items;
    await made.semel.records.forget(record?.key ?? '');
    await ask();
    await ask();
    await made.clock.advance(1_000);
    expect(new Set((await replays(made)).map(({ generation }) => generation)).size).toBe(2);
  });

  test('a conflict is noted however many replays were', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => 1 });
    for (let n = 0; n < 2_000; n += 1) {
      await tool({ n });
      await tool({ n });
    }
    await tool({ n: 1 }, { key: 'k' });
    await tool.try({ n: 2 }, { key: 'k' });
    await made.clock.advance(1_000);
    await rest();
    expect((await made.store.history('test', 'post/=k')).map(({ type }) => type)).toContain('conflict');
  });
});

describe('without the store', () => {
  function away(definition: object, run: (tries: number) => unknown) {
    const made = rig();
    made.store.break('claim');
    let tries = 0;
    const tool = made.semel.tool({
      name: 'price.set',
      effect: 'write-idempotent',
      retry: { tries: 3, backoff: '1s' },
      run: () => run(++tries),
      ...definition,
    });
    return { ...made, tool, tries: () => tries };
  }

  test('what had landed already is a success', async () => {
    const { tool, clock, tries } = away({}, () => {
      throw new AlreadyLanded('there');
    });
    expect(await clock.until(tool({}))).toBe('there');
    expect(tries()).toBe(1);
  });

  test.each([
    ['the tool', {}, new Rejected('no')],
    ['classify', { classify: { E_NO: 'rejected' } }, Object.assign(new Error('no'), { code: 'E_NO' })],
  ])('what %s says was refused is not tried again', async (_who, definition, error) => {
    const { tool, clock, tries } = away(definition, () => {
      throw error;
    });
    expect(await clock.until(tool.try({}))).toMatchObject({
      ok: false,
      error: { code: 'FAILED', retriable: false },
    });
    expect(tries()).toBe(1);
  });

  test('it does not start after its limit, however long the store was waited for', async () => {
    const { tool, clock, tries } = away({}, () => 'written');
    const late = await clock.until(tool.try({}, { notAfter: clock.now() + 10 }));
    expect(late).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
    expect(tries()).toBe(0);
  });

  test('close ends the tries', async () => {
    const { semel, tool, clock, tries } = away({ retry: { tries: 9, backoff: '30s' } }, () => {
      throw new Error('reset');
    });
    const call = tool.try({});
    await clock.advance(2_000);
    const from = clock.now();
    await clock.until(semel.close({ grace: 10 }));
    await call;
    expect(clock.now() - from).toBeLessThan(1_000);
    expect(tries()).toBe(1);
  });
});

test('a call that was made before close is finished, also where the store was not open yet', async () => {
  const semel = quick();
  const call = semel.once('post', 1, () => 'done');
  await semel.close();
  expect(await call).toBe('done');
});

test('options that a framework passes on with its own are taken; what others call our fields is named', async () => {
  const tool = quick().tool({ ...base, run: () => 'done' });
  const passedOn = { toolCallId: 't-1', messages: [], abortSignal: undefined, experimental_context: {} };
  expect(await tool({}, passedOn as never)).toBe('done');
  await expect(tool({}, { conversationId: 'c' } as never)).rejects.toThrow(/`conversation`/);
});

describe('a process that stood still', () => {
  test('does not make what somebody saw younger than it is', async () => {
    const made = rig();
    const tool = made.semel.tool({
      ...base,
      timeout: '30s',
      run: () => {
        throw new Error('reset');
      },
    });
    await tool.try({});
    const ref = (await made.semel.doubts.list()).items[0]?.ref ?? '';
    made.store.before = (method) => {
      if (method === 'list') made.clock.jump(120_000);
    };
    await expect(made.semel.doubts.resolve(ref, 'notLanded')).rejects.toThrow(/may still land/);
    made.store.before = undefined;
    await made.semel.doubts.resolve(ref, 'notLanded');
  });

  test('hands no attempt to the framework that has ended meanwhile', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, lease: '10s', timeout: '12s', run: () => 'unused' });
    const renewed = gate();
    const settled = gate();
    made.store.before = (method) => {
      // The answer to the claim comes late, so that the lease is renewed first; that takes longer than the timeout.
      if (method === 'claim') made.clock.jump(7_000);
      return method === 'renew' ? renewed.promise : method === 'settle' ? settled.promise : undefined;
    };
    const begun = made.semel.begin(tool, {});
    await rest();
    await made.clock.advance(20_000);
    renewed.resolve();
    await rest();
    settled.resolve();
    expect(await made.clock.until(begun)).toMatchObject({
      execute: false,
      result: { ok: false, error: { code: 'IN_DOUBT' } },
    });
  });
});

test('two processes without the store never send one key, also in the same millisecond', async () => {
  const keys: string[] = [];
  const clock = { ...systemClock, now: () => 1 };
  for (let process = 0; process < 2; process += 1) {
    const store: Store = { ...memoryStore(), claim: () => Promise.reject(new Error('away')) };
    const semel = createSemel({ ...quiet, store, clock });
    const write = semel.tool({
      name: 'price.set',
      effect: 'write-idempotent',
      run: (_args: object, { key }) => void keys.push(key),
    });
    await write({});
  }
  expect(new Set(keys).size).toBe(2);
});
