// Batches: per-item records, reports, and how a batch ends early.
import {
  type BatchReport,
  createSemel,
  day,
  landed,
  NotLanded,
  notLanded,
  progressBar,
  Rejected,
  type Semel,
} from 'semel';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { rig } from './support.ts';

const quiet = { store: 'memory:', namespace: 'test', onWarning: () => undefined };
const range = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));

test('a failing item does not stop the others, and a second start does only what is missing', async () => {
  await using semel = createSemel(quiet);
  const sent: number[] = [];
  let isFixed = false;
  const start = () =>
    semel.batch('invoice.send', range(100), { id: (item) => item.id }, ({ id }) => {
      if (id === 60 && !isFixed) throw new NotLanded('the address is missing');
      sent.push(id);
      return `sent ${id}`;
    });
  const first = await start();
  expect(first).toMatchObject({ ok: false, done: 99, executed: 99, failed: 1, inDoubt: 0, skipped: 0 });
  expect(first.problems).toMatchObject([{ is: 'failed', index: 60, item: { id: 60 } }]);
  isFixed = true;
  const second = await start();
  expect(second).toMatchObject({ ok: true, done: 100, executed: 1, failed: 0 });
  expect(sent.toSorted((a, b) => a - b)).toEqual(range(100).map(({ id }) => id));
});

test('an item that may have landed is in doubt, and no later start runs it again', async () => {
  await using semel = createSemel(quiet);
  let runs = 0;
  const start = () =>
    semel.batch('mail', range(3), {}, ({ id }) => {
      if (id !== 1) return;
      runs += 1;
      throw new Error('socket hang up');
    });
  expect(await start()).toMatchObject({ done: 2, inDoubt: 1, failed: 0 });
  const again = await start();
  expect(again).toMatchObject({ ok: false, done: 2, executed: 0, inDoubt: 1 });
  expect(again.problems[0]?.error?.code).toBe('IN_DOUBT');
  expect(runs).toBe(1);
});

describe('an item that cannot be called any more', () => {
  const start = (
    semel: Semel,
    items: readonly object[],
    options: object = {},
  ): Promise<BatchReport<object>> =>
    semel.batch('refund', items, { content: ['currency'], concurrency: 1, ...options } as never, () => {
      throw new Error('socket hang up');
    });

  test.each([
    ['by its fields', {}],
    ['by its id', { id: (item: { id: number }) => item.id }],
  ])('is in doubt while an earlier start of it is, found %s', async (_, options) => {
    const { semel, another } = rig();
    expect(await start(semel, [{ id: 1 }], options)).toMatchObject({ inDoubt: 1 });
    const input = z.object({ id: z.number(), currency: z.string() });
    const refused = await start(another(), [{ id: 1 }, { id: 2 }], { ...options, input });
    expect(refused).toMatchObject({ inDoubt: 1, failed: 1 });
    expect(refused.problems).toMatchObject([
      { is: 'in doubt', index: 0, error: { code: 'IN_DOUBT' } },
      { is: 'failed', index: 1, error: { code: 'INVALID_ARGS' } },
    ]);
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, 'landed', { by: 'ann' });
    expect(await start(another(), [{ id: 1 }], { ...options, input })).toMatchObject({
      done: 1,
      executed: 0,
    });
  });

  test('is in doubt while another call of its id is', async () => {
    const { semel, another } = rig();
    const id = (item: object) => (item as { id: number }).id;
    await start(semel, [{ id: 1, amount: 10 }], { id });
    const report = await start(another(), [{ id: 1, amount: 99 }], { id });
    expect(report.problems).toMatchObject([{ is: 'in doubt', error: { code: 'KEY_CONFLICT' } }]);
  });
});

test('equal items run once', async () => {
  await using semel = createSemel(quiet);
  const ran: number[] = [];
  const items = [{ id: 1 }, { id: 2 }, { id: 1 }, { id: 1 }];
  const report = await semel.batch('mail', items, {}, ({ id }) => void ran.push(id));
  expect(report).toMatchObject({ ok: true, done: 4, executed: 2 });
  expect(ran.toSorted()).toEqual([1, 2]);
});

test('the same id with other args is a conflict of that item only', async () => {
  await using semel = createSemel(quiet);
  const items = [
    { id: 1, amount: 10 },
    { id: 1, amount: 99 },
    { id: 2, amount: 10 },
  ];
  const report = await semel.batch('refund', items, { id: (item) => item.id, concurrency: 1 }, () => 'ok');
  expect(report).toMatchObject({ done: 2, failed: 1 });
  expect(report.problems).toMatchObject([{ index: 1, error: { code: 'KEY_CONFLICT' } }]);
});

