// A replay from memory is found by what was asked, without a digest. Whatever holds for a replay from the store holds
// for it. Each case asks at least three times: the second call finds the record by its key, the third by its name.

import { channel } from 'node:diagnostics_channel';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { day, Rejected } from 'semel';
import { describe, expect, test } from 'vitest';
import { quick, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

// biome-ignore lint/suspicious/noExplicitAny: one helper for tools of all shapes
type Any = any;

function cached(definition: object = {}, options: object = {}) {
  const made = rig({ cache: {}, ...options });
  let ran = 0;
  const tool = made.semel.tool({ ...base, run: () => ++ran, ...definition } as Any) as Any;
  return {
    ...made,
    tool,
    ran: () => ran,
    /** How often the store is asked meanwhile. */
    async asked(work: () => Promise<unknown>): Promise<number> {
      const before = made.store.calls.length;
      await work();
      return made.store.calls.length - before;
    },
  };
}

async function thrice(call: () => Promise<unknown>): Promise<readonly unknown[]> {
  return [await call(), await call(), await call()];
}

describe('the value', () => {
  const values: Readonly<Record<string, unknown>> = {
    'a text': 'x',
    null: null,
    undefined: undefined,
    'a list of lists': [[1, [2, { a: [] }]], []],
    'nested objects': { a: { b: { c: [{ d: null }] } }, e: '' },
    dates: { at: new Date(5), more: [new Map([['a', new Set([1n])]])] },
    'what looks like a tag': { $semel: 'Date', value: 1 },
    'a member called __proto__': { deep: JSON.parse('{"__proto__": {"a": 1}, "b": {"c": 2}}') },
    'more levels than are copied': JSON.parse(`${'['.repeat(150)}${']'.repeat(150)}`),
  };

  test.each(Object.keys(values))('is equal to the first, and private: %s', async (name) => {
    const { tool, asked } = cached({ run: () => values[name] });
    await tool({ id: 1 });
    const found: unknown[] = [];
    expect(await asked(async () => found.push(...(await thrice(() => tool({ id: 1 })))))).toBe(0);
    for (const value of found) {
      expect(value).toStrictEqual(values[name]);
      if (typeof value === 'object' && value !== null) {
        for (const part of Object.values(value)) {
          if (Array.isArray(part)) part.push('changed');
          else if (typeof part === 'object' && part !== null) Object.assign(part, { changed: true });
        }
        Object.assign(value, { changed: true });
      }
    }
    expect(await tool({ id: 1 })).toStrictEqual(values[name]);
  });

  test('is that of the args as they are now', async () => {
    const { tool, ran } = cached({ run: (args: { id: number }) => args.id });
    const args = { id: 1 };
    expect(await thrice(() => tool(args))).toEqual([1, 1, 1]);
    args.id = 2;
    expect(await thrice(() => tool(args))).toEqual([2, 2, 2]);
    expect(ran()).toBe(0);
  });

  test('may be an error', async () => {
    const { tool } = cached({
      run: () => {
        throw new Rejected('no such order');
      },
    });
    for (const _ of [1, 2, 3, 4])
      expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'FAILED' } });
  });

  test('is fetched each time where the tool fetches it', async () => {
    let fetched = 0;
    const { tool } = cached({ onReplay: () => `live ${++fetched}` });
    expect(await thrice(() => tool({}))).toEqual([1, 'live 1', 'live 2']);
  });

  test('comes with the receipt that the store would give', async () => {
    const { tool, another } = cached({ identity: ['id'] });
    await tool({ id: 1, text: 'a' });
    const told = await thrice(() => tool.try({ id: 1, text: 'a' }));
    const uncached = another({ cache: false }).tool({
      ...base,
      identity: ['id'],
      run: () => 1,
    } as Any) as Any;
    for (const each of told) expect(each).toEqual(await uncached.try({ id: 1, text: 'a' }));
  });
});

