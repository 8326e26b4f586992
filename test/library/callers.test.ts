// Whose call it is: another caller gets neither a second effect nor anything of the first one's call.

import { landed, MaybeLanded, NotLanded, notLanded, Rejected, type Semel, unsure } from 'semel';
import { memoryStore } from 'semel/memory';
import { describe, expect, test } from 'vitest';
import { gate, quick, rest, rig } from './support.ts';

const secret = 'of-ann-only';
const perEver = { name: 'refund', effect: 'write-non-idempotent', per: 'ever', identity: ['order'] } as const;

interface Refund {
  order: number;
  reason?: string;
}

const args: Refund = { order: 7, reason: `${secret} reason` };
const others: Refund = { order: 7, reason: 'another reason' };

function as<T>(semel: Semel, caller: string | undefined, work: () => T): T {
  return caller === undefined ? work() : semel.within({ caller }, work);
}

/** What the caller is told, in every form that a program may log or show. */
function tellsNothing(result: object): void {
  const { error, ...rest } = result as { error?: Error & { evidence?: unknown; cause?: unknown } };
  const told = [
    JSON.stringify(rest),
    JSON.stringify(error),
    error?.message,
    error?.stack,
    String(error?.cause),
  ];
  expect(told.join('\n')).not.toContain(secret);
}

const refusal = {
  ok: false,
  error: { code: 'NOT_PERMITTED', retriable: false, path: 'caller', evidence: undefined },
  receipt: { executed: false, replayed: false, fence: 0, remoteRef: undefined, settledAt: undefined },
};

describe.each([
  ['another caller', 'ann', 'bob'],
  ['no caller, where the first had one', 'ann', undefined],
  ['a caller, where the first had none', undefined, 'bob'],
])('%s', (_, first, second) => {
  test.each(['ever', { unit: 'day', zone: 'UTC' }, 'conversation', 'turn', 'run'] as const)(
    'is refused under per %j: nothing runs again, and nothing is disclosed',
    async (per) => {
      const semel = quick();
      let runs = 0;
      const refund = semel.tool({
        ...perEver,
        per,
        run: (_: Refund, ctx) => {
          runs += 1;
          ctx.note(`${secret}-ref`);
          return { id: secret };
        },
      });
      await semel.within({ conversation: 'c', turn: 't', run: 'r', at: Date.UTC(2026, 5, 19) }, async () => {
        expect(await as(semel, first, () => refund(args))).toEqual({ id: secret });
        for (let asked = 0; asked < 3; asked += 1) {
          const result = await as(semel, second, () => refund.try(others));
          expect(result).toMatchObject(refusal);
          tellsNothing(result);
        }
        expect(await as(semel, first, () => refund(args))).toEqual({ id: secret });
      });
      expect(runs).toBe(1);
    },
  );

  test('hears while it runs only that it does, from the same process and from another', async () => {
    const { semel, another, clock } = rig();
    const end = gate<unknown>();
    let runs = 0;
    const define = (each: Semel) =>
      each.tool({
        ...perEver,
        run: (_: Refund) => {
          runs += 1;
          return end.promise;
        },
      });
    const here = define(semel);
    const running = as(semel, first, () => here.try(args));
    await rest();
    for (const each of [semel, another()]) {
      const tool = each === semel ? here : define(each);
      const result = await clock.until(as(each, second, () => tool.try(others)));
      expect(result).toMatchObject({
        ...refusal,
        error: { code: 'IN_FLIGHT', retriable: true, evidence: undefined },
      });
      tellsNothing(result);
    }
    end.resolve(secret);
    expect(await clock.until(running)).toMatchObject({ ok: true, value: secret });
    expect(await as(semel, second, () => here.try(others))).toMatchObject(refusal);
    expect(runs).toBe(1);
  });

  test('does not settle or see a doubt: verify is not called for it', async () => {
    const semel = quick();
    let looks = 0;
    let hasLanded = false;
    const refund = semel.tool({
      ...perEver,
      verifyAfter: '1ms',
      verify: () => {
        looks += 1;
        return hasLanded ? landed({ id: secret }) : unsure();
      },
      run: (_: Refund): { id: string } => {
        throw new MaybeLanded(`${secret} timed out`);
      },
    });
    await as(semel, first, () => refund.try(args));
    const before = looks;
    const result = await as(semel, second, () => refund.try(others));
    expect(result).toMatchObject(refusal);
    tellsNothing(result);
    expect(looks).toBe(before);
    hasLanded = true;
    expect(await as(semel, first, () => refund.try(args))).toMatchObject({ ok: true, value: { id: secret } });
  });

  test('does not hear why it was refused', async () => {
    const semel = quick();
    const refund = semel.tool({
      ...perEver,
      run: (_: Refund) => {
        throw new Rejected(`${secret}: no money`);
      },
    });
    await as(semel, first, () => refund.try(args));
    const result = await as(semel, second, () => refund.try(others));
    expect(result).toMatchObject(refusal);
    tellsNothing(result);
  });

  test('runs what definitely did not land, in its own words', async () => {
    const semel = quick();
    const ran: Refund[] = [];
    const prepared: unknown[] = [];
    const refund = semel.tool({
      ...perEver,
      prepare: ({ reason }: Refund) => ({ text: reason }),
      run: (asked: Refund, ctx) => {
        ran.push(asked);
        prepared.push(ctx.prepared);
        if (ran.length === 1) throw new NotLanded(`${secret} is off`);
        return 'done';
      },
    });
    await as(semel, first, () => refund.try(args));
    expect(await as(semel, second, () => refund.try(others))).toMatchObject({ ok: true, value: 'done' });
    expect(ran[1]).toEqual(others);
    expect(prepared[1]).toEqual({ text: others.reason });
    const late = await as(semel, first, () => refund.try(args));
    expect(late).toMatchObject(refusal);
  });
});

