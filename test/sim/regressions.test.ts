// What the simulator found, told again without it: each case is the shortest trace of one mistake.
import { expect, test } from 'vitest';
import { SemelError } from '../../src/core/errors.ts';
import { unsure } from '../../src/core/verification.ts';
import { createSemel } from '../../src/semel/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import { movableTime } from '../stores/movable-time.ts';

const away = () => new SemelError('STORE_UNAVAILABLE', 'The store did not answer.');
const options = { namespace: 'sim', onWarning: () => undefined };

/** Nobody waits for real: every timer is due at once. */
function hasty() {
  let time = 0;
  return {
    now: () => time++,
    mono: () => time,
    setTimeout: (run: () => void) => setImmediate(run),
    clearTimeout: (timer: unknown) => clearImmediate(timer as NodeJS.Immediate),
  };
}

test('two runs without the ledger are two writes, also for a provider that honours keys', async () => {
  const nobody: Store = { ...memoryStore(), claim: () => Promise.reject(away()) };
  const semel = createSemel({ ...options, store: nobody, clock: hasty() });
  const keys: string[] = [];
  const write = semel.tool({
    name: 'price.set',
    effect: 'write-idempotent',
    provider: { name: 'shop', window: '24h' },
    run: (_args: { price: number }, { key }) => void keys.push(key),
  });
  await write({ price: 1 });
  await write({ price: 1 });
  expect(new Set(keys).size).toBe(2);
});

test('a run that returns a generator fails even while the store is down', async () => {
  const nobody: Store = { ...memoryStore(), claim: () => Promise.reject(away()) };
  const semel = createSemel({ ...options, store: nobody, clock: hasty() });
  let ran = 0;
  async function* steps() {
    yield ++ran;
  }
  const write = semel.tool({
    name: 'price.set',
    effect: 'write-idempotent',
    result: 'reference',
    run: (_args: { price: number }) => steps() as unknown,
  });
  const result = await write.try({ price: 1 });
  expect(result).toMatchObject({ ok: false, error: { code: 'FAILED' } });
  expect(ran).toBe(0);
});

test('a receipt names the generation that the call ran in, not a later one', async () => {
  const store = memoryStore();
  let meanwhile: (() => Promise<unknown>) | undefined;
  // The first settle is applied, and its answer lost; before it is asked again, somebody else runs the next one.
  const lossy: Store = {
    ...store,
    async settle(request) {
      const answer = await store.settle(request);
      const first = meanwhile;
      meanwhile = undefined;
      if (first === undefined) return answer;
      await first();
      throw away();
    },
  };
  const definition = (run: () => unknown) =>
    ({ name: 'price.set', effect: 'write-idempotent', run }) as const;
  const other = createSemel({ ...options, store });
  let finish: (() => void) | undefined;
  const started = Promise.withResolvers<void>();
  const slow = other.tool(
    definition(() => {
      started.resolve();
      return new Promise<string>((resolve) => {
        finish = () => resolve('second');
      });
    }),
  );
  const semel = createSemel({ ...options, store: lossy });
  const write = semel.tool(definition(() => 'first'));
  let second: Promise<unknown> | undefined;
  meanwhile = () => {
    second = slow.try({});
    return started.promise;
  };

  const first = await write.try({});
  expect(first).toMatchObject({ ok: true, value: 'first', receipt: { generation: 1, executed: true } });
  finish?.();
  expect(await second).toMatchObject({ ok: true, value: 'second', receipt: { generation: 2 } });
});

test('what may be repeated is repeated, also long after its provider has forgotten the key', async () => {
  const time = movableTime();
  const store = memoryStore({ time: () => time.time() });
  const clock = { ...time.clock, setTimeout: () => undefined, clearTimeout: () => undefined };
  const process = (run: () => unknown) =>
    createSemel({ ...options, store, clock }).tool({
      name: 'price.set',
      effect: 'write-idempotent',
      provider: { name: 'shop', window: '1h' },
      dispatch: 'explicit',
      async run(_args: { price: number }, ctx) {
        await ctx.dispatch();
        return run();
      },
    });

  const crossed = Promise.withResolvers<void>();
  const dies = process(() => {
    crossed.resolve();
    return new Promise(() => undefined);
  });
  void dies.try({ price: 1 });
  await crossed.promise;
  time.advance(2 * 3_600_000);

  expect(await process(() => 'done').try({ price: 1 })).toMatchObject({ ok: true, value: 'done' });
});

test('a verdict on what had sent nothing does not speak for what it sent afterwards', async () => {
  const semel = createSemel({ ...options, store: memoryStore() });
  const crossed = Promise.withResolvers<void>();
  const seen = Promise.withResolvers<void>();
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    verifyAfter: 0,
    dispatch: 'explicit',
    async run(_args: { to: string }, ctx) {
      crossed.resolve();
      await seen.promise;
      await ctx.dispatch();
      throw new Error('no answer');
    },
  });
  const sending = mail.try({ to: 'a@example.com' });
  await crossed.promise;
  const before = (await semel.records.list()).items[0];
  seen.resolve();
  await sending;

  await expect(semel.doubts.resolve(before?.ref ?? '', 'notLanded', { force: true })).rejects.toMatchObject({
    code: 'RESOLVE_STALE',
  });
});

