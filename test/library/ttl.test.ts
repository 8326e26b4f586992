// `per: '24h'`: a plain TTL, from the first success.

import { type Duration, day, landed, oneRequest, type Per, unsure } from 'semel';
import { describe, expect, test } from 'vitest';
import { type Rig, rig } from './support.ts';

const hour = 3_600_000;
const minute = 60_000;

function setUp(more: object = {}, per: Per = '24h') {
  const place = rig();
  let sent = 0;
  let failure: unknown;
  const tool = place.semel.tool({
    name: 'mail',
    effect: 'write-non-idempotent',
    per,
    classify: oneRequest,
    ...more,
    run: (_: { to: string }) => {
      sent += 1;
      if (failure !== undefined) throw failure;
      return { sent };
    },
  });
  return {
    ...place,
    tool,
    call: async () => {
      const result = await place.clock.until(tool.try({ to: 'ann' }));
      return result.ok ? result.value : result.error.code;
    },
    count: () => sent,
    fail: (error: unknown) => {
      failure = error;
    },
  };
}

describe('a TTL', () => {
  test.each<[Per]>([['24h'], ['1d'], [24 * hour], ['1440m']])(
    '%s: one success, until it is over',
    async (per) => {
      const { call, clock, tool } = setUp({}, per);
      expect(tool.contract).toMatchObject({ per: 24 * hour, windowMs: 24 * hour });
      expect(await call()).toEqual({ sent: 1 });
      await clock.advance(24 * hour - minute);
      expect(await call()).toEqual({ sent: 1 });
      await clock.advance(2 * minute);
      expect(await call()).toEqual({ sent: 2 });
    },
  );

  test('may be longer than the usual window of its class', async () => {
    const { call, clock } = setUp({}, '7d');
    await call();
    await clock.advance(6 * 24 * hour);
    expect(await call()).toEqual({ sent: 1 });
  });

  test('counts from the first success: replays do not prolong it', async () => {
    const { call, clock } = setUp();
    await call();
    for (let hours = 0; hours < 23; hours += 1) {
      await clock.advance(hour);
      expect(await call()).toEqual({ sent: 1 });
    }
    await clock.advance(hour + minute);
    expect(await call()).toEqual({ sent: 2 });
  });

  test('counts from the success, not from the attempts before it', async () => {
    const { call, clock, fail } = setUp();
    fail(Object.assign(new Error('busy'), { status: 429 }));
    expect(await call()).toBe('NOT_LANDED');
    await clock.advance(20 * hour);
    fail(undefined);
    expect(await call()).toEqual({ sent: 2 });
    await clock.advance(20 * hour);
    expect(await call()).toEqual({ sent: 2 });
  });

  test('a refusal answers for `failureWindow`, as ever', async () => {
    const { call, clock, fail } = setUp();
    fail(Object.assign(new Error('no'), { status: 422 }));
    expect(await call()).toBe('FAILED');
    fail(undefined);
    expect(await call()).toBe('FAILED');
    await clock.advance(hour + minute);
    expect(await call()).toEqual({ sent: 2 });
  });

  test('what is in doubt does not expire', async () => {
    const { call, clock, fail, count } = setUp();
    fail(new Error('socket hang up'));
    expect(await call()).toBe('IN_DOUBT');
    fail(undefined);
    await clock.advance(90 * 24 * hour);
    expect(await call()).toBe('IN_DOUBT');
    expect(count()).toBe(1);
  });

  test('a doubt that is settled as landed counts from then', async () => {
    let isSeen = false;
    const { call, clock, fail } = setUp({ verify: () => (isSeen ? landed({ sent: 7 }) : unsure()) });
    fail(new Error('socket hang up'));
    expect(await call()).toBe('IN_DOUBT');
    fail(undefined);
    isSeen = true;
    await clock.advance(30 * 24 * hour);
    expect(await call()).toEqual({ sent: 7 });
    await clock.advance(23 * hour);
    expect(await call()).toEqual({ sent: 7 });
  });
});

describe('its key', () => {
  const keyOf = async ({ semel }: Rig, per: Per, name = `mail.${JSON.stringify(per).length}`) => {
    const tool = semel.tool({ name, effect: 'irreversible', per, run: (_: { to: string }) => 1 });
    return (await semel.keyOf(tool, { to: 'ann' })).key.split('/').slice(1).join('/');
  };

  test('is that of `ever`: neither the clock nor the length is in it', async () => {
    const [one, two, three] = [rig(), rig(), rig()];
    await two.clock.advance(1_000 * hour);
    const keys = [await keyOf(one, 'ever', 'm'), await keyOf(two, '24h', 'm'), await keyOf(three, '7d', 'm')];
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^-\//);
  });

  test('a longer TTL finds what a shorter one did, which keeps its own end', async () => {
    const { call, clock, another } = setUp();
    await call();
    const next = another().tool({
      name: 'mail',
      effect: 'write-non-idempotent',
      per: '30d',
      run: (_: { to: string }) => 'again',
    });
    await clock.advance(23 * hour);
    expect(await clock.until(next({ to: 'ann' }))).toEqual({ sent: 1 });
    await clock.advance(2 * hour);
    expect(await clock.until(next({ to: 'ann' }))).toBe('again');
  });

  test('`was` names a calendar period that it had', async () => {
    const { call, clock, another } = setUp({}, day('UTC'));
    await call();
    const next = another().tool({
      name: 'mail',
      effect: 'write-non-idempotent',
      per: '24h',
      was: [{ per: day('UTC') }],
      run: (_: { to: string }) => 'again',
    });
    await clock.advance(hour);
    expect(await clock.until(next({ to: 'ann' }))).toEqual({ sent: 1 });
  });

  test('`once` takes it too', async () => {
    const { semel, clock } = rig();
    let ran = 0;
    const once = () => clock.until(semel.once('digest', 1, { per: '1h' }, () => ++ran));
    expect([await once(), await once()]).toEqual([1, 1]);
    await clock.advance(hour + minute);
    expect(await once()).toBe(2);
  });
});

describe('is refused', () => {
  const define = (more: object) => () =>
    rig().semel.tool({
      name: 'mail',
      effect: 'write-non-idempotent',
      per: '24h',
      ...more,
      run: (_: { to: string }) => 1,
    });

  test('together with a window', () => {
    expect(define({ window: '7d' })).toThrow(/`window` has no meaning with a TTL.*Leave `window` out/);
  });

  test.each(['0s', 0, -1, '24', '24 h', '1y', Number.NaN])('as %s', (per) => {
    expect(define({ per: per as Duration })).toThrow(/`?per`? /);
  });

  test('where the provider forgets its keys earlier, unless `verify` can decide', () => {
    const provider = { name: 'pay', window: '1h' } as const;
    expect(define({ provider })).toThrow(/remembers a key for 1h, this contract for 1d.*shorten `per`/);
    expect(define({ provider, verify: () => landed(1) })).not.toThrow();
  });
});