test('every other way in is refused too: a key of one’s own, begin, once, a late call, an approval in another turn', async () => {
  const semel = quick();
  const refund = semel.tool({ ...perEver, run: (_: Refund) => secret });
  const turned = semel.tool({ ...perEver, name: 'approve', per: 'turn', run: (_: Refund) => secret });
  const ways: Record<string, () => Promise<object>> = {
    key: () => refund.try(args, { key: 'k-1' }),
    late: () => refund.try(args, { notAfter: Date.now() + (isLate ? -1 : 60_000) }),
    begin: async () => {
      const begun = await semel.begin(refund, { order: 8 });
      return begun.execute ? begun.attempt.succeed(secret) : begun.result;
    },
    once: () =>
      semel
        .once('mail', 'ann', () => secret)
        .then(
          (value) => ({ ok: true, value }),
          (error: unknown) => ({ ok: false, error, receipt: (error as { receipt: object }).receipt }),
        ),
    approval: () =>
      turned.try(args, {
        conversation: 'c',
        turn: isLate ? 'click-2' : 'click-1',
        toolCallId: 'toolu_01A09q90qw90lq917835lq9',
      }),
  };
  let isLate = false;
  for (const way of Object.values(ways))
    expect(await as(semel, 'ann', way)).toMatchObject({ ok: true, value: secret });
  isLate = true;
  for (const way of Object.values(ways)) {
    const result = await as(semel, 'bob', way);
    expect(result).toMatchObject(refusal);
    tellsNothing(result);
    expect(await as(semel, 'ann', way)).toMatchObject({ ok: true, value: secret });
  }
});

test('where the contract says share, every caller gets the one result', async () => {
  const semel = quick();
  let runs = 0;
  const report = semel.tool({ ...perEver, share: true, run: (_: Refund) => ++runs });
  const both = await Promise.all(
    ['ann', 'bob', undefined].map((caller) => as(semel, caller, () => report(args))),
  );
  expect(both).toEqual([1, 1, 1]);
  const once = (caller: string) =>
    as(semel, caller, () => semel.once('report', 'june', { share: true }, () => ++runs));
  expect([await once('ann'), await once('bob')]).toEqual([2, 2]);
});

test('where the contract says share, a caller in another process replays, waits and settles a doubt', async () => {
  const { semel, another, clock } = rig();
  const ends = [gate<string>(), gate<string>()];
  const define = (each: Semel, end: Promise<string>) =>
    each.tool({ ...perEver, share: true, verify: () => landed('found'), run: (_: Refund) => end });
  const here = define(semel, ends[0]!.promise);
  const there = define(another(), ends[1]!.promise);
  const running = semel.within({ caller: 'ann' }, () => here.try(args));
  await rest();
  const waiting = semel.within({ caller: 'bob' }, () => there.try(others));
  await rest();
  ends[0]!.resolve('done');
  for (const call of [running, waiting])
    expect(await clock.until(call)).toMatchObject({ ok: true, value: 'done' });
  expect(await clock.until(there.try(others))).toMatchObject({ ok: true, value: 'done' });

  const failing = semel.tool({
    ...perEver,
    name: 'other',
    share: true,
    run: (_: Refund): string => {
      throw new MaybeLanded('timed out');
    },
  });
  await clock.until(semel.within({ caller: 'ann' }, () => failing.try(args)));
  const settling = another().tool({
    ...perEver,
    name: 'other',
    share: true,
    verify: () => landed('found'),
    run: (_: Refund) => 'ran',
  });
  const found = semel.within({ caller: 'bob' }, () => settling.try(others));
  expect(await clock.until(found)).toMatchObject({ ok: true, value: 'found' });
});

