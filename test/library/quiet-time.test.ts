// `verifyAfter`: how long "not landed" has to wait once an attempt is over, or can send nothing more.

import { landed, MaybeLanded, notLanded } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

const second = 1_000;
const minute = 60 * second;
const mail = { name: 'mail.send', effect: 'write-non-idempotent', per: 'ever' } as const;

/** A target whose list shows what landed only after a while. */
function laggingTarget(clock: { now(): number }, lagMs: number) {
  const landings: number[] = [];
  return {
    landings,
    land: () => void landings.push(clock.now()),
    verify: () => (landings.some((at) => at + lagMs <= clock.now()) ? landed({ id: 'listed' }) : notLanded()),
  };
}

function loseReply(): never {
  throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

describe.each([
  ['30s', undefined],
  ['5m', undefined],
  ['5s', '5s'],
  ['5s', '1h'],
  ['5s', 'none'],
] as const)('with verifyAfter %s and timeout %s', (verifyAfter, timeout) => {
  const terms = { ...mail, verifyAfter, ...(timeout === undefined ? {} : { timeout }) };

  test('a target whose list lags by 3 s gets one effect after an attempt that threw', async () => {
    const { semel, clock } = rig();
    const { land, landings, verify } = laggingTarget(clock, 3 * second);
    const tool = semel.tool({
      ...terms,
      run: () => {
        land();
        if (landings.length === 1) loseReply();
        return { id: 'sent' };
      },
      verify,
    });
    expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    await clock.advance(4 * second);
    expect(await tool({})).toEqual({ id: 'listed' });
    expect(landings).toHaveLength(1);
  });

  test('"not landed" counts that long after the attempt reported its end, and not before', async () => {
    const { semel, clock } = rig();
    let runs = 0;
    const tool = semel.tool({
      ...terms,
      run: () => (++runs === 1 ? loseReply() : 'sent'),
      verify: () => notLanded(),
    });
    const waitMs = Number.parseInt(verifyAfter, 10) * (verifyAfter.endsWith('m') ? minute : second);
    expect(await tool.try({})).toMatchObject({ error: { retryAfterMs: waitMs } });
    await clock.advance(waitMs - 1);
    expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    await clock.advance(1);
    expect(await tool.try({})).toMatchObject({ ok: true, value: 'sent' });
    expect(runs).toBe(2);
  });
});

test('an attempt that died may have sent until its timeout, or until its lease was over', async () => {
  const dies = async (terms: { timeout: '2m' | '2s'; lease: '60s' }) => {
    const made = rig();
    const definition = { ...mail, ...terms, verifyAfter: '10s', verify: () => notLanded() } as const;
    const died = made.semel.tool({ ...definition, run: () => new Promise<string>(() => undefined) });
    void died.try({});
    await rest();
    made.clock.jump(61 * second);
    const next = made.another().tool({ ...definition, run: () => 'sent' });
    const answer = await next.try({});
    return answer.ok ? answer : [answer.error.code, answer.error.retryAfterMs];
  };
  expect(await dies({ timeout: '2m', lease: '60s' })).toEqual(['IN_DOUBT', 69 * second]);
  expect(await dies({ timeout: '2s', lease: '60s' })).toEqual(['IN_DOUBT', 9 * second]);
});

test('without a timeout, an attempt may have sent until the last lease that it renewed was over', async () => {
  const made = rig();
  const definition = { ...mail, timeout: 'none', lease: '60s', verifyAfter: '30s' } as const;
  const died = made.semel.tool({
    ...definition,
    run: () => new Promise<string>(() => undefined),
    verify: () => notLanded(),
  });
  void died.try({});
  await made.clock.advance(2 * 60 * minute);
  made.clock.jump(61 * second);
  const next = made.another().tool({ ...definition, run: () => 'sent', verify: () => notLanded() });
  expect(await next.try({})).toMatchObject({
    ok: false,
    error: { code: 'IN_DOUBT', retryAfterMs: expect.any(Number) },
  });
  await made.clock.advance(31 * second);
  expect(await next({})).toBe('sent');
});

test('a run that went on after its timeout restarts the wait when it ends', async () => {
  const { semel, clock } = rig();
  const { promise, reject } = gate<string>();
  let runs = 0;
  const tool = semel.tool({
    ...mail,
    timeout: '10s',
    verifyAfter: '30s',
    run: () => (++runs === 1 ? promise : 'sent'),
    verify: () => notLanded(),
  });
  const first = tool.try({});
  await clock.advance(10 * second);
  expect(await first).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  await clock.advance(20 * second);
  // Its client ignored the signal, and gave up only now.
  reject(new Error('socket hang up'));
  await clock.advance(11 * second);
  expect(await tool.try({})).toMatchObject({ error: { code: 'IN_DOUBT', retryAfterMs: 19 * second } });
  await clock.advance(19 * second);
  expect(await tool({})).toBe('sent');
});

test('a run that continues after its timeout delays "not landed" until it has ended', async () => {
  const { semel, another, clock } = rig();
  const { land, landings, verify } = laggingTarget(clock, 0);
  const { promise, resolve } = gate<string>();
  const definition = { ...mail, timeout: '10s', verifyAfter: '30s', verify } as const;
  const tool = semel.tool({ ...definition, run: () => promise.then(land).then(() => ({ id: 'late' })) });
  const elsewhere = another().tool({ ...definition, run: () => ({ id: `again ${land()}` }) });
  const first = tool.try({});
  await clock.advance(10 * second);
  expect(await first).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  for (let minutes = 1; minutes <= 4; minutes += 1) {
    await clock.advance(minute);
    expect(await elsewhere.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  }
  // Its client ignored the signal, and got through only now.
  resolve('');
  await rest();
  expect(await elsewhere({})).toEqual({ id: 'late' });
  expect(landings).toHaveLength(1);
});

test('the wait restarts when such a run ends, even if `verify` was asked meanwhile', async () => {
  const { semel, another, clock } = rig();
  const { promise, reject } = gate<string>();
  let runs = 0;
  const definition = { ...mail, timeout: '10s', verifyAfter: '30s', verify: () => notLanded() } as const;
  const tool = semel.tool({ ...definition, run: () => promise });
  const elsewhere = another().tool({ ...definition, run: () => ++runs });
  void tool.try({});
  await clock.advance(12 * second);
  expect(await elsewhere.try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
  await clock.advance(17 * second);
  reject(new Error('socket hang up'));
  await rest();
  expect(await elsewhere.try({})).toMatchObject({ error: { code: 'IN_DOUBT', retryAfterMs: 30 * second } });
  await clock.advance(30 * second);
  expect(await elsewhere({})).toBe(1);
});

test.each([
  ['returned', () => ({ id: 'sent' })],
  [
    'said that it may have landed',
    () => {
      throw new MaybeLanded('the socket hung up');
    },
  ],
])('"not landed" waits for a run that %s without crossing the line', async (_, end) => {
  const { semel, clock } = rig();
  const { land, landings, verify } = laggingTarget(clock, 3 * second);
  const tool = semel.tool({
    ...mail,
    dispatch: 'explicit',
    run: () => {
      land();
      return end();
    },
    verify,
  });
  expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  await clock.advance(4 * second);
  expect(await tool({})).toEqual({ id: 'listed' });
  expect(landings).toHaveLength(1);
});

test('an attempt that was begun may run on after its timeout too, and is not waited for for ever', async () => {
  const { semel, another, clock } = rig();
  const definition = { ...mail, timeout: '10s', verifyAfter: '1s', verify: () => notLanded() } as const;
  const next = another().tool({ ...definition, run: () => 'sent' });
  const tool = semel.tool({ ...definition, run: () => 'sent' });
  expect(await semel.begin(tool, {})).toMatchObject({ execute: true });
  await clock.advance(5 * minute);
  expect(await next.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  await clock.advance(minute);
  expect(await next({})).toBe('sent');
});

test('a run that hangs for good is not waited for for ever', async () => {
  const { semel, another, clock } = rig();
  const definition = { ...mail, timeout: '10s', verifyAfter: '1s', verify: () => notLanded() } as const;
  const hanging = semel.tool({ ...definition, run: () => new Promise<string>(() => undefined) });
  const next = another().tool({ ...definition, run: () => 'sent' });
  void hanging.try({});
  await clock.advance(5 * minute);
  expect(await next.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  await clock.advance(minute);
  expect(await next({})).toBe('sent');
});