test('a named run does every item again', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const start = (run: string) => semel.batch('newsletter', range(3), { run }, () => ++sent);
  await start('2026-11');
  await start('2026-11');
  expect(sent).toBe(3);
  await start('2026-12');
  expect(sent).toBe(6);
});

test('an id counts for one period: the next run, day or turn does the item again', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const id = (item: { n: number }) => item.n;
  const send = (options: object) => semel.batch('mail', [{ n: 1 }], { id, ...options }, () => ++sent);
  for (const run of ['2026-11', '2026-11', '2026-12']) await send({ run });
  expect(sent).toBe(2);
  const perDay = semel.tool({
    name: 'daily',
    effect: 'irreversible',
    per: day('UTC'),
    run: (_: { n: number }) => ++sent,
  });
  for (const at of ['2026-11-17T08:00Z', '2026-11-17T20:00Z', '2026-11-18T08:00Z'])
    await perDay.each([{ n: 1 }], { id, at: new Date(at) });
  expect(sent).toBe(4);
  const perTurn = semel.tool({
    name: 'in-turn',
    effect: 'irreversible',
    per: 'turn',
    run: (_: { n: number }) => ++sent,
  });
  for (const turn of ['1', '1', '2'])
    await semel.within({ conversation: 'c', turn }, () => perTurn.each([{ n: 1 }], { id }));
  expect(sent).toBe(6);
});

test('each uses the contract of the tool, and shares its records', async () => {
  await using semel = createSemel(quiet);
  const sent: string[] = [];
  const send = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    content: ['body'],
    run: ({ to }: { to: string; body: string }) => {
      sent.push(to);
      return to.length;
    },
  });
  await send({ to: 'ann', body: 'Dear Ann' });
  const values: unknown[] = [];
  const report = await send.each(
    [
      { to: 'ann', body: 'Hello' },
      { to: 'bob', body: 'Hello' },
    ],
    { onItem: (outcome) => void values.push(outcome.is === 'done' && outcome.value) },
  );
  expect(report).toMatchObject({ ok: true, done: 2, executed: 1 });
  expect(sent).toEqual(['ann', 'bob']);
  expect(values.toSorted()).toEqual([3, 3]);
});

describe('the source', () => {
  test('no more than `concurrency` items run or are read ahead', async () => {
    await using semel = createSemel(quiet);
    let read = 0;
    let running = 0;
    let most = 0;
    let furthest = 0;
    async function* items() {
      for (; read < 40; ) yield { id: read++ };
    }
    let ended = 0;
    const report = await semel.batch('slow', items(), { concurrency: 4 }, async () => {
      running += 1;
      most = Math.max(most, running);
      furthest = Math.max(furthest, read - ended);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      ended += 1;
    });
    expect(report.done).toBe(40);
    expect(most).toBe(4);
    expect(furthest).toBeLessThanOrEqual(5);
  });

  test('an error of the source lets running items finish, and is thrown', async () => {
    await using semel = createSemel(quiet);
    const done: number[] = [];
    async function* items() {
      yield { id: 1 };
      yield { id: 2 };
      throw new Error('the cursor was closed');
    }
    const start = semel.batch('copy', items(), {}, async ({ id }) => {
      await new Promise((resolve) => setImmediate(resolve));
      done.push(id);
    });
    await expect(start).rejects.toThrow('the cursor was closed');
    expect(done.toSorted()).toEqual([1, 2]);
  });

  test('an iterator is read one item at a time, and can clean up', async () => {
    await using semel = createSemel(quiet);
    let isReading = false;
    let isCleanedUp = false;
    let next = 0;
    const items: AsyncIterable<{ id: number }> = {
      [Symbol.asyncIterator]: () => ({
        async next() {
          expect(isReading).toBe(false);
          isReading = true;
          await new Promise((resolve) => setImmediate(resolve));
          isReading = false;
          return { done: false, value: { id: next++ } };
        },
        async return() {
          isCleanedUp = true;
          return { done: true, value: undefined };
        },
      }),
    };
    const stop = new AbortController();
    const report = await semel.batch('endless', items, { signal: stop.signal }, ({ id }) => {
      if (id === 20) stop.abort(new Error('the deploy is near'));
    });
    expect(report.stopped).toContain('the deploy is near');
    expect(report.ok).toBe(false);
    expect(isCleanedUp).toBe(true);
    // What was being read meanwhile is not started.
    expect(report.done + report.skipped).toBe(next);
  });

  test.each([null, 7, 'text', {}])('%j is refused, because it is not a source of items', async (items) => {
    await using semel = createSemel(quiet);
    await expect(semel.batch('x', items as never, {}, () => 1)).rejects.toThrow('cannot be iterated');
  });
});

