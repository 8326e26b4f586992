// Retries inside the contract: with backoff, always with the same key, only for what did not land or may be repeated.

import { MaybeLanded, NotLanded, Rejected } from 'semel';
import { describe, expect, test } from 'vitest';
import { rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;
const provider = { name: 'mailer', window: '48h' } as const;

/** Fails with these errors in turn, then succeeds. */
function failing(errors: readonly unknown[], definition: object = {}) {
  const made = rig();
  const times: number[] = [];
  const keys: string[] = [];
  const tool = made.semel.tool({
    ...base,
    retry: { tries: 4, backoff: '1s', maxBackoff: '3s' },
    run: (_args: object, ctx: { key: string }) => {
      keys.push(ctx.key);
      times.push(made.clock.now());
      const error = errors[times.length - 1];
      if (error !== undefined) throw error;
      return 'done';
    },
    ...definition,
  });
  const gaps = () => times.slice(1).map((at, index) => at - times[index]!);
  return { ...made, tool, gaps, times, keys };
}

const notLanded = new NotLanded('busy');

test('what did not land is tried again, with growing pauses and the same key', async () => {
  const { clock, tool, gaps, keys } = failing([notLanded, notLanded, notLanded]);
  const result = await clock.until(tool.try({}));
  expect(result).toMatchObject({ ok: true, value: 'done', receipt: { attempt: 1 } });
  // Jitter is between half and all of 1 s, 2 s, 3 s; this random always says three quarters.
  expect(gaps()).toEqual([750, 1_500, 2_250]);
  expect(new Set(keys).size).toBe(1);
});

test('as often as the contract says, then throws the last error', async () => {
  const { clock, tool, times } = failing(Array(9).fill(notLanded));
  expect(await clock.until(tool.try({}))).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
  expect(times).toHaveLength(4);
});

test.each([
  ['what did not land', {}, 'NOT_LANDED'],
  ['what is harmless to repeat', { effect: 'write-idempotent', per: undefined }, 'FAILED'],
])('%s is not tried again after `notAfter`', async (_, definition, code) => {
  const { clock, tool, times } = failing(Array(9).fill(notLanded), definition);
  const call = tool.try({}, { notAfter: clock.now() + 2_000 });
  expect(await clock.until(call)).toMatchObject({ ok: false, error: { code } });
  expect(times).toHaveLength(2);
});

test('nor where the ledger is away', async () => {
  const { clock, tool, times, store } = failing(Array(9).fill(notLanded), {
    effect: 'write-idempotent',
    per: undefined,
    retry: { tries: 4, backoff: '1m', maxBackoff: '1m' },
  });
  store.break();
  const call = tool.try({}, { notAfter: clock.now() + 30_000 });
  expect(await clock.until(call)).toMatchObject({ ok: false });
  expect(times).toHaveLength(1);
});

test('without `retry` there is one try', async () => {
  const { clock, tool, times } = failing([notLanded], { retry: undefined });
  expect(await clock.until(tool.try({}))).toMatchObject({ ok: false });
  expect(times).toHaveLength(1);
});

test.each([
  ['refused', new Rejected('no'), 'FAILED'],
  ['in doubt', new Error('reset'), 'IN_DOUBT'],
])('what was %s is not tried again', async (_title, error, code) => {
  const { clock, tool, times } = failing([error]);
  expect(await clock.until(tool.try({}))).toMatchObject({ ok: false, error: { code } });
  expect(times).toHaveLength(1);
});

test('in doubt it is tried again where the provider honours the key', async () => {
  const { clock, tool, times, keys } = failing([new Error('reset'), new MaybeLanded('?')], { provider });
  expect(await clock.until(tool.try({}))).toMatchObject({
    ok: true,
    value: 'done',
    receipt: { acceptedRepeat: false },
  });
  expect(times).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
});

test('and where the class says that it is harmless', async () => {
  const { clock, tool, times } = failing([new Error('reset')], { effect: 'write-idempotent' });
  expect(await clock.until(tool.try({}))).toMatchObject({ ok: true });
  expect(times).toHaveLength(2);
});

describe('tries combine', () => {
  test('one that nobody knows about, and no success, is in doubt whatever the later ones said', async () => {
    const { clock, tool } = failing([new Error('reset'), notLanded, notLanded, notLanded], { provider });
    const result = await clock.until(tool.try({}));
    expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(result.ok ? '' : result.error.message).toMatch(/reset/);
  });

  test('nor does a later refusal make it refused', async () => {
    const { clock, tool } = failing([new Error('reset'), new Rejected('key used with other parameters')], {
      provider,
    });
    expect(await clock.until(tool.try({}))).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  });

  test('a success is a success, whatever came before', async () => {
    const { clock, tool, semel } = failing([new Error('reset')], { provider });
    await clock.until(tool.try({}));
    expect((await semel.records.list()).items[0]).toMatchObject({ status: 'succeeded', doubt: false });
  });
});

test('the provider’s window is judged before every try', async () => {
  const { clock, tool, times, semel } = failing(Array(9).fill(new Error('reset')), {
    provider: { name: 'mailer', window: '1h' },
    window: '30m',
    timeout: 'none',
    retry: { tries: 9, backoff: '30m', maxBackoff: '30m' },
  });
  expect(await clock.until(tool.try({}))).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(times.at(-1)! - times[0]!).toBeLessThan(3_600_000);
  expect((await semel.doubts.list()).items).toHaveLength(1);
});

test('the timeout ends the retries too', async () => {
  const { clock, tool, times } = failing(Array(99).fill(notLanded), {
    timeout: '10s',
    dispatch: 'explicit',
    retry: { tries: 99, backoff: '4s', maxBackoff: '4s' },
  });
  expect(await clock.until(tool.try({}))).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
  expect(times.length).toBeLessThan(6);
});

test('the caller’s signal ends the retries too', async () => {
  const { clock, tool, times } = failing(Array(99).fill(notLanded), {
    dispatch: 'explicit',
    retry: { tries: 99, backoff: '10s', maxBackoff: '10s' },
  });
  const caller = new AbortController();
  const call = tool.try({}, { signal: caller.signal });
  await clock.advance(9_000);
  caller.abort();
  expect(await call).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
  await clock.advance(60_000);
  expect(times).toHaveLength(2);
});

test('a lost lease ends the retries too', async () => {
  const { clock, tool, semel, times } = failing(Array(99).fill(notLanded), {
    lease: '30s',
    timeout: 'none',
    retry: { tries: 99, backoff: '1m', maxBackoff: '1m' },
  });
  const call = tool.try({});
  await clock.advance(1_000);
  const record = (await semel.records.list()).items[0]!;
  await semel.doubts.resolve(record.ref, { landed: 'by hand' }, { force: true });
  await clock.advance(5 * 60_000);
  expect(await clock.until(call)).toMatchObject({ ok: true, value: 'by hand' });
  expect(times).toHaveLength(1);
});

describe('without a claim', () => {
  test('a read is tried again, as often as the contract says', async () => {
    const { clock, tool, times } = failing([new Error('reset'), new Error('reset')], { effect: 'read' });
    expect(await clock.until(tool.try({}))).toMatchObject({ ok: true, value: 'done' });
    expect(times).toHaveLength(3);
    const refused = failing([new Rejected('no such order')], { effect: 'read' });
    expect(await refused.tool.try({})).toMatchObject({ ok: false, error: { code: 'FAILED' } });
    expect(refused.times).toHaveLength(1);
  });

  test('a read that takes too long is aborted, and its caller gets a timeout', async () => {
    const made = rig();
    let signal: AbortSignal | undefined;
    const read = made.semel.tool({
      name: 'order.get',
      effect: 'read',
      timeout: '5s',
      run: (_args: object, ctx) => {
        signal = ctx.signal;
        return new Promise(() => undefined);
      },
    });
    const call = made.clock.until(read({}));
    await expect(call).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(signal?.aborted).toBe(true);
  });

  test('so is a repeatable effect while the store is away, with the same words under the same key', async () => {
    const made = rig();
    made.store.break();
    let prepared = 0;
    const sent: unknown[] = [];
    const write = made.semel.tool({
      name: 'price.set',
      effect: 'write-idempotent',
      retry: { tries: 2, backoff: '1s' },
      prepare: () => ++prepared,
      run: (_args: object, ctx) => {
        sent.push([ctx.key, ctx.prepared]);
        if (sent.length === 1) throw new Error('reset');
        return 'set';
      },
    });
    expect(await made.clock.until(write.try({}))).toMatchObject({
      value: 'set',
      receipt: { unguarded: true },
    });
    expect(sent).toEqual([sent[0], sent[0]]);
  });

  test('a caller who gives up between two tries ends them', async () => {
    const { clock, tool, times } = failing([new Error('reset'), new Error('reset')], { effect: 'read' });
    const giving = new AbortController();
    const call = tool.try({}, { signal: giving.signal });
    await rest();
    giving.abort(new Error('enough'));
    expect(await clock.until(call)).toMatchObject({ ok: false });
    expect(times).toHaveLength(1);
  });
});