test('a delayed "not landed" is judged by when it was sent', async () => {
  const time = movableTime();
  const store = memoryStore({ time: () => time.time() });
  // The decision is on its way until nothing else is: what landed in between was not seen.
  const slow: Store = {
    ...store,
    resolve(request) {
      time.advance(3_600_000);
      return store.resolve(request);
    },
  };
  const semel = createSemel({ ...options, store: slow });
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    run: (_args: { to: string }) => Promise.reject(new Error('no answer')),
  });
  await mail.try({ to: 'a@example.com' });
  const ref = (await semel.doubts.list()).items[0]?.ref ?? '';

  await expect(semel.doubts.resolve(ref, 'notLanded')).rejects.toMatchObject({ code: 'RESOLVE_STALE' });
  expect(await semel.doubts.resolve(ref, 'notLanded')).toMatchObject({ status: 'released' });
});

test('a process that was stopped does not replay from memory what has expired meanwhile', async () => {
  const time = movableTime();
  const store = memoryStore({ time: () => time.time() });
  let stopsForMs = 120_000;
  const slow: Store = {
    ...store,
    async settle(request) {
      const answer = await store.settle(request);
      time.advance(stopsForMs);
      stopsForMs = 0;
      return answer;
    },
  };
  const clock = { ...time.clock, setTimeout: () => undefined, clearTimeout: () => undefined };
  const semel = createSemel({ ...options, store: slow, clock });
  let ran = 0;
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'conversation',
    window: '1m',
    run: (_args: { to: string }) => ++ran,
  });
  const send = () => mail.try({ to: 'a@example.com' }, { conversation: 'c' });

  await send();
  expect(await send()).toMatchObject({ value: 2, receipt: { replayed: false } });
  expect(await send()).toMatchObject({ value: 2, receipt: { replayed: true } });
});

test('a process called right after it slept keeps no answer that was in flight meanwhile', async () => {
  const time = movableTime();
  const store = memoryStore({ time: () => time.time() });
  const settled = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const slow: Store = {
    ...store,
    async settle(request) {
      const answer = await store.settle(request);
      settled.resolve();
      await answered.promise;
      return answer;
    },
  };
  let sleptMs = 0;
  const clock = {
    ...time.clock,
    mono: () => time.clock.mono() - sleptMs,
    setTimeout: () => undefined,
    clearTimeout: () => undefined,
  };
  const semel = createSemel({ ...options, store: slow, clock });
  let ran = 0;
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: '1m',
    run: (_args: { to: string }) => ++ran,
  });
  const send = () => mail.try({ to: 'a@example.com' });

  const first = send();
  await settled.promise;
  sleptMs = 120_000;
  time.advance(sleptMs);
  // Its first look at the clocks after the sleep.
  const second = send();
  answered.resolve();
  expect(await first).toMatchObject({ value: 1 });
  expect(await second).toMatchObject({ value: 1 });
  expect(await send()).toMatchObject({ value: 2, receipt: { replayed: false } });
});

test('the caller that ran it gets its value, even if the ledger has removed the first one', async () => {
  const time = movableTime();
  const store = memoryStore({ time: () => time.time() });
  const clock = { ...time.clock, setTimeout: () => undefined, clearTimeout: () => undefined };
  const process = (run: () => unknown) =>
    createSemel({ ...options, store, clock }).tool({
      name: 'mail.send',
      effect: 'write-non-idempotent',
      per: 'ever',
      window: '1m',
      lease: '10s',
      provider: { name: 'post', window: '24h' },
      run: (_args: { to: string }) => run(),
    });
  const args = { to: 'a@example.com' };

  const started = Promise.withResolvers<void>();
  const late = Promise.withResolvers<string>();
  const slow = process(() => {
    started.resolve();
    return late.promise;
  }).try(args);
  await started.promise;
  time.advance(11_000);
  const second = 'second, and longer than a tombstone keeps '.repeat(5);
  expect(await process(() => second).try(args)).toMatchObject({ ok: true, value: second });
  time.advance(61_000);
  await store.prune(10);
  late.resolve('first');

  expect(await slow).toMatchObject({ ok: true, value: 'first', receipt: { executed: true } });
});

test('a framework that reports "refused" after its process has closed gets the earlier doubt, and `verify` is not asked', async () => {
  const semel = createSemel({ ...options, store: memoryStore() });
  let asked = 0;
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    provider: { name: 'post', window: '24h' },
    run: (_args: { to: string }, { key: _ }) => Promise.reject(new Error('no answer')),
    verify: () => {
      asked += 1;
      return unsure();
    },
  });
  const args = { to: 'a@example.com' };
  expect(await mail.try(args)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  const begun = await semel.begin(mail, args);
  if (!begun.execute) throw new Error('It is not executed.');
  const before = asked;
  const { signal } = begun.attempt;
  const ended = new Promise((resolve) => signal.addEventListener('abort', resolve));
  const closing = semel.close({ grace: 0 });
  await ended;
  const told = await begun.attempt.fail(new Error('not wanted'));
  await closing;

  expect(told).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(asked).toBe(before);
});