describe('what it is found by', () => {
  const calls: readonly (readonly [string, object, readonly (readonly [unknown, object])[]])[] = [
    [
      'args',
      {},
      [
        [{ a: 1 }, {}],
        [{ a: '1' }, {}],
        [[1], {}],
        ['1', {}],
        [1, {}],
        [{}, {}],
      ],
    ],
    [
      'again',
      {},
      [
        ['x', {}],
        ['x', { again: 'x' }],
        ['x', { again: 'y' }],
        ['"x""x"', {}],
        [['x'], {}],
      ],
    ],
    [
      'turn',
      { per: 'turn' },
      [
        [1, { conversation: 'c', turn: 't' }],
        [1, { conversation: 'c', turn: 'u' }],
        [1, { conversation: 'd', turn: 't' }],
        [1, { conversation: 'd', turn: 't', again: 'x' }],
      ],
    ],
    [
      'conversation',
      { per: 'conversation' },
      [
        [1, { conversation: 'c' }],
        [1, { conversation: 'd' }],
      ],
    ],
    [
      'run',
      { per: 'run' },
      [
        [1, { run: 'c' }],
        [1, { run: 'd' }],
      ],
    ],
    [
      'day',
      { per: day('UTC') },
      [
        [1, { at: 0 }],
        [1, { at: 90_000_000 }],
        [1, { at: 180_000_000 }],
      ],
    ],
    [
      'own keys',
      {},
      [
        [1, { key: 'a' }],
        [1, { key: 'b' }],
        [1, {}],
        [1, { key: 'a', again: 'x' }],
      ],
    ],
  ];
  test.each(calls)('is all that the key is made of: %s', async (_, definition, different) => {
    const { tool, ran, asked } = cached(definition);
    const rounds: unknown[][] = [];
    const round = async () => {
      const values: unknown[] = [];
      for (const [args, options] of different) values.push(await tool(args, options));
      rounds.push(values);
    };
    await round();
    expect(await asked(async () => thrice(round))).toBe(0);
    expect(ran()).toBe(different.length);
    for (const each of rounds) expect(each).toEqual(rounds[0]);
    expect(new Set(rounds[0]).size).toBe(different.length);
  });

  test('is of one tool', async () => {
    const { semel, tool } = cached();
    const other = semel.tool({ ...base, name: 'other', run: () => 'other' }) as Any;
    expect(await thrice(() => tool({ id: 1 }))).toEqual([1, 1, 1]);
    expect(await thrice(() => other({ id: 1 }))).toEqual(['other', 'other', 'other']);
  });

  test('is the ambient identity at the time of the call', async () => {
    const { semel, tool } = cached({ per: 'turn' });
    const inTurn = (turn: string) => semel.within({ conversation: 'c', turn }, () => tool(1));
    expect(await thrice(() => inTurn('a'))).toEqual([1, 1, 1]);
    expect(await thrice(() => inTurn('b'))).toEqual([2, 2, 2]);
    expect(await inTurn('a')).toBe(1);
    expect(await tool.try(1)).toMatchObject({ error: { code: 'NO_IDENTITY' } });
    const at = new Date(0);
    const daily = semel.tool({ ...base, name: 'daily', per: day('UTC'), run: () => Math.random() });
    await semel.within({ at }, async () => {
      const [first, again] = await thrice(() => daily({}));
      expect(again).toBe(first);
      at.setTime(90_000_000);
      expect(await daily({})).not.toBe(first);
    });
  });
});

describe('who gets it', () => {
  test('no other caller, unless the contract shares', async () => {
    const { tool, ran } = cached();
    expect(await thrice(() => tool(1, { caller: 'ann' }))).toEqual([1, 1, 1]);
    for (const caller of ['bob', undefined])
      expect(await tool.try(1, { caller })).toMatchObject({ ok: false, error: { code: 'NOT_PERMITTED' } });
    expect(await tool(1, { caller: 'ann' })).toBe(1);
    expect(ran()).toBe(1);
    const shared = cached({ share: true });
    await thrice(() => shared.tool(1, { caller: 'ann' }));
    expect(await shared.tool(1, { caller: 'bob' })).toBe(1);
  });

  test('not a caller with the same key and other args', async () => {
    const { tool } = cached();
    await thrice(() => tool({ id: 1 }, { key: 'k' }));
    expect(await tool.try({ id: 2 }, { key: 'k' })).toMatchObject({ error: { code: 'KEY_CONFLICT' } });
  });

  test('not a caller without permission, one that has given up, or a call on a closed instance', async () => {
    const { semel, tool } = cached({ permissions: ['pay'] });
    const may = { permissions: ['pay'] };
    await thrice(() => tool(1, may));
    expect(await tool.try(1)).toMatchObject({ error: { code: 'NOT_PERMITTED' } });
    expect(await tool.try(1, { ...may, version: '7' })).toMatchObject({
      error: { code: 'VERSION_MISMATCH' },
    });
    expect(await tool.try(1, { ...may, signal: AbortSignal.abort() })).toMatchObject({ ok: false });
    const closing = semel.close();
    expect(await tool.try(1, may)).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } });
    await closing;
  });

  test('a caller that is too late to run it', async () => {
    const { tool, clock } = cached();
    await thrice(() => tool(1));
    expect(await tool(1, { notAfter: clock.now() - 1 })).toBe(1);
  });

  test('a call that its framework makes once more in another turn', async () => {
    const { tool, ran } = cached({ per: 'turn' });
    const id = { conversation: 'c', toolCallId: 'call_9fK2mQ4xZ81LpT0bVd73' };
    expect(await thrice(() => tool(1, { ...id, turn: 'a' }))).toEqual([1, 1, 1]);
    expect(await thrice(() => tool(1, { ...id, turn: 'b' }))).toEqual([1, 1, 1]);
    expect(ran()).toBe(1);
  });

  test('nobody where calls are only observed', async () => {
    const { tool } = cached({ mode: 'observe' });
    expect(await thrice(() => tool(1))).toEqual([1, 2, 3]);
  });
});

