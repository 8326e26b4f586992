// sqsHandler with events as Lambda makes them: what is reported as failed, in which order, and by when.

import { day, NotLanded, type Semel } from 'semel';
import { type SqsEvent, type SqsHandlerOptions, type SqsRecord, sqsHandler } from 'semel/queues';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { gate, quick, rig } from '../library/support.ts';

let made = 0;

function record(body: unknown, more: Partial<SqsRecord['attributes']> = {}, isFifo = false): SqsRecord {
  made += 1;
  const suffix = String(made).padStart(12, '0');
  const whole = {
    messageId: `059f36b4-87a3-44ab-83d2-${suffix}`,
    receiptHandle: `AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a${suffix}`,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    attributes: {
      ApproximateReceiveCount: '1',
      SentTimestamp: '1545082649183',
      SenderId: 'AIDAIENQZJOLO23YVJ4VO',
      ApproximateFirstReceiveTimestamp: '1545082649185',
      ...more,
    },
    messageAttributes: {},
    md5OfBody: 'e4e68fb7bd0e697a0ae8f1bb342846b3',
    eventSource: 'aws:sqs',
    eventSourceARN: `arn:aws:sqs:us-east-2:123456789012:refunds${isFifo ? '.fifo' : ''}`,
    awsRegion: 'us-east-2',
  };
  return whole;
}

const fifo = (body: unknown, group: string) => record(body, { MessageGroupId: group }, true);
const context = (ms: number) => ({ getRemainingTimeInMillis: () => ms });
const withId = z.object({ id: z.string() });

function handlerOf(
  semel: Semel,
  run: (args: { id: string }, ctx: { signal: AbortSignal }) => unknown,
  options?: SqsHandlerOptions,
) {
  const tool = semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', input: withId, run });
  const handler = sqsHandler(semel.consumer(tool, { redelivery: '14d', maxTries: 3 }), options);
  return async (records: readonly SqsRecord[], ms?: number) => {
    const { batchItemFailures } = await handler(
      { Records: records },
      ms === undefined ? undefined : context(ms),
    );
    return records.flatMap(({ messageId, body }) =>
      batchItemFailures.some(({ itemIdentifier }) => itemIdentifier === messageId) ? [body] : [],
    );
  };
}

const id = (name: string) => JSON.stringify({ id: name });

test('only what is done is not reported: a batch with every kind of message', async () => {
  const ran: string[] = [];
  const handle = handlerOf(quick(), ({ id: name }) => {
    ran.push(name);
    if (name === 'refused') throw new NotLanded('no funds');
    if (name === 'hang up') throw new Error('socket hang up');
  });
  const batch = [
    record({ id: 'good' }),
    record({ id: 'refused' }),
    record({ id: 'hang up' }),
    record({ id: 7 }),
    record('not json'),
    record({ id: 'also good' }),
  ];
  expect(await handle(batch, 30_000)).toEqual([id('refused'), id('hang up'), '{"id":7}', 'not json']);
  // Lambda delivers the failed ones again; should the others come too, nothing is done twice.
  expect(await handle(batch, 30_000)).toEqual([id('refused'), id('hang up'), '{"id":7}', 'not json']);
  expect(ran).toEqual(['good', 'refused', 'hang up', 'also good', 'refused']);
});

test('a message that is in the batch twice is done once, and not lost', async () => {
  const { promise, resolve } = gate();
  let ran = 0;
  const handle = handlerOf(quick(), async () => {
    ran += 1;
    await promise;
  });
  const twice = record({ id: 'a' });
  const handling = handle([twice, { ...twice }], 30_000);
  resolve();
  await handling;
  expect(await handle([twice], 30_000)).toEqual([]);
  expect(ran).toBe(1);
});

describe('a FIFO queue', () => {
  test('stops a group at its first failure, and continues with the others in order', async () => {
    const ran: string[] = [];
    const handle = handlerOf(quick(), ({ id: name }) => {
      ran.push(name);
      if (name === 'a2') throw new NotLanded('not now');
    });
    const batch = ['a1', 'b1', 'a2', 'a3', 'b2'].map((name) => fifo({ id: name }, name.slice(0, 1)));
    expect(await handle(batch, 30_000)).toEqual([id('a2'), id('a3')]);
    expect(ran.filter((name) => name.startsWith('a'))).toEqual(['a1', 'a2']);
    expect(ran.filter((name) => name.startsWith('b'))).toEqual(['b1', 'b2']);
  });

  test('does not order a standard queue, although its messages may have groups', async () => {
    const handle = handlerOf(quick(), ({ id: name }) => {
      if (name === 'a1') throw new NotLanded('not now');
    });
    const batch = ['a1', 'a2'].map((name) => record({ id: name }, { MessageGroupId: 'a' }));
    expect(await handle(batch, 30_000)).toEqual([id('a1')]);
  });
});

