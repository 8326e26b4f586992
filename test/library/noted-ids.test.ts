// The id that an attempt noted is about that attempt: once it is known not to have landed, `verify` of a later attempt must
// not be given it. It would answer for the wrong effect.

import {
  type AttemptContext,
  landed,
  NotLanded,
  notLanded,
  unsure,
  type Verification,
  type VerifyContext,
} from 'semel';
import { expect, test } from 'vitest';
import { gate, type Rig, rig } from './support.ts';

const pay = { name: 'pay', effect: 'write-non-idempotent', per: 'ever', identity: ['order'] } as const;

interface Order {
  order: string;
}

/** Each payment gets an id; only the first attempt lives to note it. `verify` looks up what was noted, and nothing else. */
function payments({ semel }: Rig, more: object = {}, failsWith: (nth: number) => Error = () => reset()) {
  const asked: (string | undefined)[] = [];
  const paid: string[] = [];
  const tool = semel.tool({
    ...pay,
    lease: '30s',
    timeout: '1m',
    verifyAfter: '5s',
    ...more,
    run: (_: Order, ctx): unknown => {
      const id = `pay_${paid.length + 1}`;
      paid.push(id);
      if (id === 'pay_1') ctx.note(id);
      throw failsWith(paid.length);
    },
    verify: (_, { remoteRef }: VerifyContext): Verification => {
      asked.push(remoteRef);
      // The first was declined; of any other, nobody knows.
      return remoteRef === 'pay_1' ? notLanded() : unsure('no id was noted');
    },
  });
  return { tool, asked, paid };
}

const reset = () => new Error('socket hang up');

test('after "not landed", an id that was noted before says nothing about the attempt that follows', async () => {
  const made = rig();
  const { tool, asked, paid } = payments(made);
  for (let call = 0; call < 5; call += 1) {
    await made.clock.until(tool.try({ order: 'o-1' }));
    await made.clock.advance(120_000);
  }
  expect(paid).toEqual(['pay_1', 'pay_2']);
  expect(asked.slice(0, 3)).toEqual(['pay_1', 'pay_1', undefined]);
});

test.each(['notLanded', 'runAgain'] as const)('the same after a person said "%s"', async (verdict) => {
  const made = rig();
  const { tool, asked, paid } = payments(made);
  await tool.try({ order: 'o-1' });
  const [doubt] = (await made.semel.doubts.list()).items;
  expect(doubt?.remoteRef).toBe('pay_1');
  const decided = await made.semel.doubts.resolve(`${doubt?.ref}`, verdict, { by: 'ann', force: true });
  // Until it runs again, people still see it.
  expect(decided.remoteRef).toBe('pay_1');
  for (let call = 0; call < 3; call += 1) {
    await made.clock.until(tool.try({ order: 'o-1' }));
    await made.clock.advance(120_000);
  }
  expect(paid).toEqual(['pay_1', 'pay_2']);
  expect(new Set(asked.slice(1))).toEqual(new Set([undefined]));
});

test('the same inside one attempt, after a try that did not land', async () => {
  const made = rig();
  const fails = (nth: number) => (nth === 1 ? new NotLanded('declined') : reset());
  const { tool, asked, paid } = payments(made, { retry: { tries: 2, backoff: '1s' } }, fails);
  for (let call = 0; call < 3; call += 1) {
    await made.clock.until(tool.try({ order: 'o-1' }));
    await made.clock.advance(120_000);
  }
  expect(paid).toEqual(['pay_1', 'pay_2']);
  expect(new Set(asked)).toEqual(new Set([undefined]));
});

/** A tool whose `run` the test writes. */
function paying({ semel }: Rig, run: (ctx: AttemptContext, nth: number) => unknown, more: object = {}) {
  const asked: (string | undefined)[] = [];
  let nth = 0;
  const tool = semel.tool({
    ...pay,
    lease: '30s',
    timeout: '10m',
    ...more,
    run: (_: Order, ctx): unknown => run(ctx, ++nth),
    verify: (_, { remoteRef }: VerifyContext): Verification => {
      asked.push(remoteRef);
      return remoteRef === 're_1' ? landed('paid') : unsure('no id was noted');
    },
  });
  const ref = async () => (await semel.records.list()).items[0]?.remoteRef;
  return { tool, asked, ref };
}

test('a noted id is stored while the attempt runs, by one write more', async () => {
  const made = rig();
  const seen: unknown[] = [];
  const { tool, ref } = paying(made, async (ctx) => {
    seen.push(await ctx.note('re_1'), await ref());
    return 'paid';
  });
  const { receipt } = await tool.try({ order: 'o-1' });
  expect(seen).toEqual([true, 're_1']);
  expect(receipt.remoteRef).toBe('re_1');
  const writes = made.store.calls.filter((method) => ['claim', 'renew', 'settle'].includes(method));
  expect(writes).toEqual(['claim', 'renew', 'settle']);
});

