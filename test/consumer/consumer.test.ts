// semel.consumer without a queue: what it refuses, and what it says about a message in each state of its record.

import {
  type ConsumerOptions,
  day,
  landed,
  MaybeLanded,
  NotLanded,
  notLanded,
  Rejected,
  type Semel,
} from 'semel';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { gate, quick, rig } from '../library/support.ts';

const common = { name: 'refund', effect: 'irreversible', per: 'ever' } as const;

function refundTool(semel: Semel, run: (args: { id: string }) => unknown = () => 'done', more: object = {}) {
  return semel.tool({ ...common, ...more, input: z.object({ id: z.string() }), run });
}

describe('a message', () => {
  test('is acknowledged once its outcome is on record, and a redelivery without running', async () => {
    const { semel, another } = rig();
    let ran = 0;
    const consume = (each: Semel) =>
      each.consumer(
        refundTool(each, () => `r-${++ran}`),
        { redelivery: '14d' },
      );
    const body = { id: 'a' };
    expect(await consume(semel).handle({ body })).toMatchObject({ is: 'ack', value: 'r-1' });
    expect(await consume(another()).handle({ body })).toMatchObject({
      is: 'ack',
      value: 'r-1',
      receipt: { replayed: true },
    });
    expect(ran).toBe(1);
  });

  test('goes back while another worker has it', async () => {
    const { semel, another } = rig();
    const { promise, resolve } = gate();
    const started = gate();
    const first = semel.consumer(
      refundTool(semel, async () => {
        started.resolve();
        await promise;
      }),
      { redelivery: '1d' },
    );
    const other = another();
    const second = other.consumer(refundTool(other), { redelivery: '1d' });
    const handling = first.handle({ body: { id: 'a' } });
    await started.promise;
    for (const consumer of [first, second])
      expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({
        is: 'retry',
        error: { code: 'IN_FLIGHT' },
      });
    resolve();
    expect((await handling).is).toBe('ack');
  });

  test('that never lands is a dead letter after `maxTries`, and runs again when somebody sends it back', async () => {
    const semel = quick();
    let ran = 0;
    const consumer = semel.consumer(
      refundTool(semel, () => {
        ran += 1;
        throw new NotLanded('no funds');
      }),
      { redelivery: '1d', maxTries: 2 },
    );
    const handle = (deliveries: number) => consumer.handle({ body: { id: 'a' }, deliveries });
    expect(await handle(1)).toMatchObject({ is: 'retry' });
    expect(await handle(2)).toMatchObject({
      is: 'dead letter',
      reason: 'refund did not land: no funds. It was tried 2 times.',
    });
    expect(await handle(1)).toMatchObject({ is: 'retry' });
    expect(ran).toBe(3);
  });

  test('that the target refuses is a dead letter at once', async () => {
    const semel = quick();
    const consumer = semel.consumer(
      refundTool(semel, () => {
        throw new Rejected('no such order');
      }),
      { redelivery: '1d' },
    );
    expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({
      is: 'dead letter',
      reason: expect.stringContaining('no such order'),
    });
  });

  test('that does not fit the schema is a dead letter, with the reason', async () => {
    const semel = quick();
    const consumer = semel.consumer(refundTool(semel), { redelivery: '1d' });
    for (const body of [{ id: 7 }, undefined, 'text', null])
      expect(await consumer.handle({ body })).toMatchObject({
        is: 'dead letter',
        reason: expect.stringContaining('do not fit its schema'),
      });
  });
});