test('a repeatable write runs for each caller: after the other one, even if that one crashed', async () => {
  const { semel, another, clock } = rig();
  const ends = [gate<string>(), gate<string>(), gate<string>()];
  let runs = 0;
  const define = (each: Semel) =>
    each.tool({
      ...perEver,
      effect: 'write-idempotent',
      run: (_: Refund) => {
        runs += 1;
        return ends[runs - 1]!.promise;
      },
    });
  const tools = [define(semel), define(semel), define(another())];
  const calls = tools.map((tool, n) => as(semel, `caller ${n}`, () => tool.try(args)));
  await rest();
  expect(runs).toBe(1);
  for (const [n, end] of ends.entries()) end.resolve(`value ${n}`);
  const values = [];
  for (const call of calls) values.push(await clock.until(call));
  expect(runs).toBe(3);
  expect(new Set(values.map((result) => result.ok && result.value)).size).toBe(3);

  const stuck = another().tool({
    ...perEver,
    effect: 'write-idempotent',
    name: 'set',
    run: () => gate().promise,
  });
  void as(semel, 'ann', () => stuck.try({ order: 8 }));
  await rest();
  // As if the process had died: nothing renews its lease, and the other one hears of nothing.
  clock.jump(61_000);
  const set = semel.tool({
    ...perEver,
    effect: 'write-idempotent',
    name: 'set',
    run: (_: { order: number }) => 'set',
  });
  const after = as(semel, 'bob', () => set.try({ order: 8 }));
  expect(await clock.until(after)).toMatchObject({ ok: true, value: 'set', receipt: { unguarded: true } });
});

test('share is true or false, and part of what two definitions of a name must agree on', () => {
  const semel = quick();
  expect(() => semel.tool({ ...perEver, share: 'yes' as never, run: () => 1 })).toThrow(
    expect.objectContaining({ code: 'CONTRACT_INVALID', path: 'share' }),
  );
  semel.tool({ ...perEver, run: () => 1 });
  expect(() => semel.tool({ ...perEver, share: true, run: () => 1 })).toThrow(/`share`/);
});

test('a caller changes no key, and only a digest of it is kept', async () => {
  const semel = quick();
  const refund = semel.tool({ ...perEver, run: (_: Refund) => 1 });
  const { receipt } = await refund.try(args, { caller: 'ann@example.com' });
  expect((await semel.keyOf(refund, args)).key).toBe(receipt.key);
  const record = await semel.records.get(receipt.key);
  expect(record?.caller).toMatch(/^[0-9a-z]{32}$/);
  expect(JSON.stringify(record)).not.toContain('ann@example.com');
});

test('the option of a call comes before what is around it, and both mean the same', async () => {
  const semel = quick();
  const refund = semel.tool({ ...perEver, run: (_: Refund) => 1 });
  await refund(args, { caller: 'ann' });
  expect(await as(semel, 'ann', () => refund(args))).toBe(1);
  expect(await as(semel, 'bob', () => refund(args, { caller: 'ann' }))).toBe(1);
  expect(await as(semel, 'ann', () => refund.try(args, { caller: 'bob' }))).toMatchObject(refusal);
});

test.each(['', '  ', 7, null, '\ud800'])('%j is not a caller', async (caller) => {
  const semel = quick();
  const refund = semel.tool({ ...perEver, run: (_: Refund) => 1 });
  expect(() => semel.within({ caller: caller as string }, () => 1)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGS', path: 'caller' }),
  );
  expect(await refund.try(args, { caller: caller as string })).toMatchObject({
    error: { code: 'INVALID_ARGS', path: 'caller' },
  });
});

