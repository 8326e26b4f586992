// `verify` is asked in the same call that ended in doubt: what landed is told as landed, and only "not landed" has to wait.

import {
  landed,
  MaybeLanded,
  NotLanded,
  notLanded,
  type Semel,
  unsure,
  type Verification,
  type VerifyContext,
} from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

const mail = { name: 'mail.send', effect: 'write-non-idempotent', per: 'ever', identity: ['to'] } as const;

interface Mail {
  to: string;
}

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

/** A tool that always ends in doubt, and what its `verify` was given. */
function doubtful(
  semel: Semel,
  verify: (ctx: VerifyContext) => Verification | Promise<Verification>,
  more = {},
) {
  const asked: VerifyContext[] = [];
  const ran: Mail[] = [];
  const tool = semel.tool({
    ...mail,
    ...more,
    run: (args: Mail, { key: _ }): unknown => {
      ran.push(args);
      throw reset();
    },
    verify: (_, ctx) => {
      asked.push(ctx);
      return verify(ctx);
    },
  });
  return { tool, asked, ran };
}

describe('"landed"', () => {
  test('settles the call that failed, with its value and its reference', async () => {
    const { semel } = rig();
    const { tool, ran } = doubtful(semel, () => landed({ id: 'm-1' }, 'msg_1'));
    expect(await tool.try({ to: 'ann' })).toMatchObject({
      ok: true,
      value: { id: 'm-1' },
      receipt: { executed: true, replayed: false, attempt: 1, remoteRef: 'msg_1', acceptedRepeat: false },
    });
    expect(await tool.try({ to: 'ann' })).toMatchObject({
      value: { id: 'm-1' },
      receipt: { replayed: true },
    });
    expect(ran).toHaveLength(1);
    expect((await semel.doubts.list()).items).toEqual([]);
  });

  test('runs under the claim: nobody else can act on the key meanwhile', async () => {
    const made = rig();
    const answer = gate<Verification>();
    const { tool } = doubtful(made.semel, () => answer.promise);
    const other = doubtful(made.another(), () => notLanded(), { ifBusy: 'fail' });
    const call = tool.try({ to: 'ann' });
    // The heartbeat goes on for longer than the lease.
    await made.clock.advance(180_000);
    expect(await other.tool.try({ to: 'ann' })).toMatchObject({ ok: false, error: { code: 'IN_FLIGHT' } });
    answer.resolve(landed('found'));
    expect(await call).toMatchObject({ ok: true, value: 'found' });
    expect(other.asked).toEqual([]);
  });

  test('is shared by the callers who wait for the same call', async () => {
    const { semel } = rig();
    const { tool, asked } = doubtful(semel, () => landed('found'));
    const both = await Promise.all([tool({ to: 'ann' }), tool({ to: 'ann' })]);
    expect(both).toEqual(['found', 'found']);
    expect(asked).toHaveLength(1);
  });

  test.each(['threw', 'unknown'] as const)(
    'settles an attempt that was begun, and ended as `%s`',
    async (end) => {
      const { semel } = rig();
      const { tool } = doubtful(semel, () => landed('found'));
      const begun = await semel.begin(tool, { to: 'ann' });
      if (!begun.execute) return expect.fail('it should execute');
      expect(await begun.attempt[end](reset())).toMatchObject({ ok: true, value: 'found' });
      expect(await tool({ to: 'ann' })).toBe('found');
    },
  );

  test('is asked once all tries are used up', async () => {
    const { semel, clock } = rig();
    const provider = { name: 'mailer', window: '48h', hosts: ['127.0.0.1'] } as const;
    const retry = { tries: 3, backoff: 10 };
    const { tool, asked, ran } = doubtful(semel, () => landed('found'), { provider, retry });
    expect(await clock.until(tool({ to: 'ann' }))).toBe('found');
    expect([ran.length, asked.length]).toEqual([3, 1]);
  });

  test('is asked about earlier attempts too, where this one surely did not land', async () => {
    const { semel } = rig();
    const provider = { name: 'mailer', window: '48h', hosts: ['127.0.0.1'] } as const;
    const errors = [reset(), new NotLanded('connection refused')];
    const answers = [unsure(), landed('found')];
    const tool = semel.tool({
      ...mail,
      provider,
      run: (_: Mail): string => {
        throw errors.shift();
      },
      verify: () => answers.shift() ?? unsure(),
    });
    expect(await tool.try({ to: 'ann' })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(await tool.try({ to: 'ann' })).toMatchObject({ ok: true, value: 'found' });
  });

  test('found by a later attempt may be the effect of an earlier one: its late report is not a duplicate', async () => {
    const made = rig({ onDoubt: 'rerun' });
    const first = gate<string>();
    const duplicates: unknown[] = [];
    made.semel.on('duplicate', (event) => duplicates.push(event));
    const slow = made.semel.tool({ ...mail, lease: '10s', run: (_: Mail) => first.promise });
    const call = slow.try({ to: 'ann' });
    await rest();
    made.clock.jump(11_000);
    const { tool } = doubtful(made.another(), () => landed('found'), { lease: '10s' });
    expect(await tool({ to: 'ann' })).toBe('found');
    first.resolve('sent');
    await call;
    expect(duplicates).toEqual([]);
  });
});

describe('"not landed"', () => {
  test('has to wait, and the error says for how long', async () => {
    const { semel, clock } = rig();
    const { tool, ran } = doubtful(semel, () => notLanded());
    const first = await tool.try({ to: 'ann' });
    expect(first).toMatchObject({
      ok: false,
      error: {
        code: 'IN_DOUBT',
        retriable: true,
        retryAfterMs: 60_000,
        cause: { message: 'socket hang up' },
      },
      receipt: { executed: true },
    });
    expect(first.ok ? '' : first.error.message).toMatch(
      /^mail\.send: ECONNRESET: socket hang up\. .*`verify` could not tell: it says "not landed", but a request may still be on its way\./,
    );
    expect(ran).toHaveLength(1);
    await clock.advance(60_000);
    await tool.try({ to: 'ann' });
    expect(ran).toHaveLength(2);
  });

  test('counts from the end of the attempt, not from an earlier one', async () => {
    const { semel, clock } = rig();
    const { tool, ran } = doubtful(semel, () => notLanded());
    await tool.try({ to: 'ann' });
    await clock.advance(60_000);
    await tool.try({ to: 'ann' });
    await clock.advance(59_000);
    expect(await tool.try({ to: 'ann' })).toMatchObject({ error: { code: 'IN_DOUBT', retryAfterMs: 1_000 } });
    expect(ran).toHaveLength(2);
  });

  test('counts at once where the contract says that nothing stays on its way', async () => {
    const { semel } = rig();
    const { tool, ran } = doubtful(semel, () => notLanded(), { verifyAfter: 0 });
    expect(await tool.try({ to: 'ann' })).toMatchObject({
      ok: false,
      error: { code: 'NOT_LANDED', retriable: true, cause: { message: 'socket hang up' } },
    });
    expect((await semel.doubts.list()).items).toEqual([]);
    await tool.try({ to: 'ann' });
    expect(ran).toHaveLength(2);
  });

  test('does not count at once for an earlier attempt that may still be running', async () => {
    const made = rig({ onDoubt: 'rerun' });
    const slow = made.semel.tool({
      ...mail,
      lease: '10s',
      run: (_: Mail) => new Promise<string>(() => undefined),
    });
    void slow.try({ to: 'ann' });
    await rest();
    made.clock.jump(11_000);
    const { tool } = doubtful(made.another(), () => notLanded(), { verifyAfter: 0 });
    expect(await tool.try({ to: 'ann' })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  });
});

describe('no answer', () => {
  test.each([
    ['unsure', () => unsure('the list lags'), 'the list lags'],
    ['a throw', () => Promise.reject(new Error('503')), '503'],
    ['neither of the three', () => true as never, 'it answered none of'],
  ])('%s leaves the doubt with what was thrown first', async (_name, verify, why) => {
    const { semel } = rig();
    const { tool, asked } = doubtful(semel, verify);
    const result = await tool.try({ to: 'ann' });
    expect(result).toMatchObject({
      ok: false,
      error: { code: 'IN_DOUBT', cause: { message: 'socket hang up' } },
    });
    const message = result.ok ? '' : result.error.message;
    expect(message).toMatch(/^mail\.send: ECONNRESET: socket hang up\./);
    expect(message).toContain(`\`verify\` could not tell: ${why}`);
    expect(asked).toHaveLength(1);
    expect((await semel.doubts.list()).items[0]?.error?.message).toBe('ECONNRESET: socket hang up');
  });

  test('in a process that dies meanwhile leaves the record locked until its lease ends', async () => {
    const made = rig();
    const { tool } = doubtful(made.semel, () => new Promise(() => undefined), {
      lease: '10s',
      timeout: '30s',
    });
    void tool.try({ to: 'ann' });
    await rest();
    made.clock.jump(11_000);
    const next = doubtful(made.another(), () => landed('found'), { lease: '10s' });
    expect(await next.tool.try({ to: 'ann' })).toMatchObject({
      value: 'found',
      receipt: { executed: false },
    });
    expect(next.ran).toEqual([]);
  });

  test.each([
    ['the caller gave up', 'abort', 'ABORTED'],
    ['the process is closing', 'close', 'IN_DOUBT'],
  ])(
    'is waited for no longer, even from a `verify` that ignores its signal, when %s',
    async (_name, how, code) => {
      const { semel, clock, another } = rig();
      const caller = new AbortController();
      const { tool, asked } = doubtful(semel, () => new Promise(() => undefined));
      const call = tool.try({ to: 'ann' }, { signal: caller.signal });
      await rest();
      expect(asked[0]?.signal.aborted).toBe(false);
      const closing = how === 'close' ? semel.close({ grace: 0 }) : undefined;
      if (how === 'abort') caller.abort();
      const result = await clock.until(call);
      expect(result).toMatchObject({ ok: false, error: { code } });
      expect(asked[0]?.signal.aborted).toBe(true);
      await closing;
      const { items } = await another().doubts.list();
      expect(items).toMatchObject([{ status: 'unknown', error: { message: 'ECONNRESET: socket hang up' } }]);
    },
  );
});

describe('it is not asked', () => {
  test('after the timeout, when the caller gave up, or while the process closes', async () => {
    const made = rig();
    const caller = new AbortController();
    let asked = 0;
    const hanging = (timeout: '5s' | 'none') =>
      made.another().tool({
        ...mail,
        timeout,
        run: (_: Mail, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(reset()))),
        verify: () => {
          asked += 1;
          return landed('found');
        },
      });
    const timedOut = hanging('5s').try({ to: 'ann' });
    await made.clock.advance(5_000);
    expect(await timedOut).toMatchObject({ error: { code: 'IN_DOUBT' } });
    const left = hanging('none').try({ to: 'bob' }, { signal: caller.signal });
    await rest();
    caller.abort();
    expect((await made.clock.until(left)).ok).toBe(false);
    expect(asked).toBe(0);
  });

  test('about what surely did not land, or landed', async () => {
    const { semel } = rig();
    const asked: string[] = [];
    const tool = semel.tool({
      ...mail,
      run: ({ to }: Mail) => {
        if (to === 'ann') throw new NotLanded('refused');
        return 'sent';
      },
      verify: ({ to }) => {
        asked.push(to);
        return landed('found');
      },
    });
    await tool.try({ to: 'ann' });
    await tool.try({ to: 'bob' });
    expect(asked).toEqual([]);
  });

  test('if the contract is wrong, the error says so', async () => {
    const { semel } = rig();
    const tool = semel.tool({
      ...mail,
      dispatch: 'explicit',
      run: (_: Mail) => 'sent',
      verify: () => landed('found'),
    });
    const result = await tool.try({ to: 'ann' });
    expect(result.ok ? '' : result.error.message).toContain('returned without `ctx.dispatch()`');
  });

  test('by a tool that is only observed', async () => {
    const { semel } = rig({ mode: 'observe' });
    const { tool, asked } = doubtful(semel, () => landed('found'));
    await expect(tool({ to: 'ann' })).rejects.toThrow('socket hang up');
    expect(asked).toEqual([]);
  });
});

test('`verify` decides what the tool itself cannot', async () => {
  const { semel } = rig();
  const tool = semel.tool({
    ...mail,
    run: (_: Mail): string => {
      throw new MaybeLanded('no reply');
    },
    verify: () => landed('found'),
  });
  expect(await tool({ to: 'ann' })).toBe('found');
});