describe('a message that a deploy made unreadable', () => {
  const strictBody = z.object({ id: z.string(), currency: z.string() });
  const failing = () => {
    throw new Error('socket hang up');
  };
  const atWorkers = (options: Partial<ConsumerOptions>, more: object = {}) => {
    const { semel, another, clock, store } = rig();
    const before = semel.consumer(refundTool(semel, failing, more), { redelivery: '1d', ...options });
    const deploy = (changes: Partial<ConsumerOptions> = {}, terms: object = { input: strictBody }) => {
      const other = another();
      const tool = other.tool({ ...common, run: () => 'done', ...more, ...terms } as never);
      return other.consumer(tool, { redelivery: '1d', ...options, ...changes });
    };
    return { semel, clock, store, before, deploy };
  };
  const broken = () => {
    throw new TypeError('no order');
  };

  test.each([
    ['its args are refused', {}, undefined],
    ['its args are refused, with a key of its own', { key: 'id' }, undefined],
    ['its `call` throws', {}, { call: broken }],
    ['its `call` throws, with its id as its key', { key: 'id' }, { call: broken }],
  ] as const)('goes back while an earlier start of it is in doubt: %s', async (_, options, changes) => {
    const { semel, before, deploy } = atWorkers(options);
    const message = { id: 'm-1', body: { id: 'a' } };
    expect(await before.handle(message)).toMatchObject({ is: 'retry', error: { code: 'IN_DOUBT' } });
    const after = deploy(changes, changes === undefined ? undefined : {});
    expect(await after.handle(message)).toMatchObject({
      is: 'retry',
      afterMs: 300_000,
      error: { code: 'IN_DOUBT' },
    });
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, 'landed', { by: 'ann' });
    expect(await after.handle(message)).toMatchObject({ is: 'ack', receipt: { replayed: true } });
  });

  test('goes back while its key belongs to an open record, whatever its args are read as now', async () => {
    const { semel, before, deploy } = atWorkers({ key: 'id' });
    const message = { id: 'm-1', body: { id: 'a' } };
    await before.handle(message);
    const after = deploy({}, { input: z.object({ id: z.string().transform((id) => `order-${id}`) }) });
    expect(await after.handle(message)).toMatchObject({
      is: 'retry',
      reason: expect.stringContaining('by a call that may have landed'),
      error: { code: 'KEY_CONFLICT' },
    });
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, 'notLanded', { by: 'ann', force: true });
    expect((await after.handle(message)).is).toBe('ack');
  });

  test('runs nothing, and is a dead letter once the earlier start is known not to have landed', async () => {
    const { semel, before, deploy } = atWorkers({});
    const message = { body: { id: 'a' } };
    await before.handle(message);
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, 'notLanded', { by: 'ann', force: true });
    expect(await deploy().handle(message)).toMatchObject({
      is: 'dead letter',
      error: { code: 'INVALID_ARGS' },
      reason: expect.stringContaining('may have landed: look for its record with `semel ls --tool refund`'),
    });
    expect((await semel.records.list()).items).toMatchObject([{ status: 'released', attempts: 1 }]);
  });

  test('does not say that it may have landed where its own key has no record', async () => {
    const { deploy } = atWorkers({ key: 'id' });
    const decision = await deploy().handle({ id: 'm-1', body: { id: 'a' } });
    expect(decision).toMatchObject({ is: 'dead letter', error: { code: 'INVALID_ARGS' } });
    expect(decision.is === 'dead letter' && decision.reason).not.toContain('may have landed');
  });

  test('asks `verify` only about args that were checked once', async () => {
    const asked: unknown[] = [];
    const verify = (args: { id: string }) => {
      asked.push(args);
      return landed('found');
    };
    for (const [redact, is] of [
      [[], 'ack'],
      [['card'], 'retry'],
    ] as const) {
      const { before, deploy, clock } = atWorkers({}, { redact });
      const message = { body: { id: 'a' } };
      await before.handle(message);
      await clock.advance(600_000);
      const after = deploy({}, { input: strictBody, verify });
      expect((await after.handle(message)).is).toBe(is);
    }
    expect(asked).toEqual([{ id: 'a' }]);
  });

  test('is a dead letter, not an exception, where its body cannot even be copied', async () => {
    const body = new Proxy({}, { ownKeys: broken });
    expect((await atWorkers({}).deploy().handle({ body })).is).toBe('dead letter');
  });

  test('goes back while the store is down', async () => {
    const { store, clock, before, deploy } = atWorkers({});
    await before.handle({ body: { id: 'a' } });
    store.break();
    expect(await clock.until(deploy().handle({ body: { id: 'a' } }))).toMatchObject({
      is: 'retry',
      error: { code: 'STORE_UNAVAILABLE' },
    });
  });
});