describe('how long it is kept', () => {
  test('as long as the cache says', async () => {
    const { tool, asked, clock } = cached();
    await thrice(() => tool(1));
    await clock.advance(4_999);
    expect(await asked(() => tool(1))).toBe(0);
    await clock.advance(2);
    expect(await asked(() => tool(1))).toBeGreaterThan(0);
    expect(await asked(() => thrice(() => tool(1)))).toBe(0);
  });

  test('not once this process has seen that it is gone', async () => {
    const { semel, another, clock } = rig({ cache: {} });
    let ran = 0;
    const tool = semel.tool({ ...base, run: (_: number) => ++ran });
    expect(await clock.until(thrice(() => tool(1)))).toEqual([1, 1, 1]);
    const { key } = await semel.keyOf(tool, 1);
    await another().records.forget(key, { by: 'ann', note: 'again' });
    expect(await tool(1)).toBe(1);
    expect(await semel.records.get(key)).toMatchObject({ expired: true });
    expect(await clock.until(tool(1))).toBe(2);
  });

  test('not past the end of its record', async () => {
    const { tool, clock } = cached({ per: 'run', window: '2s' });
    const run = { run: 'r' };
    expect(await thrice(() => tool(1, run))).toEqual([1, 1, 1]);
    clock.jump(1_999);
    expect(await tool(1, run)).toBe(1);
    clock.jump(2);
    expect(await thrice(() => tool(1, run))).toEqual([2, 2, 2]);
  });

  test('not past the end of its record where the machine slept meanwhile', async () => {
    const { another, clock } = rig({ cache: {} });
    let asleepMs = 0;
    let ran = 0;
    const laptop = another({ clock: { ...clock, mono: () => clock.mono() - asleepMs } });
    const tool = laptop.tool({ ...base, per: 'run', window: '2s', run: (_: number) => ++ran });
    const run = { run: 'r' };
    expect(await thrice(() => tool(1, run))).toEqual([1, 1, 1]);
    asleepMs = 3_600_000;
    clock.jump(asleepMs);
    expect(await thrice(() => tool(1, run))).toEqual([2, 2, 2]);
  });

  test('until somebody decides about it here', async () => {
    const { semel, tool } = cached();
    await thrice(() => tool(1));
    const { receipt } = await tool.try(1);
    await semel.records.forget(receipt.key);
    expect(await thrice(() => tool(1))).toEqual([2, 2, 2]);
  });

  test('while there is room: the oldest goes first', async () => {
    const { tool, asked } = cached({}, { cache: { maxBytes: 3_000 } });
    for (const id of [1, 2, 3, 4, 5, 6, 7, 8]) await thrice(() => tool(id));
    expect(await asked(() => tool(8))).toBe(0);
    expect(await asked(() => tool(1))).toBeGreaterThan(0);
  });
});

