// Steps that landed stay landed, whatever is said of the call as a whole, by whom, and under which name.
import {
  type AttemptContext,
  createSemel,
  NotLanded,
  notLanded,
  Rejected,
  SemelError,
  type Store,
} from 'semel';
import { describe, expect, test } from 'vitest';
import { rig } from './support.ts';

const quiet = { store: 'memory:', namespace: 'test', onWarning: () => undefined };

describe('what is said of the whole does not undo a step that landed', () => {
  const hour = 3_600_000;
  type Ctx = AttemptContext;

  /** Charges in a step, then does what the test says; much later it is called again. */
  function later(terms: object, afterwards: (ctx: Ctx) => unknown) {
    const { semel, store, clock, another } = rig();
    const ran: string[] = [];
    const define = (instance: typeof semel, rest: (ctx: Ctx) => unknown) =>
      instance.tool({
        name: 'order.place',
        effect: 'write-non-idempotent',
        per: 'ever',
        ...terms,
        run: async (_: { order: number }, ctx) => {
          await ctx.step('charge', () => void ran.push('charge'));
          await rest(ctx);
        },
      });
    const first = define(semel, afterwards);
    const callMuchLater = async () => {
      await clock.advance(3 * hour);
      while ((await store.prune(100)) > 0);
      const good = define(another(), (ctx) => ctx.dispatch());
      return clock.until(good.try({ order: 1 }));
    };
    return { semel, store, clock, ran, first, callMuchLater };
  }

  test('an error before `ctx.dispatch`', async () => {
    const { clock, ran, first, callMuchLater } = later({ dispatch: 'explicit' }, () => {
      throw new Error('the lookup failed');
    });
    const result = await clock.until(first.try({ order: 1 }));
    expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
    await callMuchLater();
    expect(ran).toEqual(['charge']);
  });

  test('a crash before `ctx.dispatch`', async () => {
    const { store, clock, ran, first, callMuchLater } = later(
      { dispatch: 'explicit' },
      () => new Promise(() => undefined),
    );
    void first.try({ order: 1 });
    await clock.advance(1_000);
    expect(ran).toEqual(['charge']);
    store.break('renew', 'settle');
    await clock.advance(hour);
    store.repair();
    await callMuchLater();
    expect(ran).toEqual(['charge']);
  });

  test.each([
    ['NotLanded', new NotLanded('no')],
    ['Rejected', new Rejected('no')],
  ])('%s from a tool that has other effects too', async (_, thrown) => {
    const { clock, ran, first, callMuchLater } = later({}, () => {
      throw thrown;
    });
    const result = await clock.until(first.try({ order: 1 }));
    expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
    await callMuchLater();
    expect(ran).toEqual(['charge']);
  });

  test('`retry` after it: the last try takes no step', async () => {
    let tries = 0;
    const { semel, clock } = rig();
    const place = semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      retry: { tries: 2, backoff: '1ms' },
      run: async (_: object, ctx) => {
        tries += 1;
        if (tries === 1) await ctx.step('charge', () => undefined);
        throw new NotLanded('no');
      },
    });
    const result = await clock.until(place.try({}));
    expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
    expect(tries).toBe(2);
  });

  test('begin: `release` of a tool that has other effects too', async () => {
    const { semel, clock } = rig();
    const place = semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      run: (_: object) => undefined,
    });
    const begun = await clock.until(semel.begin(place, {}));
    if (!begun.execute) throw new Error('it was not begun');
    await clock.until(begun.attempt.step('charge', () => undefined));
    const result = await clock.until(begun.attempt.release(new Error('no')));
    expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
  });

  test.each(['`verify` of the whole', 'a person'])('"not landed", says %s', async (who) => {
    const { semel, store, clock } = rig();
    const ran: string[] = [];
    let isUp = false;
    const place = semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      ...(who === 'a person' ? {} : { verify: () => notLanded() }),
      run: async (_: { order: number }, ctx) => {
        await ctx.step('charge', () => void ran.push('charge'));
        await ctx.step('mail', () => {
          if (!isUp) throw new NotLanded('away');
          ran.push('mail');
        });
      },
    });
    await clock.until(place.try({ order: 1 }));
    await clock.advance(hour);
    if (who === 'a person') {
      const [doubt] = (await clock.until(semel.doubts.list({ contract: 'order.place' }))).items;
      await clock.until(semel.doubts.resolve(doubt?.ref as string, 'notLanded'));
    } else {
      // Too late to start anything: only `verify` is asked.
      await clock.until(place.try({ order: 1 }, { notAfter: clock.now() - 1_000 }));
    }
    await clock.advance(3 * hour);
    while ((await store.prune(100)) > 0);
    isUp = true;
    expect((await clock.until(place.try({ order: 1 }))).ok).toBe(true);
    expect(ran).toEqual(['charge', 'mail']);
  });
});

test('begin: `succeed` waits for the steps, and is not believed if one of them fails', async () => {
  await using semel = createSemel(quiet);
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: (_: { order: number }) => undefined,
  });
  const begun = await semel.begin(place, { order: 1 });
  if (!begun.execute) throw new Error('it was not begun');
  void begun.attempt.step('charge', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error('socket hang up');
  });
  const result = await begun.attempt.succeed(undefined);
  expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
});