test.each(['observe', 'off'] as const)(
  'with mode %s, a message whose effect cannot tell what landed does not run for ever',
  async (mode) => {
    const semel = quick({ mode });
    let ran = 0;
    const run = () => {
      ran += 1;
      throw new MaybeLanded('nobody knows');
    };
    const consumer = semel.consumer(refundTool(semel, run), { redelivery: '1d', maxTries: 3 });
    const deliver = (deliveries: number) => consumer.handle({ body: { id: 'a' }, deliveries });
    expect((await deliver(1)).is).toBe('retry');
    expect((await deliver(2)).is).toBe('retry');
    expect((await deliver(3)).is).toBe('dead letter');
    expect(ran).toBe(3);
  },
);

describe('a message in doubt', () => {
  function inDoubt(more: object = {}) {
    const made = rig();
    const consumer = made.semel.consumer(
      refundTool(
        made.semel,
        () => {
          throw new Error('socket hang up');
        },
        more,
      ),
      { redelivery: '1d', maxTries: 2 },
    );
    return { ...made, handle: (deliveries = 1) => consumer.handle({ body: { id: 'a' }, deliveries }) };
  }

  test('a message in doubt is retried on each delivery until a person decides; "landed" acknowledges it', async () => {
    const { semel, handle } = inDoubt();
    for (let delivery = 1; delivery <= 20; delivery += 1)
      expect(await handle(delivery)).toMatchObject({ is: 'retry', afterMs: 300_000 });
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, 'landed', { by: 'ann' });
    expect((await handle(21)).is).toBe('ack');
  });

  test('is a dead letter once a person gave it up', async () => {
    const { semel, handle } = inDoubt();
    await handle();
    const { items } = await semel.doubts.list();
    await semel.doubts.resolve(items[0]!.ref, { abandon: 'the order is closed' }, { by: 'ann' });
    expect(await handle(2)).toMatchObject({
      is: 'dead letter',
      reason: expect.stringContaining('the order is closed'),
    });
  });

  test('is decided by `verify`: landed', async () => {
    const { handle } = inDoubt({ verify: () => landed('found') });
    expect(await handle()).toMatchObject({ is: 'ack', value: 'found' });
  });

  test('is decided by `verify`: not landed, which runs it again', async () => {
    const { handle, clock } = inDoubt({ verify: () => notLanded() });
    const first = await handle();
    expect(first).toMatchObject({ is: 'retry', error: { code: 'IN_DOUBT' } });
    if (first.is === 'retry') await clock.advance(first.afterMs + 60_000);
    expect(await handle(2)).toMatchObject({ is: 'retry', receipt: { attempt: 2 } });
  });
});

test('a message whose effect is done but not recorded is not acknowledged until it is', async () => {
  const { semel, store, clock } = rig();
  let ran = 0;
  const consumer = semel.consumer(
    refundTool(semel, () => {
      store.break('settle');
      ran += 1;
      return 'done';
    }),
    { redelivery: '1d' },
  );
  const first = await clock.until(consumer.handle({ body: { id: 'a' } }));
  expect(first).toMatchObject({ is: 'retry', error: { code: 'UNRECORDED' } });
  store.repair();
  await clock.advance(30_000);
  expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({ is: 'ack', value: 'done' });
  expect(ran).toBe(1);
});

