// What a model is told when a call did not end with a value. It must never read that nothing happened where something may
// have: it would do it another way, or tell the user so.

import type { SemelOptions } from 'semel';
import { guard, isToolError } from 'semel/ai-sdk';
import { expect, test } from 'vitest';
import { gate, type Rig, rest, rig } from '../library/support.ts';

const nothingHappened = /did not happen|nothing was done|was refused/i;

type Execute = (input: object, options?: { abortSignal?: AbortSignal }) => Promise<unknown>;

function refundOf({ semel }: Pick<Rig, 'semel'>, execute: () => unknown, more: object = {}): Execute {
  const policy = { effect: 'write-non-idempotent', per: 'ever', ...more } as const;
  const inputSchema = { type: 'object' };
  const { refund } = guard(semel, { refund: { inputSchema, execute } }, { refund: policy as never });
  return refund.execute as unknown as Execute;
}

function toldBy(output: unknown) {
  if (!isToolError(output)) throw new Error('It is a value.');
  return output;
}

const throws = (message: string) => () => {
  throw new Error(message);
};

test('the caller gave up while it ran: it may land, and the same call shows how it ended', async () => {
  const made = rig();
  const { promise, resolve } = gate<string>();
  const refund = refundOf(made, () => promise);
  const given = new AbortController();
  const call = refund({ order: 1 }, { abortSignal: given.signal });
  await rest();
  given.abort();
  const { code, correctiveAction } = toldBy(await call);
  expect({ code, correctiveAction }).toEqual({
    code: 'ABORTED',
    correctiveAction: expect.not.stringMatching(nothingHappened),
  });
  resolve('re_1');
  await rest();
  expect(await refund({ order: 1 })).toBe('re_1');
});

test('the caller gave up while another process ran it: the same', async () => {
  const made = rig();
  const { promise, resolve } = gate<string>();
  const first = refundOf(made, () => promise)({ order: 1 });
  await rest();
  const given = new AbortController();
  const second = refundOf({ semel: made.another() }, () => 'twice')(
    { order: 1 },
    { abortSignal: given.signal },
  );
  await rest();
  given.abort();
  expect(toldBy(await made.clock.until(second))).toMatchObject({
    code: 'ABORTED',
    correctiveAction: expect.not.stringMatching(nothingHappened),
  });
  resolve('re_1');
  expect(await first).toBe('re_1');
});

test('nothing was started: then it may say so', async () => {
  const refund = refundOf(rig(), () => 'never');
  const { correctiveAction } = toldBy(await refund({}, { abortSignal: AbortSignal.abort() }));
  expect(correctiveAction).toMatch(/Nothing was run/);
});

test('it ran, and the store did not take how it ended: it may have landed', async () => {
  const made = rig();
  const refund = refundOf(made, () => {
    made.store.break('settle');
    throw new Error('timeout');
  });
  expect(toldBy(await made.clock.until(refund({})))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    correctiveAction: expect.not.stringMatching(nothingHappened),
  });
});

test('the store was away before anything was run: it did not happen', async () => {
  const made = rig();
  made.store.break();
  const { correctiveAction } = toldBy(await made.clock.until(refundOf(made, () => 1)({})));
  expect(correctiveAction).toMatch(/This call did nothing/);
});

test('another worker took it over while it ran: it may have landed by either', async () => {
  const made = rig();
  const { promise, reject } = gate<string>();
  const lease = { lease: '1s', timeout: '1h', onDoubt: 'rerun' };
  const first = refundOf(made, () => promise, lease)({});
  await rest();
  made.store.break('renew');
  await made.clock.advance(5_000);
  made.store.repair();
  const { promise: other } = gate<string>();
  const second = refundOf({ semel: made.another() }, () => other, lease)({});
  void second.catch(() => undefined);
  await rest();
  reject(new Error('timeout'));
  expect(toldBy(await made.clock.until(first))).toMatchObject({
    code: 'LEASE_LOST',
    correctiveAction: expect.not.stringMatching(nothingHappened),
  });
});

test('what is harmless to repeat threw: nobody refused it, and it may be called again', async () => {
  const refund = refundOf(rig(), throws('timeout'), { effect: 'write-idempotent', per: undefined });
  expect(toldBy(await refund({}))).toMatchObject({
    code: 'FAILED',
    retriable: true,
    correctiveAction: expect.not.stringMatching(nothingHappened),
  });
});

test('a person abandoned the doubt: it may still have landed', async () => {
  const { semel } = rig({} satisfies SemelOptions);
  const refund = refundOf({ semel }, throws('timeout'));
  await refund({});
  const { items } = await semel.doubts.list();
  for (const { ref } of items) await semel.doubts.resolve(ref, { abandon: 'too old' }, { by: 'ann' });
  expect(toldBy(await refund({}))).toMatchObject({
    code: 'FAILED',
    message: expect.stringContaining('may have landed'),
    correctiveAction: expect.not.stringMatching(nothingHappened),
  });
});