test('an abandoned step may have landed: it is never reported as not landed', async () => {
  await using semel = createSemel(quiet);
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: async (_: { order: number }, ctx) => {
      await ctx.step('charge', () => undefined);
      await ctx.step('mail', () => {
        throw new Error('socket hang up');
      });
    },
  });
  await place.try({ order: 1 });
  const [doubt] = (await semel.doubts.list({ contract: 'order.place.mail' })).items;
  await semel.doubts.resolve(doubt?.ref as string, { abandon: 'nobody can tell' });
  const result = await place.try({ order: 1 });
  expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
  expect(result.ok ? '' : result.error.message).not.toContain('mail did not land');
});

test('a later attempt says nothing about steps that it did not reach', async () => {
  await using semel = createSemel(quiet);
  let isLookupUp = true;
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: async (_: object, ctx) => {
      await ctx.step('charge', () => undefined);
      if (!isLookupUp) throw new Error('the lookup failed');
      await ctx.step('mail', () => undefined);
      throw new Error('no parcel service');
    },
  });
  await place.try({});
  isLookupUp = false;
  const result = await place.try({});
  expect(result.ok ? '' : result.error.message).toContain(
    'charge landed, this attempt did not start the rest',
  );
});

describe('what a half-done call says after `retry`', () => {
  /** The mail is turned away at first; the second try does what the test says. */
  async function place(second: (ctx: AttemptContext) => Promise<unknown>) {
    await using semel = createSemel(quiet);
    let tries = 0;
    const tool = semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      retry: { tries: 2, backoff: '1ms' },
      run: async (_: object, ctx) => {
        tries += 1;
        if (tries === 2) return second(ctx as AttemptContext);
        await ctx.step('charge', () => undefined);
        return ctx.step('mail', () => Promise.reject(new NotLanded('busy')));
      },
    });
    const result = await tool.try({});
    return result.ok ? undefined : result.error;
  }

  test('a step that landed in the last try is not reported as not landed', async () => {
    const error = await place(async (ctx) => {
      await ctx.step('charge', () => undefined);
      await ctx.step('mail', () => undefined);
      throw new Error('no parcel service');
    });
    expect(error).toMatchObject({
      code: 'PARTIAL_SUCCESS',
      value: { landed: ['charge', 'mail'], notLanded: [] },
    });
  });

  test('a step that may have landed in the last try leaves the call in doubt', async () => {
    const error = await place(async (ctx) => {
      await ctx.step('charge', () => undefined);
      await ctx.step('mail', () => Promise.reject(new Error('socket hang up')));
    });
    expect(error).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('what the last try did not reach stays as the first try left it', async () => {
    const error = await place(() => Promise.reject(new Error('the lookup failed')));
    expect(error).toMatchObject({
      code: 'PARTIAL_SUCCESS',
      value: { landed: ['charge'], notLanded: ['mail'] },
    });
  });
});

test('a step of an earlier attempt is not reported as not landed because the store does not answer', async () => {
  const { store, clock, another } = rig();
  const isDown = { charge: false };
  const halfDown: Store = {
    ...store,
    claim: (request) =>
      isDown.charge && request.key.startsWith('order.place.charge')
        ? Promise.reject(new SemelError('STORE_UNAVAILABLE', 'The store did not answer.'))
        : store.claim(request),
  };
  const place = () =>
    another({ store: halfDown, cache: false }).tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      run: async (_: object, ctx) => {
        await Promise.allSettled(isDown.charge ? [ctx.step('mail', () => undefined)] : []);
        await ctx.step('charge', () => undefined);
        throw new Error('no parcel service');
      },
    });
  await clock.until(place().try({}));
  isDown.charge = true;
  const result = await clock.until(place().try({}));
  expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
});

describe('a step that was renamed', () => {
  const deploy = (
    names: readonly [string, object],
    isUp: boolean,
    ran: string[],
    semel = createSemel(quiet),
  ) => ({
    semel,
    place: semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      run: async (_: { order: number }, ctx) => {
        await ctx.step(names[0], names[1], () => void ran.push('charge'));
        await ctx.step('mail', () => {
          if (!isUp) throw new NotLanded('away');
          ran.push('mail');
        });
      },
    }),
  });

  test('with `was`, it is not repeated in a call that is half done', async () => {
    const ran: string[] = [];
    const { semel, place } = deploy(['charge', {}], false, ran);
    await using _ = semel;
    await place.try({ order: 1 });
    const after = deploy(['charge-card', { was: 'charge' }], true, ran, semel);
    expect((await after.place.try({ order: 1 })).ok).toBe(true);
    expect(ran).toEqual(['charge', 'mail']);
  });

  test('its earlier name is not free for another step of the run', async () => {
    await using semel = createSemel(quiet);
    const ran: string[] = [];
    const place = semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      run: async (_: object, ctx) => {
        await ctx.step('charge', () => void ran.push('charge'));
        await ctx.step('charge-card', { was: ['charge'] }, () => void ran.push('charge-card'));
      },
    });
    const result = await place.try({});
    expect(result.ok ? '' : result.error.message).toContain('two steps of one run are called charge-card');
    expect(ran).toEqual(['charge']);
  });
});