test('while the store is down, messages go back and nothing runs', async () => {
  const { semel, store, clock } = rig();
  let ran = 0;
  const consumer = semel.consumer(
    refundTool(semel, () => ++ran),
    { redelivery: '1d' },
  );
  store.break();
  expect(await clock.until(consumer.handle({ body: { id: 'a' } }))).toMatchObject({ is: 'retry' });
  expect(ran).toBe(0);
});

test('after close, messages go back', async () => {
  const semel = quick();
  const consumer = semel.consumer(refundTool(semel), { redelivery: '1d' });
  await semel.close();
  expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({ is: 'retry' });
});

describe('what makes two messages the same', () => {
  test('is the body, by the contract of the tool', async () => {
    const semel = quick();
    let ran = 0;
    const consumer = semel.consumer(
      refundTool(semel, () => ++ran),
      { redelivery: '1d' },
    );
    await consumer.handle({ body: { id: 'a' }, id: '1' });
    await consumer.handle({ body: { id: 'a' }, id: '2' });
    expect(ran).toBe(1);
  });

  test('is the id of the message where the consumer says so: a producer that sends twice runs it twice', async () => {
    const semel = quick();
    let ran = 0;
    const consumer = semel.consumer(
      refundTool(semel, () => ++ran),
      { redelivery: '1d', key: 'id' },
    );
    for (const id of ['1', '1', '2']) await consumer.handle({ body: { id: 'a' }, id });
    expect(ran).toBe(2);
    expect(await consumer.handle({ body: { id: 'b' }, id: '1' })).toMatchObject({
      is: 'dead letter',
      error: { code: 'KEY_CONFLICT' },
    });
    expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({
      is: 'dead letter',
      reason: expect.stringContaining('refund: the message has no id.'),
    });
  });

  test('is what a function finds in it; one that it cannot read is a dead letter', async () => {
    const semel = quick();
    let ran = 0;
    const consumer = semel.consumer(
      semel.tool({ ...common, identity: ['id'], run: (_: { id: string; n: number }) => ++ran }),
      { redelivery: '1d', key: ({ body }) => (body as { order: { id: string } }).order.id },
    );
    await consumer.handle({ body: { id: 'a', n: 1, order: { id: 'o' } } });
    await consumer.handle({ body: { id: 'a', n: 2, order: { id: 'o' } } });
    expect(ran).toBe(1);
    expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({ is: 'dead letter' });
  });

  test('with a calendar period is the day on which it was sent, not that of its redelivery', async () => {
    const { semel, clock } = rig();
    let ran = 0;
    const consumer = semel.consumer(
      refundTool(semel, () => ++ran, { per: day('UTC') }),
      { redelivery: '7d' },
    );
    const message = { body: { id: 'a' }, sentAt: clock.now() };
    await consumer.handle(message);
    await clock.advance(3 * 86_400_000);
    expect(await consumer.handle(message)).toMatchObject({ is: 'ack', receipt: { replayed: true } });
    expect(ran).toBe(1);
    expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({
      is: 'retry',
      error: { code: 'NO_IDENTITY', path: 'sentAt' },
    });
  });
});

describe('construction refuses', () => {
  const cases: readonly (readonly [string, object, object, string])[] = [
    ['no redelivery', {}, {}, 'redelivery'],
    ['a TTL shorter than the longest redelivery', { per: '1d' }, { redelivery: '4d' }, 'redelivery'],
    [
      'a window shorter than the longest redelivery',
      { per: day('UTC'), window: '1d' },
      { redelivery: '4d' },
      'redelivery',
    ],
    ['a turn, which a message does not have', { per: 'turn' }, { redelivery: '4d' }, 'key'],
    ['an option that does not exist', {}, { redelivery: '4d', maxTry: 3 }, 'maxTry'],
    ['zero tries', {}, { redelivery: '4d', maxTries: 0 }, 'maxTries'],
    ['a backoff longer than the longest', {}, { redelivery: '4d', backoff: '1h' }, 'maxBackoff'],
    ['a read', { effect: 'read' }, { redelivery: '4d' }, 'tool'],
  ];
  test.each(cases)('%s', (_, terms, options, path) => {
    const semel = quick();
    const define = () => semel.consumer(refundTool(semel, undefined, terms), options as ConsumerOptions);
    expect(define).toThrow(expect.objectContaining({ code: 'CONTRACT_INVALID', path }));
  });

  test("another instance's tool", () => {
    expect(() => quick().consumer(refundTool(quick()), { redelivery: '1d' })).toThrow(
      'was not created by this Semel instance',
    );
  });
});

