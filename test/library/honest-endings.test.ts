// What a caller and a listener hear of an ending is what happened: no doubt told twice, no run denied, no late success lost.

import { isSemelError, landed, notLanded, type SemelError, unsure } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, quick, rest, rig } from './support.ts';

const mail = { name: 'mail.send', effect: 'write-non-idempotent', per: 'ever' } as const;
const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

describe('IN_DOUBT is retriable where `verify` can decide at the next call', () => {
  test('from the start, while it has to wait, and once it can', async () => {
    const { semel, clock } = rig();
    let runs = 0;
    const tool = semel.tool({
      ...mail,
      verifyAfter: '30s',
      run: () => {
        runs += 1;
        throw reset();
      },
      verify: () => unsure('its list is down'),
    });
    expect(await tool.try({})).toMatchObject({ error: { retriable: true, retryAfterMs: 30_000 } });
    await clock.advance(30_000);
    const { error } = (await tool.try({})) as { error: SemelError };
    expect(error).toMatchObject({ code: 'IN_DOUBT', retriable: true });
    expect(error.correctiveAction).toContain('call again: semel then asks `verify`');
    expect(runs).toBe(1);
  });

  test('a consumer that obeys it gets the value in the end', async () => {
    const { semel } = rig();
    let asked = 0;
    const tool = semel.tool({
      ...mail,
      verifyAfter: 0,
      run: (): string => {
        throw reset();
      },
      verify: () => (++asked < 3 ? unsure() : landed('found')),
    });
    let result = await tool.try({});
    while (!result.ok && result.error.retriable) result = await tool.try({});
    expect(result).toMatchObject({ ok: true, value: 'found' });
  });

  test('not if only a person can decide', async () => {
    const tool = quick().tool({ ...mail, run: () => Promise.reject(reset()) });
    expect(await tool.try({})).toMatchObject({ error: { code: 'IN_DOUBT', retriable: false } });
  });
});

describe('a caller who gives up after the line', () => {
  test('hears that it was started and may land', async () => {
    const { semel } = rig();
    const { promise, resolve } = gate<string>();
    const tool = semel.tool({ ...mail, run: () => promise });
    const leaving = new AbortController();
    const call = tool.try({}, { signal: leaving.signal });
    await rest();
    leaving.abort();
    expect(await call).toMatchObject({
      ok: false,
      error: { code: 'ABORTED', evidence: { mayLand: true, record: expect.any(String) } },
      receipt: { executed: true },
    });
    resolve('sent');
    await rest();
    expect(await tool({})).toBe('sent');
  });

  test('learns that nothing was started, if that is so', async () => {
    const { semel } = rig();
    const tool = semel.tool({
      ...mail,
      dispatch: 'explicit',
      run: () => new Promise<string>(() => undefined),
    });
    const leaving = new AbortController();
    const call = tool.try({}, { signal: leaving.signal });
    await rest();
    leaving.abort();
    const result = await call;
    expect(result).toMatchObject({ ok: false, error: { code: 'ABORTED' }, receipt: { executed: false } });
    expect((result as { error: SemelError }).error.evidence).not.toHaveProperty('mayLand');
  });

  test('a caller that only shared the result has executed nothing', async () => {
    const { semel } = rig();
    const { promise, resolve } = gate<string>();
    const tool = semel.tool({ ...mail, run: () => promise });
    const leading = tool.try({});
    await rest();
    const leaving = new AbortController();
    const sharing = tool.try({}, { signal: leaving.signal });
    leaving.abort();
    expect(await sharing).toMatchObject({
      error: { code: 'ABORTED', evidence: { mayLand: true } },
      receipt: { executed: false },
    });
    resolve('sent');
    expect(await leading).toMatchObject({ ok: true });
  });
});