test('a sweep settles a doubt for its caller, who owns the value', async () => {
  const { semel, clock } = rig();
  let attempts = 0;
  const refund = semel.tool({
    ...perEver,
    verify: () => (attempts === 1 ? notLanded() : landed('done')),
    run: (_: Refund) => {
      attempts += 1;
      if (attempts === 1) throw new MaybeLanded('timed out');
      return 'done';
    },
  });
  await as(semel, 'ann', () => refund.try(args));
  await clock.advance(12 * 60_000);
  expect(await clock.until(semel.doubts.sweep())).toMatchObject({ landed: 1 });
  expect(await as(semel, 'bob', () => refund.try(others))).toMatchObject(refusal);
  expect(await as(semel, 'ann', () => refund(args))).toBe('done');
});

test('export and import keep a record’s caller', async () => {
  const from = quick();
  const to = quick();
  const define = (semel: Semel) => semel.tool({ ...perEver, run: (_: Refund) => secret });
  await as(from, 'ann', () => define(from)(args));
  const refund = define(to);
  for await (const record of from.records.export())
    expect(await to.records.import(record)).toMatchObject({ imported: true });
  expect(await as(to, 'bob', () => refund.try(others))).toMatchObject(refusal);
  expect(await as(to, 'ann', () => refund(args))).toBe(secret);
});

test('observe mode runs as before, says what would have been, and gives nothing of another caller’s', async () => {
  const store = memoryStore();
  const enforcing = quick({ store });
  const observing = quick({ store, mode: 'observe' });
  await as(enforcing, 'ann', () => enforcing.tool({ ...perEver, run: (_: Refund) => secret })(args));
  const refund = observing.tool({ ...perEver, run: (_: Refund) => 'of bob' });
  const result = await as(observing, 'bob', () => refund.try(others));
  expect(result).toMatchObject({ ok: true, value: 'of bob', receipt: { observed: 'foreign' } });
  tellsNothing(result);
});

test('the refusal is in the history of the record and an event', async () => {
  const semel = quick();
  const events: unknown[] = [];
  semel.on('conflict', (event) => events.push(event));
  const refund = semel.tool({ ...perEver, run: (_: Refund) => 1 });
  const { receipt } = await refund.try(args, { caller: 'ann' });
  await refund.try(args, { caller: 'bob' });
  expect(events).toMatchObject([{ contract: 'refund', key: receipt.key }]);
  expect(await semel.records.history(receipt.key)).toMatchObject([
    { type: 'conflict', detail: { because: 'it belongs to another caller' } },
  ]);
});

describe('a hand-off', () => {
  test('carries the caller, as a digest', async () => {
    const semel = quick();
    const refund = semel.tool({ ...perEver, run: (_: Refund) => secret });
    const handoff = semel.within({ caller: 'ann@example.com', conversation: 'c' }, () => semel.handoff());
    expect(Buffer.from(handoff.split('.')[1] as string, 'base64url').toString()).not.toContain('ann@');
    await as(semel, 'ann@example.com', () => refund(args));
    expect(await semel.within(handoff, () => refund(args))).toBe(secret);
  });

  test('does not replace a caller that the program has named', async () => {
    const semel = quick();
    const refund = semel.tool({ ...perEver, run: (_: Refund) => secret });
    const handoff = semel.within({ caller: 'ann', conversation: 'c' }, () => semel.handoff());
    await as(semel, 'ann', () => refund(args));
    const result = await as(semel, 'bob', () => semel.within(handoff, () => refund.try(args)));
    expect(result).toMatchObject(refusal);
  });

  test('with SEMEL_HANDOFF_KEY, one that was made without the key is refused', () => {
    const semel = quick();
    const make = () => semel.within({ caller: 'ann', conversation: 'c' }, () => semel.handoff());
    const forged = make();
    process.env.SEMEL_HANDOFF_KEY = 'a-key-that-is-long-enough';
    try {
      const signed = make();
      expect(semel.within(signed, () => semel.handoff())).toBe(signed);
      expect(() => semel.within(forged, () => 1)).toThrow(expect.objectContaining({ code: 'NO_IDENTITY' }));
      process.env.SEMEL_HANDOFF_KEY = 'another-key-of-some-length';
      expect(() => semel.within(signed, () => 1)).toThrow(expect.objectContaining({ code: 'NO_IDENTITY' }));
      process.env.SEMEL_HANDOFF_KEY = 'short';
      expect(() => semel.within(signed, () => 1)).toThrow(/SEMEL_HANDOFF_KEY is shorter than 16/);
    } finally {
      delete process.env.SEMEL_HANDOFF_KEY;
    }
  });
});