test.each([
  [{ per: 'ever' }, '90d'],
  [{ per: '14d' }, '14d'],
  [{ effect: 'write-idempotent', per: undefined }, '14d'],
  [{ per: 'turn', window: '30d' }, '14d'],
] as const)('construction accepts %o with a redelivery of %s', (terms, redelivery) => {
  const semel = quick();
  semel.consumer(refundTool(semel, undefined, terms), { redelivery, key: 'id' });
});

test('construction warns of a queue that gives up before a person can decide', () => {
  const { semel, warnings } = rig();
  semel.consumer(refundTool(semel), { redelivery: '14d', maxDeliveries: 1_000 });
  expect(warnings).toEqual([]);
  semel.consumer(refundTool(semel), { redelivery: '14d', maxDeliveries: 3 });
  expect(warnings.join()).toMatch(/gives up on a message after 3 deliveries .* Allow at least 288/);
});

test('a mistake of the program is warned of, and its messages wait', async () => {
  const { semel, warnings } = rig();
  const consumer = semel.consumer(refundTool(semel, undefined, { permissions: ['refunds:write'] }), {
    redelivery: '1d',
  });
  expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({ is: 'retry', afterMs: 300_000 });
  expect(warnings.join()).toContain('refund: its messages go back to the queue.');
});

test('a redelivery is acknowledged without asking for a live value, which may take its time', async () => {
  const semel = quick();
  let asked = 0;
  const tool = refundTool(semel, undefined, { onReplay: () => ++asked });
  const consumer = semel.consumer(tool, { redelivery: '1d' });
  await consumer.handle({ body: { id: 'a' } });
  expect(await consumer.handle({ body: { id: 'a' } })).toMatchObject({ is: 'ack', value: 'done' });
  expect(asked).toBe(0);
});

test('what is harmless to repeat is done also while the store is down, as in any call', async () => {
  const { semel, store, clock } = rig();
  let ran = 0;
  const tool = refundTool(semel, () => ++ran, { effect: 'write-idempotent', per: undefined });
  store.break();
  const handling = semel.consumer(tool, { redelivery: '1d' }).handle({ body: { id: 'a' } });
  expect(await clock.until(handling)).toMatchObject({ is: 'ack', receipt: { unguarded: true } });
  expect(ran).toBe(1);
});

test('a body with a field that changes at every send is warned of, as in any call', async () => {
  const { semel, warnings } = rig();
  const tool = semel.tool({ ...common, run: (_: { id: string; traceId: string }) => 1 });
  await semel.consumer(tool, { redelivery: '1d' }).handle({ body: { id: 'a', traceId: 't' } });
  expect(warnings.join()).toContain('traceId');
});

test('onDecision gets every decision; what it throws is a warning', async () => {
  const { semel, warnings } = rig();
  const seen: string[] = [];
  const consumer = semel.consumer(refundTool(semel), {
    redelivery: '1d',
    onDecision({ is }, { id }) {
      seen.push(`${id} ${is}`);
      throw new Error('logger is full');
    },
  });
  expect((await consumer.handle({ id: '1', body: { id: 'a' } })).is).toBe('ack');
  await consumer.handle({ id: '2', body: {} });
  expect(seen).toEqual(['1 ack', '2 dead letter']);
  expect(warnings.join()).toContain('logger is full');
});