describe('the event `doubt`', () => {
  test('is emitted once for a lapsed record, although `verify` cannot decide it', async () => {
    const made = rig();
    const definition = { ...mail, verify: () => unsure() };
    void made.semel.tool({ ...definition, run: () => new Promise<string>(() => undefined) }).try({});
    await rest();
    made.clock.jump(61_000);
    const other = made.another();
    const doubts: unknown[] = [];
    other.on('doubt', (event) => doubts.push(event));
    const tool = other.tool({ ...definition, run: () => 'sent' });
    for (let call = 1; call <= 3; call += 1)
      expect(await tool.try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(doubts).toHaveLength(1);
  });

  test('is emitted once for a run that continues after its timeout', async () => {
    const { semel, clock } = rig();
    const doubts: unknown[] = [];
    semel.on('doubt', (event) => doubts.push(event));
    const { promise, reject } = gate<string>();
    const call = semel.tool({ ...mail, timeout: '1s', run: () => promise }).try({});
    await clock.advance(1_000);
    await call;
    reject(reset());
    await rest();
    expect(doubts).toHaveLength(1);
  });

  test('is emitted again for an attempt that ran after "not landed"', async () => {
    const { semel, clock } = rig();
    const doubts: unknown[] = [];
    semel.on('doubt', (event) => doubts.push(event));
    const tool = semel.tool({
      ...mail,
      run: () => Promise.reject(reset()),
      verify: () => notLanded(),
    });
    await tool.try({});
    await clock.advance(60_000);
    await tool.try({});
    expect(doubts).toHaveLength(2);
  });
});

describe('an entry of `classify` for an error after which a request may have arrived', () => {
  test.each(['ETIMEDOUT', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'DEADLINE_EXCEEDED', '503'])(
    '%s is warned about',
    (code) => {
      const warned = (meaning: 'notLanded' | 'rejected' | 'maybeLanded') => {
        const { semel, warnings } = rig();
        semel.tool({ ...mail, classify: { [code]: meaning }, run: () => 1 });
        return warnings.filter((text) => text.includes(code)).length;
      };
      expect([warned('notLanded'), warned('rejected'), warned('maybeLanded')]).toEqual([1, 1, 0]);
    },
  );

  test.each(['ECONNREFUSED', 'EAUTH', '23505', '429'])('%s is not', (code) => {
    const { semel, warnings } = rig();
    semel.tool({ ...mail, classify: { [code]: 'notLanded' }, run: () => 1 });
    expect(warnings.join()).not.toContain(code);
  });

  test('is not proposed by IN_DOUBT', async () => {
    const advice = async (code: string) => {
      const tool = quick().tool({
        ...mail,
        run: () => Promise.reject(Object.assign(new Error('no'), { code })),
      });
      const result = await tool.try({});
      return result.ok ? '' : result.error.correctiveAction;
    };
    expect(await advice('EAUTH')).toContain("classify: { EAUTH: 'notLanded' }");
    expect(await advice('ETIMEDOUT')).not.toContain('classify');
  });
});

test('a store that is lost after a run says that it was run', async () => {
  const { semel, store, clock } = rig();
  const tool = semel.tool({
    ...mail,
    run: () => {
      store.break('settle');
      throw reset();
    },
  });
  const result = await clock.until(tool.try({}));
  expect(result).toMatchObject({
    ok: false,
    error: { code: 'STORE_UNAVAILABLE', evidence: { executed: true, key: expect.any(String) } },
    receipt: { executed: true },
  });
  expect((result as { error: SemelError }).error.message).not.toContain('Nothing was run');
});

describe('a framework that reports after the timeout', () => {
  const late = async (report: 'succeed' | 'fail' | 'release' | 'unknown') => {
    const { semel, clock } = rig();
    const tool = semel.tool({ ...mail, timeout: '10s', run: () => 'unused' });
    const begun = await semel.begin(tool, {});
    if (!begun.execute) return expect.fail('it should execute');
    await clock.advance(11_000);
    const { attempt } = begun;
    const heard = report === 'succeed' ? await attempt.succeed('sent') : await attempt[report](reset());
    return { heard, next: await tool.try({}) };
  };

  test('hears that its success was recorded', async () => {
    const { heard, next } = await late('succeed');
    expect(heard).toMatchObject({ ok: true, value: 'sent', receipt: { executed: true } });
    expect(next).toMatchObject({ ok: true, value: 'sent', receipt: { replayed: true } });
  });

  test('hears what became of any other report', async () => {
    expect((await late('fail')).heard).toMatchObject({ error: { code: 'FAILED' } });
    expect((await late('release')).heard).toMatchObject({ error: { code: 'NOT_LANDED' } });
    expect((await late('unknown')).heard).toMatchObject({ error: { code: 'IN_DOUBT' } });
  });
});

describe('a thrown value that cannot be read', () => {
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable(new Error('gone'), {});
    revoke();
    return proxy;
  };
  const trap = (field: string) => {
    const error = new Error('trap');
    Object.defineProperty(error, field, {
      get: () => {
        throw new Error(`no ${field}`);
      },
    });
    return error;
  };
  const values: [string, () => unknown][] = [
    ['a revoked proxy', revoked],
    ['an error caused by a revoked proxy', () => new Error('outer', { cause: revoked() })],
    ['several, one of them a revoked proxy', () => new AggregateError([revoked()])],
    ...['message', 'name', 'code', 'cause', 'status', 'response'].map((field): [string, () => unknown] => [
      `an error whose ${field} throws`,
      () => trap(field),
    ]),
    [
      'a plain object whose message throws',
      () => ({
        get message() {
          throw new Error('no');
        },
      }),
    ],
    ['an object without a prototype', () => Object.create(null)],
    ['a function', () => () => undefined],
    ['a symbol', () => Symbol('thrown')],
  ];

  test.each(values)('%s leaves the call in doubt', async (_what, make) => {
    const semel = quick();
    for (const more of [
      {},
      { via: 'fetch' },
      { provider: { name: 'p', window: 0, classify: () => undefined } },
    ]) {
      const tool = semel.tool({
        ...mail,
        ...(more as object),
        name: `mail-${Object.keys(more).join()}x`,
        verify: () => {
          throw make();
        },
        run: () => {
          throw make();
        },
      });
      const result = await tool.try({});
      if (!('via' in more)) expect(result).toMatchObject({ error: { code: 'IN_DOUBT' } });
      expect(isSemelError(result.ok ? undefined : result.error)).toBe(true);
      await tool.try({});
    }
    const { items } = await semel.records.list();
    expect(items.every(({ status }) => status !== 'running')).toBe(true);
    await semel.close();
  });

  test.each(values)('%s is told to `begin`, to a read, and to a repeatable write', async (_what, make) => {
    const semel = quick();
    const begun = await semel.begin(semel.tool({ ...mail, run: () => 1 }), {});
    if (begun.execute)
      expect(await begun.attempt.threw(make())).toMatchObject({ error: { code: 'IN_DOUBT' } });
    const throwing = () => {
      throw make();
    };
    for (const effect of ['read', 'write-idempotent'] as const) {
      const tool = semel.tool({ name: `t-${effect}`, effect, run: throwing });
      expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'FAILED' } });
    }
    semel.on('claimed', throwing);
    const observed = semel.tool({ ...mail, name: 'observed', mode: 'observe', run: throwing });
    await observed({}).catch(() => undefined);
    await semel.close();
  });
});

test('a success whose record somebody deleted meanwhile is UNRECORDED, with its value', async () => {
  const { semel, store } = rig();
  const tool = semel.tool({ ...mail, run: () => 'sent' });
  store.settle = async () => ({ settled: false, fenced: true, record: undefined, noted: undefined });
  expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'UNRECORDED', value: 'sent' } });
});
