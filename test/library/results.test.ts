// What an effect returned: replayed deep-equal, or said to be omitted.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { afterAll, describe, expect, test } from 'vitest';
import { quick, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

const folder = mkdtempSync(join(tmpdir(), 'semel-results-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(['memory', 'sqlite'])('a replay is deep-equal to the first answer (%s)', (kind) => {
  const values: [string, unknown][] = [
    ['undefined', undefined],
    ['null', null],
    ['a date', new Date('2026-06-19T09:02:00.123Z')],
    ['an invalid date', new Date(Number.NaN)],
    ['a map', new Map<unknown, unknown>([[{ a: 1 }, new Set([1, 'x'])]])],
    ['a set', new Set([1, [2], null, undefined])],
    ['a bigint', 12345678901234567890n],
    ['bytes', new Uint8Array([0, 127, 255])],
    ['floats', new Float64Array([0.1, Number.NaN, Number.POSITIVE_INFINITY])],
    ['negative zero', -0],
    ['not a number', Number.NaN],
    ['infinity', Number.NEGATIVE_INFINITY],
    ['undefined members', { a: undefined, b: [undefined, 1] }],
    ['everything at once', { at: [new Map([['n', -0n]]), { d: new Date(0) }], $semel: 'mine', __x: [] }],
    ['text', 'Zoë 😀 \u0000 \u2028'],
  ];

  test.each(values)('%s', async (name, value) => {
    const store = kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'ledger.db')}`;
    await using semel = createSemel({ store, namespace: 'test', cache: false, onWarning: () => undefined });
    const tool = semel.tool({ ...base, run: (_args: { name: string }) => value });
    const first = await tool({ name });
    const second = await tool.try({ name });
    expect(first).toBe(value);
    expect(second.receipt.replayed).toBe(true);
    expect(second.ok ? second.value : 'refused').toStrictEqual(value);
    if (typeof value === 'number') expect(Object.is(second.ok && second.value, value)).toBe(true);
  });
});

test('plain JSON stays readable in the store', async () => {
  const made = rig();
  await made.semel.tool({ ...base, run: () => ({ id: 7, tags: ['a'] }) })({});
  const { items } = await made.store.list({ namespace: 'test', limit: 1 });
  expect(items[0]?.result?.text).toBe('{"id":7,"tags":["a"]}');
});

describe('what is not stored', () => {
  class Socket {
    readonly open = true;
  }

  test.each<[string, unknown, RegExp]>([
    ['a function', { send: () => 1 }, /result\.send is a function/],
    ['an instance of a class', { socket: new Socket() }, /result\.socket is an instance of Socket/],
    ['a cycle', cycle(), /refers back/],
    ['more than the limit', 'x'.repeat(2_000), /more than 1000 bytes/],
  ])(
    '%s: the effect counts as done, the caller has the value, and nobody runs it again',
    async (_title, value, why) => {
      const semel = quick({ limits: { resultBytes: 1_000 } });
      let ran = 0;
      const tool = semel.tool({
        ...base,
        run: (_args: unknown, ctx) => {
          ran += 1;
          ctx.note('msg_7');
          return value;
        },
      });
      const first = await tool.try({});
      expect(first).toMatchObject({ ok: true, receipt: { executed: true, remoteRef: 'msg_7' } });
      expect(first.ok && first.value).toBe(value);
      expect(first.receipt.omitted).toMatch(why);
      const record = (await semel.records.list()).items[0]!;
      expect(record).toMatchObject({ status: 'succeeded', remoteRef: 'msg_7' });
      expect(record.omitted).toMatch(why);
      const second = await tool.try({});
      expect(second).toMatchObject({
        ok: false,
        error: { code: 'RESULT_OMITTED', retriable: false, evidence: { remoteRef: 'msg_7' } },
        receipt: { replayed: true, remoteRef: 'msg_7' },
      });
      expect(second.ok ? '' : second.error.message).toMatch(why);
      expect(ran).toBe(1);
    },
  );

  test('the default limit is a megabyte', async () => {
    const semel = quick();
    const tool = semel.tool({ ...base, run: (args: { size: number }) => 'x'.repeat(args.size) });
    expect((await tool.try({ size: 1_000_000 })).receipt.omitted).toBeUndefined();
    expect((await tool.try({ size: 1_048_576 })).receipt.omitted).toMatch(/more than 1048576 bytes/);
  });
});

describe("`result: 'reference'`", () => {
  test('stores only what the tool names, and `onReplay` fetches the live value', async () => {
    const made = rig();
    const live = new Map([['pay_1', { state: 'pending' }]]);
    const seen: unknown[] = [];
    const tool = made.semel.tool({
      ...base,
      result: 'reference',
      run: (_args: { order: number }, ctx) => {
        ctx.note('pay_1');
        return { state: 'pending' };
      },
      onReplay: ({ args, remoteRef, settledAt, stored }) => {
        seen.push(args, remoteRef, settledAt, stored);
        return live.get(remoteRef ?? '') ?? { state: 'gone' };
      },
    });
    expect(await tool({ order: 1 })).toEqual({ state: 'pending' });
    expect((await made.store.list({ namespace: 'test', limit: 1 })).items[0]?.result).toEqual({
      text: null,
      omitted: 'only the reference is kept',
      remoteRef: 'pay_1',
    });
    live.set('pay_1', { state: 'paid' });
    expect(await tool({ order: 1 })).toEqual({ state: 'paid' });
    expect(seen).toEqual([{ order: 1 }, 'pay_1', new Date(made.clock.now()), undefined]);
  });

  test('without `onReplay`, a replay gives the reference', async () => {
    const semel = quick();
    const tool = semel.tool({
      ...base,
      result: 'reference',
      run: (_args: unknown, ctx) => {
        ctx.note('pay_1');
        return 1;
      },
    });
    await tool({});
    expect(await tool.try({})).toMatchObject({
      error: { code: 'RESULT_OMITTED' },
      receipt: { remoteRef: 'pay_1' },
    });
  });

  test('an `onReplay` that throws does not cause another run', async () => {
    const semel = quick();
    let ran = 0;
    const tool = semel.tool({
      ...base,
      run: (_args: unknown) => ++ran,
      onReplay: () => {
        throw new Error('the API is down');
      },
    });
    await tool({});
    const result = await tool.try({});
    expect(result).toMatchObject({ ok: false, error: { code: 'RESULT_OMITTED' } });
    expect(result.ok ? '' : result.error.message).toMatch(/the API is down/);
    expect(ran).toBe(1);
  });

  test('with a stored value, `onReplay` gets it', async () => {
    const semel = quick();
    const tool = semel.tool({
      ...base,
      run: (_args: unknown) => ({ n: 1 }),
      onReplay: ({ stored }) => ({ n: (stored?.n ?? 0) + 1 }),
    });
    await tool({});
    expect(await tool({})).toEqual({ n: 2 });
  });
});

function cycle(): unknown {
  const value: Record<string, unknown> = {};
  value.self = value;
  return value;
}

describe('what cannot be stored is said when it is returned, not first when a retry asks for it', () => {
  const untyped = (value: unknown) => (): unknown => value;

  test.each<[string, unknown, RegExp]>([
    ['a Response', new Response('x'), /result is an instance of Response/],
    ['a stream', { body: new Response('x').body }, /result\.body is an instance of ReadableStream/],
    ['a function', [() => 1], /result\[0\] is a function/],
    ['too much', 'x'.repeat(2_000_000), /more than 1048576 bytes/],
  ])('%s', async (_name, value, path) => {
    const { semel, warnings } = rig();
    const tool = semel.tool({ ...base, run: untyped(value) });
    for (const id of [1, 2]) await tool({ id });
    const said = warnings.filter((each) => !each.includes('in memory'));
    expect(said).toEqual([expect.stringMatching(path)]);
    expect(said[0]).toMatch(/^post: its value is not stored .*A retry .* gets RESULT_OMITTED/);
    await expect(tool({ id: 1 })).rejects.toMatchObject({ code: 'RESULT_OMITTED' });
  });

  test('a getter that throws: a finished effect is reported as done, never as "call again"', async () => {
    const { semel } = rig();
    let ran = 0;
    const run = (): unknown => {
      ran += 1;
      return {
        id: ran,
        get lazy(): string {
          throw new Error('not fetched yet');
        },
      };
    };
    const tool = semel.tool({ ...base, run });
    expect(await tool.try({})).toMatchObject({ ok: true, receipt: { executed: true } });
    expect(await tool.try({})).toMatchObject({ error: { code: 'RESULT_OMITTED' } });
    expect(ran).toBe(1);
  });

  test('by an `onWarning` that throws too: what was done is recorded as done', async () => {
    const { semel } = rig({
      onWarning: (message) => {
        if (message.includes('not stored')) throw new Error('the log is full');
      },
    });
    const tool = semel.tool({ ...base, run: untyped(() => 1) });
    expect(await tool.try({})).toMatchObject({ ok: true, receipt: { executed: true } });
    expect(await tool.try({})).toMatchObject({ error: { code: 'RESULT_OMITTED' } });
  });

  test('but not where a replay needs no stored value', async () => {
    const { semel, warnings } = rig();
    const run = untyped(() => 1);
    await semel.tool({ ...base, name: 'a', result: 'reference', run })({});
    await semel.tool({ ...base, name: 'b', onReplay: () => 1, run })({});
    await semel.tool({ name: 'c', effect: 'write-idempotent', run })({});
    expect(warnings.filter((each) => each.includes('not stored'))).toEqual([]);
  });
});

describe('a value with a toJSON is never replayed as what that returns', () => {
  const hidden = (value: object) => Object.defineProperty(value, 'toJSON', { value: () => 'other' });

  test.each<[string, () => unknown]>([
    ['hidden in an object', () => hidden({ id: 1 })],
    ['hidden in a list', () => ({ items: hidden([1, 2]) })],
    [
      'in the prototype of an object without one',
      () => ({ a: Object.create(null, { toJSON: { value: () => 1 } }) }),
    ],
  ])('%s', async (_name, make) => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, run: (): unknown => make() });
    await tool({});
    await expect(tool({})).rejects.toMatchObject({ code: 'RESULT_OMITTED' });
  });

  test('inherited from a built-in prototype', async () => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, run: (): unknown => ({ id: new Map([[1, [2]]]) }) });
    for (const prototype of [Object.prototype, Array.prototype]) {
      Object.defineProperty(prototype, 'toJSON', { value: () => 'other', configurable: true });
      try {
        await tool({ on: prototype === Array.prototype }).catch(() => undefined);
      } finally {
        Reflect.deleteProperty(prototype, 'toJSON');
      }
    }
    for (const on of [true, false]) {
      const again = await tool.try({ on });
      expect(again.ok ? again.value : again.error.code).not.toBe('other');
    }
  });
});

describe('a generator runs nothing by being called', () => {
  const ran: string[] = [];
  function* steps() {
    ran.push('step');
    yield 1;
  }
  async function* slowSteps() {
    ran.push('slow');
    yield 1;
  }

  test('so it is refused as `run`, `prepare` or `verify`', () => {
    const semel = quick();
    for (const part of ['run', 'prepare', 'verify', 'onReplay'])
      for (const generator of [steps, slowSteps, { *m() {} }.m])
        expect(() => semel.tool({ ...base, run: () => 1, [part]: generator } as never)).toThrow(
          expect.objectContaining({ code: 'CONTRACT_INVALID', path: part }),
        );
  });

  test('so it is refused as the effect of `once`', async () => {
    await expect(quick().once('x', 1, steps as () => unknown)).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'effect',
    });
  });

  test.each<[string, () => unknown]>([
    ['a generator', () => steps()],
    ['an async generator', async () => slowSteps()],
    ['a mapped one', () => ([1, 2].values() as unknown as number[]).map(() => ran.push('mapped'))],
    ['promises', () => [1, 2].map(async () => new Promise((later) => setTimeout(later, 1)))],
    ['a record of promises', () => ({ sent: 1, rest: Promise.resolve(2) })],
  ])('and one that `run` returns is in doubt, not done: %s', async (_name, run) => {
    const { semel } = rig();
    const result = await semel.tool({ ...base, run }).try({});
    expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(result.ok ? '' : String(result.error)).toMatch(/returned a generator/);
    const again = await semel.tool({ name: 'set', effect: 'write-idempotent', run }).try({});
    expect(again).toMatchObject({ ok: false, error: { code: 'FAILED', retriable: true } });
    expect(ran).toEqual([]);
  });

  test('a read may stream', async () => {
    const read = quick().tool({ name: 'read', effect: 'read', run: steps });
    expect([...((await read({})) as Iterable<number>)]).toEqual([1]);
  });
});