test('the worker that takes over after a crash verifies by the id', async () => {
  const made = rig();
  const stuck = paying(made, async (ctx) => {
    await ctx.note('re_1');
    made.store.break('renew', 'settle');
    return new Promise(() => undefined);
  });
  void stuck.tool.try({ order: 'o-1' });
  await made.clock.advance(31_000);
  made.store.repair();
  const next = paying({ ...made, semel: made.another() }, () => 'a second payment');
  const result = await made.clock.until(next.tool.try({ order: 'o-1' }));
  expect(result).toMatchObject({ ok: true, value: 'paid', receipt: { executed: false, remoteRef: 're_1' } });
  expect(next.asked).toEqual(['re_1']);
});

test('a store that does not take the note never fails the effect, and gets it with the ending', async () => {
  const made = rig();
  const seen: unknown[] = [];
  const { tool, ref } = paying(made, async (ctx) => {
    made.store.break('renew');
    // Some wait for it, and some do not.
    void ctx.note('re_0');
    seen.push(await ctx.note('re_1'));
    return 'paid';
  });
  const result = await made.clock.until(tool.try({ order: 'o-1' }));
  expect(seen).toEqual([false]);
  expect(result).toMatchObject({ ok: true, value: 'paid' });
  expect(await ref()).toBe('re_1');
});

test('a note that the store did not take rides on the next renewal', async () => {
  const made = rig();
  const { promise, resolve } = gate();
  const { tool, ref } = paying(made, async (ctx) => {
    made.store.break('renew');
    await ctx.note('re_1');
    made.store.repair();
    await promise;
    return 'paid';
  });
  const running = tool.try({ order: 'o-1' });
  await made.clock.advance(1_000);
  expect(await ref()).toBe(undefined);
  await made.clock.advance(11_000);
  expect(await ref()).toBe('re_1');
  resolve();
  await running;
});

test('the id of a try that did not land is gone before the next try sends', async () => {
  const made = rig();
  const seen: unknown[] = [];
  const run = async (ctx: AttemptContext, nth: number) => {
    seen.push(await ref());
    await ctx.note(`re_${nth}`);
    if (nth === 1) throw new NotLanded('declined');
    return 'paid';
  };
  const { tool, ref } = paying(made, run, { retry: { tries: 2, backoff: '1s' } });
  await made.clock.until(tool.try({ order: 'o-1' }));
  expect(seen).toEqual([undefined, undefined]);
});

test('if it cannot be removed, there is no further try', async () => {
  const made = rig();
  let tries = 0;
  const run = async (ctx: AttemptContext) => {
    tries += 1;
    await ctx.note('re_1');
    made.store.break('renew');
    throw new NotLanded('declined');
  };
  const { tool } = paying(made, run, { retry: { tries: 2, backoff: '1s' } });
  const result = await made.clock.until(tool.try({ order: 'o-1' }));
  expect(result).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
  expect(tries).toBe(1);
});

test('an attempt that did not land leaves `verify` the id of an earlier one in doubt', async () => {
  const made = rig();
  const run = async (ctx: AttemptContext, nth: number) => {
    await ctx.note(`re_${nth + 8}`);
    throw nth === 1 ? reset() : new NotLanded('declined');
  };
  const { tool, asked, ref } = paying(made, run, { onDoubt: 'rerun' });
  await made.clock.until(tool.try({ order: 'o-1' }));
  await made.clock.until(tool.try({ order: 'o-1' }));
  expect(asked).toEqual(['re_9', 're_9']);
  expect(await ref()).toBe('re_9');
});

test('an attempt that a framework settles stores its note at once too', async () => {
  const made = rig();
  const { tool, ref } = paying(made, () => 'never');
  const begun = await made.semel.begin(tool, { order: 'o-1' });
  if (!begun.execute) throw new Error('It should execute.');
  expect(await begun.attempt.note('re_1')).toBe(true);
  expect(await ref()).toBe('re_1');
  await begun.attempt.succeed('paid');
  expect(await begun.attempt.note('re_2')).toBe(false);
  expect(await ref()).toBe('re_1');
});

test('a person who says that it landed keeps the id', async () => {
  const made = rig();
  const { tool } = paying(made, async (ctx) => {
    await ctx.note('re_7');
    throw reset();
  });
  await tool.try({ order: 'o-1' });
  const [doubt] = (await made.semel.doubts.list()).items;
  const decided = await made.semel.doubts.resolve(`${doubt?.ref}`, { landed: 'paid' }, { by: 'ann' });
  expect(decided).toMatchObject({ status: 'succeeded', remoteRef: 're_7' });
});