test.each([
  ['run', {}],
  ['conversation', { turn: '1' }],
  ['turn', { conversation: 'c' }],
  ['turn', { turn: '1' }],
] as const)('an id without the %s that it counts for is refused: %o', async (per, options) => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const tool = semel.tool({ name: 'x', effect: 'irreversible', per, run: (_: { id: number }) => ++sent });
  const report = await tool.each(range(2), { id: (item) => item.id, concurrency: 1, ...options });
  expect(report).toMatchObject({ failed: 1, problems: [{ error: { code: 'NO_IDENTITY' } }] });
  expect(sent).toBe(0);
});

describe('stopping', () => {
  test.each(['signal', 'maxProblems'])(
    '`%s`: what a slow source gives after the stop is not started',
    async (by) => {
      await using semel = createSemel(quiet);
      const stop = new AbortController();
      const stopped = Promise.withResolvers<void>();
      const started: number[] = [];
      async function* items() {
        yield { id: 0 };
        await stopped.promise;
        yield { id: 1 };
        yield { id: 2 };
      }
      const onProgress = () => {
        if (by === 'signal') stop.abort(new Error('the deploy is near'));
        stopped.resolve();
      };
      const limits = by === 'signal' ? { signal: stop.signal } : { maxProblems: 1 };
      const report = await semel.batch('x', items(), { ...limits, onProgress }, ({ id }) => {
        started.push(id);
        throw new Rejected('no such account');
      });
      expect(started).toEqual([0]);
      expect(report).toMatchObject({ ok: false, failed: 1, skipped: 1 });
      expect(report.problems[1]).toMatchObject({ is: 'skipped', index: 1, error: { code: 'ABORTED' } });
    },
  );

  test('no further items are started after `maxProblems`', async () => {
    await using semel = createSemel(quiet);
    let runs = 0;
    const report = await semel.batch('x', range(100), { maxProblems: 3, concurrency: 1 }, () => {
      runs += 1;
      throw new Rejected('no such account');
    });
    expect(report).toMatchObject({ failed: 3, stopped: '3 items failed or are in doubt' });
    expect(runs).toBe(3);
  });

  test('an unreachable store stops the batch, and a later start continues it', async () => {
    const { semel, store, clock } = rig();
    const sent: number[] = [];
    const start = () =>
      clock.until(
        semel.batch('mail', range(50), { concurrency: 1 }, ({ id }) => {
          sent.push(id);
        }),
      );
    store.after = (method) => {
      if (method === 'settle' && sent.length === 10) store.break('claim');
    };
    const report = await start();
    expect(report).toMatchObject({ done: 10, skipped: 1, failed: 0, inDoubt: 0 });
    expect(report.stopped).toMatch(/^.*store.* Nothing was run/is);
    expect(sent).toHaveLength(10);
    store.after = undefined;
    store.repair();
    await clock.advance(60_000);
    expect(await start()).toMatchObject({ ok: true, done: 50, executed: 40 });
    expect(new Set(sent).size).toBe(50);
    expect(sent).toHaveLength(50);
  });

  test('an `onItem` that throws ends the batch with its error', async () => {
    await using semel = createSemel(quiet);
    const onItem = () => {
      throw new Error('disk full');
    };
    await expect(semel.batch('x', range(3), { onItem }, () => 1)).rejects.toThrow('disk full');
  });
});

test.each([0, -1, 1.5, Number.NaN, 20_000])('a concurrency of %s is refused', async (concurrency) => {
  await using semel = createSemel(quiet);
  await expect(semel.batch('x', [], { concurrency }, () => 1)).rejects.toThrow('`concurrency` is not');
});

test.each([undefined, '', Number.NaN, {}])('an id of %j fails that item', async (id) => {
  await using semel = createSemel(quiet);
  const report = await semel.batch('x', range(1), { id: () => id as never }, () => 1);
  expect(report.problems).toMatchObject([{ is: 'failed', error: { code: 'INVALID_ARGS', path: 'id' } }]);
});

test('a batch needs its work', async () => {
  await using semel = createSemel(quiet);
  await expect(semel.batch('x', [], {}, undefined as never)).rejects.toThrow('needs a function');
});

