// The end of a process: what runs may finish, what cannot is ended by what is known of it.

import { createSemel, notLanded, type Semel } from 'semel';
import { expect, test } from 'vitest';
import { gate, plainRandom, quick, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

test('running calls finish, with what they call, and their callers get the value', async () => {
  const made = rig();
  const end = gate<string>();
  const inner = made.semel.tool({ ...base, name: 'inner', run: () => 'inner' });
  const tool = made.semel.tool({ ...base, run: async () => `${await end.promise} ${await inner({})}` });
  const call = tool({});
  await rest();
  const closing = made.semel.close({ grace: '5s' });
  await made.clock.advance(1_000);
  end.resolve('done');
  await made.clock.until(closing);
  expect(await call).toBe('done inner');
});

test('new calls are refused at once, and nothing is claimed', async () => {
  const made = rig();
  const end = gate<string>();
  const tool = made.semel.tool({ ...base, run: () => end.promise });
  const call = tool({ id: 1 });
  await rest();
  const closing = made.semel.close();
  const claims = () => made.store.calls.filter((method) => method === 'claim').length;
  const before = claims();
  expect(await tool.try({ id: 2 })).toMatchObject({
    ok: false,
    error: { code: 'STORE_UNAVAILABLE', retriable: false },
  });
  expect(claims()).toBe(before);
  end.resolve('done');
  await made.clock.until(closing);
  expect(await call).toBe('done');
  const late = await tool.try({ id: 3 });
  expect(late.ok ? '' : late.error.message).toBe('This Semel instance is closed. Create a new one.');
});

test('after the grace, what was dispatched is unknown, and the rest is released, both as interrupted', async () => {
  const made = rig();
  const hang = () => new Promise<never>(() => undefined);
  const dispatched = made.semel.tool({ ...base, name: 'a.dispatched', run: hang }).try({});
  const waiting = made.semel.tool({ ...base, name: 'b.waiting', dispatch: 'explicit', run: hang }).try({});
  await rest();
  const closing = made.semel.close({ grace: '5s' });
  await made.clock.advance(5_000);
  await made.clock.until(closing);
  expect(await dispatched).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(await waiting).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
  const { items } = await made.another().records.list();
  expect(items.map(({ status, error }) => [status, error?.message])).toEqual([
    ['unknown', 'interrupted: the process is closing'],
    ['released', 'interrupted: the process is closing'],
  ]);
});

test('calls that wait for another process end', async () => {
  const made = rig();
  const end = gate<string>();
  const running = made.semel.tool({ ...base, run: () => end.promise })({});
  await rest();
  const other = made.another();
  const waiter = other.tool({ ...base, run: () => expect.fail('not run') }).try({});
  await made.clock.advance(1_000);
  const closing = other.close({ grace: '2s' });
  await made.clock.advance(2_500);
  await made.clock.until(closing);
  expect(await waiter).toMatchObject({ ok: false, error: { code: 'STORE_UNAVAILABLE', retriable: false } });
  end.resolve('done');
  expect(await running).toBe('done');
});

test('an attempt that was begun by hand has the same grace and the same end', async () => {
  const made = rig();
  const tool = made.semel.tool({ ...base, run: () => expect.fail('not run') });
  const settled = await made.semel.begin(tool, { id: 1 });
  const open = await made.semel.begin(tool, { id: 2 });
  const closing = made.semel.close({ grace: '5s' });
  await made.clock.advance(1_000);
  if (!settled.execute || !open.execute) return expect.fail('both execute');
  const result = settled.attempt.succeed('by hand' as never);
  await made.clock.advance(5_000);
  await made.clock.until(closing);
  expect(await result).toMatchObject({ ok: true });
  const { items } = await made.another().records.list();
  expect(items.map(({ status }) => status).sort()).toEqual(['succeeded', 'unknown']);
});

test('what could not be recorded is tried a last time', async () => {
  const made = rig();
  made.store.break('settle');
  const call = made.semel.tool({ ...base, run: () => 'done' }).try({});
  expect(await made.clock.until(call)).toMatchObject({ ok: false, error: { code: 'UNRECORDED' } });
  await made.clock.advance(5 * 60_000);
  made.store.repair();
  await made.clock.until(made.semel.close());
  expect((await made.another().records.list()).items[0]).toMatchObject({
    status: 'succeeded',
    value: 'done',
  });
});

test('a store that stays away does not keep the process', async () => {
  const made = rig();
  const call = made.semel.tool({ ...base, run: () => 'done' }).try({});
  made.store.break('settle', 'close');
  await made.clock.until(call);
  const from = made.clock.now();
  await made.clock.until(made.semel.close({ grace: '5s' }).catch(() => undefined));
  expect(made.clock.now() - from).toBeLessThan(2_000);
});

test.each(['the process closes', 'its caller leaves, and the process closes'])(
  'a claim whose answer is on its way is given back before the store is closed: %s',
  async (how) => {
    const made = rig();
    await made.semel.open();
    const { claim } = made.store;
    const answered = gate();
    made.store.claim = async (request) => {
      const answer = await claim(request);
      await answered.promise;
      return answer;
    };
    made.store.close = async () => {
      made.store.settle = () => Promise.reject(new Error('closed'));
    };
    const caller = new AbortController();
    const run = () => expect.fail('it was started');
    const call = made.semel.tool({ ...base, run }).try({}, { signal: caller.signal });
    await rest();
    if (how.includes('caller')) caller.abort();
    const closing = made.semel.close({ grace: '1s' });
    await made.clock.advance(1_000);
    answered.resolve();
    await made.clock.until(closing);
    expect(await call).toMatchObject({ ok: false });
    const { items } = await made.another().records.list();
    expect(items.map(({ status, error }) => [status, error?.message])).toEqual([
      ['released', 'the caller was gone before it was started'],
    ]);
  },
);

test('closing twice is closing once, also at the same time', async () => {
  const made = rig();
  await made.semel.tool({ ...base, run: () => 'done' })({});
  await Promise.all([made.semel.close(), made.semel.close()]);
  await made.semel.close();
  expect(made.store.calls.filter((method) => method === 'close')).toHaveLength(1);
});

test('an idle semel closes at once', async () => {
  const semel = quick();
  await semel.close();
});

test('`await using` closes', async () => {
  let tool: (args: object) => Promise<unknown>;
  {
    await using semel = createSemel({ store: 'memory:', namespace: 'test', onWarning: () => undefined });
    tool = semel.tool({ ...base, run: () => 'done' });
    expect(await tool({})).toBe('done');
  }
  await expect(tool({ other: 1 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('a store that could not be created is reported once: leaving the block does not hide why', async () => {
  const block = async () => {
    await using semel = createSemel({ store: 'postgres://localhost/a?schema=No-Name', namespace: 'shop' });
    await semel.open();
  };
  await expect(block()).rejects.toMatchObject({ name: 'SemelError', code: 'CONTRACT_INVALID' });
});

test('an effect that runs on after close may still land: "not landed" waits for its whole timeout', async () => {
  const made = rig();
  const ran: string[] = [];
  const define = (semel: Semel, name: string, run: () => Promise<unknown>) =>
    semel.tool({
      name: 'mail.send',
      effect: 'write-non-idempotent',
      per: 'ever',
      timeout: '5m',
      verifyAfter: '5s',
      run: (_: { to: string }) => {
        ran.push(name);
        return run();
      },
      verify: () => notLanded(),
    });
  const startedAt = made.clock.now();
  // It ignores its signal.
  const first = made.another();
  const call = define(first, 'first', () => new Promise(() => undefined)).try({ to: 'ann' });
  await made.clock.advance(1_000);
  await made.clock.until(first.close());
  expect(await call).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  const second = define(made.another(), 'second', async () => 'sent');
  await made.clock.advance(200_000);
  expect(await made.clock.until(second.try({ to: 'ann' }))).toMatchObject({ ok: false });
  expect(ran).toEqual(['first']);
  await made.clock.advance(startedAt + 305_000 - made.clock.now());
  expect(await made.clock.until(second.try({ to: 'ann' }))).toMatchObject({ ok: true, value: 'sent' });
});

test('a store whose `prune` never answers does not keep the program from ending', async () => {
  // Every program prunes at its end.
  const made = rig({ random: { ...plainRandom(), fraction: () => 0 } });
  await made.semel.tool({ ...base, run: () => 'done' })({});
  let pruned = 0;
  made.store.prune = () => {
    pruned += 1;
    return new Promise(() => undefined);
  };
  await made.clock.until(made.semel.close());
  expect(pruned).toBe(1);
});