describe('the deadline of the function', () => {
  test('stops what runs, starts nothing more, and is kept; the rest is reported', async () => {
    const { semel, clock } = rig();
    const ran: string[] = [];
    const handle = handlerOf(
      semel,
      async ({ id: name }, { signal }) => {
        ran.push(name);
        if (name !== 'quick')
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      { concurrency: 2 },
    );
    const batch = ['quick', 'slow', 'slower', 'never started'].map((name) => record({ id: name }));
    const startedAt = clock.now();
    const failed = await clock.until(handle(batch, 10_000));
    expect(clock.now() - startedAt).toBeLessThan(10_000);
    expect(failed).toEqual([id('slow'), id('slower'), id('never started')]);
    expect(ran).toEqual(['quick', 'slow', 'slower']);
  });

  test('is kept even if an effect ignores the signal; it is then busy or in doubt, and not done again', async () => {
    const { semel, clock } = rig();
    const { promise } = gate();
    let ran = 0;
    const handle = handlerOf(semel, async () => {
      ran += 1;
      await promise;
    });
    const message = record({ id: 'deaf' });
    const startedAt = clock.now();
    expect(await clock.until(handle([message], 10_000))).toEqual([id('deaf')]);
    expect(clock.now() - startedAt).toBeLessThan(10_000);
    expect(await clock.until(handle([message], 10_000))).toEqual([id('deaf')]);
    await clock.advance(30 * 60_000);
    expect(await clock.until(handle([message], 10_000))).toEqual([id('deaf')]);
    expect(ran).toBe(1);
  });

  test('is kept also where a delay is never set', async () => {
    const { semel, clock } = rig();
    const run = () => {
      throw new NotLanded('not now');
    };
    const handle = handlerOf(semel, run, { setDelay: () => new Promise(() => undefined) });
    const startedAt = clock.now();
    expect(await clock.until(handle([record({ id: 'a' })], 10_000))).toEqual([id('a')]);
    expect(clock.now() - startedAt).toBeLessThan(10_000);
  });

  test('that has come already starts nothing', async () => {
    const { semel, clock } = rig();
    let ran = 0;
    const handle = handlerOf(semel, () => ++ran);
    expect(await clock.until(handle([record({ id: 'a' })], 500))).toEqual([id('a')]);
    expect(ran).toBe(0);
  });
});

describe('a dead letter', () => {
  const poison = () => record({ id: 7 });

  test('is reported as failed, so that the queue moves it, unless the handler may send it on', async () => {
    const sent: string[] = [];
    const handle = handlerOf(quick(), () => 1, {
      async deadLetter({ body }, reason) {
        sent.push(`${body}: ${reason}`);
      },
    });
    expect(await handle([poison()], 30_000)).toEqual([]);
    expect(sent).toEqual([expect.stringContaining('{"id":7}: refund: the args do not fit its schema')]);
  });

  test('that could not be sent on is reported as failed', async () => {
    const handle = handlerOf(quick(), () => 1, {
      deadLetter: () => Promise.reject(new Error('no such queue')),
    });
    expect(await handle([poison()], 30_000)).toEqual(['{"id":7}']);
  });
});

test('what goes back gets its delay, and goes back also where the delay could not be set', async () => {
  const delays: number[] = [];
  const handle = handlerOf(
    quick(),
    () => {
      throw new Error('socket hang up');
    },
    {
      async setDelay(_, seconds) {
        delays.push(seconds);
        throw new Error('throttled');
      },
    },
  );
  expect(await handle([record({ id: 'a' })], 30_000)).toEqual([id('a')]);
  expect(delays).toEqual([300]);
});

test.each([undefined, {}, { Records: [{ body: '{}' }] }, { Records: 'none' }])(
  'an event that is not of SQS (%o) fails as a whole: nothing is deleted',
  async (event) => {
    const semel = quick();
    const tool = semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', run: (_: object) => 1 });
    const handler = sqsHandler(semel.consumer(tool, { redelivery: '14d' }));
    await expect(handler(event as unknown as SqsEvent, context(1_000))).rejects.toThrow(
      'not an event of an SQS queue',
    );
  },
);

test('wrong options are refused', () => {
  const semel = quick();
  const tool = semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', run: (_: object) => 1 });
  const consumer = semel.consumer(tool, { redelivery: '14d' });
  expect(() => sqsHandler(consumer, { concurrency: 0 })).toThrow('concurrency');
  expect(() => sqsHandler(consumer, { dealy: 1 } as object)).toThrow('there is no field `dealy`');
  expect(() => sqsHandler(tool as never)).toThrow('not a consumer');
});

describe('a message that SQS sends back from the dead letters has a new id and time, and semel warns', () => {
  const terms = { effect: 'irreversible', window: '30d', run: (_: { id: string }) => undefined } as const;

  test.each([
    ['the id', { per: 'ever' }, { key: 'id' }, /sent back .* a new id, .* key: \(message\) => …/],
    ['the time', { per: day() }, {}, /sent back .* a new time, .* call: \(message\) =>/],
  ] as const)('a consumer that goes by %s', (_, more, options, expected) => {
    const { semel, warnings } = rig();
    sqsHandler(
      semel.consumer(semel.tool({ name: 'refund', ...terms, ...more }), { redelivery: '14d', ...options }),
    );
    expect(warnings.join()).toMatch(expected);
  });

  test.each([
    ['the body', { per: 'ever' }, {}],
    ['a key in the body', { per: 'ever' }, { key: () => 'k' }],
    ['a time in the body', { per: day() }, { call: () => ({ at: new Date(0) }) }],
    [
      'nothing, as it is harmless to repeat',
      { effect: 'write-idempotent', window: undefined },
      { key: 'id' },
    ],
  ] as const)('not a consumer that goes by %s', (_, more, options) => {
    const { semel, warnings } = rig();
    const tool = semel.tool({ name: 'refund', ...terms, ...more } as never);
    sqsHandler(semel.consumer(tool, { redelivery: '14d', ...options } as never));
    expect(warnings).toEqual([]);
  });
});