test('the report reads as text', async () => {
  await using semel = createSemel(quiet);
  const start = () =>
    semel.batch('x', range(4), { concurrency: 1 }, ({ id }) => {
      if (id === 2) throw new Rejected('no such account');
    });
  await start();
  expect(String(await start())).toMatch(/^3 done \(3 before\), 1 failed\nitem 2, failed: .*no such account/);
});

test('the report counts the problems that it does not keep', async () => {
  await using semel = createSemel(quiet);
  const report = await semel.batch('x', range(1_500), {}, () => {
    throw new NotLanded('no address');
  });
  expect(report.problems).toHaveLength(1_000);
  expect(String(report)).toContain('and 1490 more');
});

test('an item that a person gave up may have landed', async () => {
  await using semel = createSemel(quiet);
  const start = () =>
    semel.batch('x', range(1), {}, () => {
      throw new Error('socket hang up');
    });
  await start();
  const [doubt] = (await semel.doubts.list()).items;
  await semel.doubts.resolve(doubt!.ref, { abandon: 'nobody can tell' });
  expect(await start()).toMatchObject({ ok: false, failed: 0, inDoubt: 1 });
});

describe('progress', () => {
  const draw = async (isTTY: boolean, total: number) => {
    await using semel = createSemel(quiet);
    const written: string[] = [];
    const onProgress = progressBar({ isTTY, columns: 80, write: (text) => written.push(text) });
    await semel.batch('x', range(total), { onProgress }, () => 1);
    return written;
  };

  test('a terminal gets one line that is redrawn', async () => {
    const written = await draw(true, 20);
    expect(written.every((text) => text.startsWith('\r'))).toBe(true);
    expect(written.at(-1)).toMatch(/\r\[#{24}\] {2}20 of 20 {2}.*\/s.*\n$/);
  });

  test('a log gets a closing line, and no escape codes', async () => {
    const written = await draw(false, 20);
    expect(written.join('')).not.toContain('\u001b');
    expect(written.at(-1)).toMatch(/20 of 20 .*\n$/);
  });

  test('a source with more items than it said fills the bar, and no more', () => {
    const written: string[] = [];
    const counts = { total: 1, done: 1_000_000, failed: 0, inDoubt: 0, skipped: 0, running: 0 };
    progressBar({ write: (text) => written.push(text) })({ ...counts, isOver: true });
    expect(written[0]?.length).toBeLessThan(100);
  });
});

test('a batch in the mode `observe` runs every item', async () => {
  await using semel = createSemel({ ...quiet, mode: 'observe' });
  let runs = 0;
  await semel.batch('x', range(5), {}, () => ++runs);
  const report = await semel.batch('x', range(5), {}, () => ++runs);
  expect(runs).toBe(10);
  expect(report.done).toBe(5);
});

test('`verify` settles the items that an error left in doubt, in the same run', async () => {
  await using semel = createSemel(quiet);
  const ids = new Set<number>();
  const verify = ({ id }: { id: number }) => (ids.has(id) ? landed(`m-${id}`) : notLanded());
  const report = await semel.batch('mail', range(4), { verify }, ({ id }): string => {
    ids.add(id);
    throw new Error('socket hang up');
  });
  expect(report).toMatchObject({ ok: true, done: 4 });
});

test('a batch without options says which argument is missing', async () => {
  await using semel = createSemel(quiet);
  const start = async () => semel.batch('x', range(1), (() => 1) as never, undefined as never);
  await expect(start()).rejects.toThrow(
    'needs a function as its fourth argument. Write batch(name, items, {}',
  );
});

test('the version of a batch is that of its records', async () => {
  await using semel = createSemel(quiet);
  await semel.batch('x', range(1), { version: '2' }, () => 1);
  expect((await semel.records.list()).items).toMatchObject([{ version: '2' }]);
});

test('a misspelt option of each is refused', async () => {
  await using semel = createSemel(quiet);
  const tool = semel.tool({ name: 'x', effect: 'irreversible', per: 'ever', run: (_: { id: number }) => 1 });
  await expect(tool.each(range(1), { concurency: 2 } as never)).rejects.toThrow(
    'Did you mean `concurrency`?',
  );
});

test('the report names an item by the id that the caller gave, and its run', async () => {
  await using semel = createSemel(quiet);
  const options = { id: ({ id }: { id: string }) => id, run: '2026-11' };
  const report = await semel.batch('refund', [{ id: 'pay/7 ü' }], options, () => {
    throw new NotLanded('closed');
  });
  expect(String(report)).toMatch(/^item 0 \(2026-11\/pay\/7 ü\), failed: /m);
});