describe('what is reported about it', () => {
  test('each replay to current listeners', async () => {
    const { semel, tool } = cached();
    await thrice(() => tool(1));
    const heard: unknown[] = [];
    const stop = semel.on('replayed', (event) => heard.push(event));
    await thrice(() => tool(1));
    stop();
    await tool(1);
    const published: unknown[] = [];
    const note = (event: unknown) => published.push(event);
    channel('semel:replayed').subscribe(note);
    await tool(1);
    channel('semel:replayed').unsubscribe(note);
    expect(heard).toHaveLength(3);
    expect(published).toEqual([heard[0]]);
    expect(heard[0]).toMatchObject({ namespace: 'test', contract: 'post', fence: 1 });
  });

  test('the history counts each of them, by caller and wording', async () => {
    const { semel, tool, clock } = cached({ identity: ['id'] });
    const { receipt } = await tool.try({ id: 1, text: 'a' });
    const ask = (times: number, text: unknown, options: object) =>
      Array.from({ length: times }).reduce<Promise<unknown>>(
        (before) => before.then(() => tool({ id: 1, text }, options)),
        rest(),
      );
    const counts = async () => {
      const history = await semel.records.history(receipt.key);
      const replayed = history.filter(({ type }) => type === 'replayed');
      const sums: Record<string, number> = {};
      for (const { detail } of replayed) {
        const name = `${detail.run} ${detail.drift ?? ''}`;
        sums[name] = (sums[name] ?? 0) + Number(detail.times ?? 1);
      }
      return sums;
    };
    await ask(3, 'a', { run: 'x' });
    await ask(4, 'a', { run: 'y' });
    await ask(2, 'b', { run: 'y' });
    await ask(1, 'a', { run: 'x' });
    expect(await counts()).toEqual({ 'x ': 4, 'y ': 4, 'y text': 2 });
    await ask(2, 'a', { run: 'x' });
    await clock.advance(1_000);
    await ask(3, 'a', { run: 'x' });
    await clock.advance(70_000);
    await ask(3, 'a', { run: 'x' });
    expect(await counts()).toEqual({ 'x ': 12, 'y ': 4, 'y text': 2 });
  });

  test('in which fields this call is worded differently, whatever the last one said', async () => {
    const { tool } = cached({ identity: ['id'], volatile: ['at'] });
    await tool({ id: 1, text: 'a', more: { n: 1 }, at: 1 });
    const drift = async (args: object) =>
      (await tool.try({ id: 1, at: Math.random(), ...args })).receipt.drift;
    for (const _ of [1, 2, 3]) {
      expect(await drift({ text: 'a', more: { n: 1 } })).toEqual([]);
      expect(await drift({ more: { n: 1 }, text: 'a' })).toEqual([]);
      expect(await drift({ text: 'b', more: { n: 1 } })).toEqual(['text']);
      expect(await drift({ text: 'a', more: { n: 2 } })).toEqual(['more']);
      expect(await drift({ text: 'a' })).toEqual(['more']);
      expect(await drift({ text: 'a', more: { n: 1 }, less: 1 })).toEqual(['less']);
    }
    const listed = cached({ content: ['text'] });
    await listed.tool({ id: 1, text: 'a' });
    for (const text of ['a', 'b', 'b', undefined, 'a', 'a'])
      expect((await listed.tool.try({ id: 1, text })).receipt.drift).toEqual(text === 'a' ? [] : ['text']);
  });
});

test('a loop of replays does not starve timers', async () => {
  const semel = quick();
  const tool = semel.tool({ ...base, run: () => 1 });
  await tool({});
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  }, 5);
  let asked = 0;
  while (!isOver && asked < 1_000_000) {
    await tool({});
    asked += 1;
  }
  expect(isOver).toBe(true);
});

test('a tool that is redefined for each request is not kept', async () => {
  const { semel } = rig({ cache: {} });
  async function request(): Promise<WeakRef<object>> {
    const tool = semel.tool({ ...base, run: () => 1 } as Any) as Any;
    await thrice(() => tool({ id: 1 }));
    return new WeakRef(tool.contract);
  }
  const first = await request();
  await request();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // A weak reference is let go in a later turn only.
  await expect
    .poll(() => {
      collect();
      return first.deref() === undefined;
    })
    .toBe(true);
});

test('its memory is bounded, also where what was asked is too long to be stored', async () => {
  const { tool, asked } = cached({}, { cache: { maxBytes: 1_000_000 } });
  const long = (id: number) => tool({ id, text: 'x'.repeat(300_000) });
  for (let id = 0; id < 6; id += 1) expect(await asked(() => thrice(() => long(id)))).toBeLessThan(4);
  // The last ones are still there, the first ones made room for them.
  expect(await asked(() => long(5))).toBe(0);
  expect(await asked(() => long(0))).toBeGreaterThan(0);
});
