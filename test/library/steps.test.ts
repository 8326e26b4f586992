// Several writes in one tool: which steps a retry repeats, and what a half-done call says.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type AttemptContext,
  createSemel,
  landed,
  MaybeLanded,
  NotLanded,
  notLanded,
  Rejected,
  type SemelOptions,
} from 'semel';
import { describe, expect, test } from 'vitest';
import { rest, rig } from './support.ts';

const quiet = { store: 'memory:', namespace: 'test', onWarning: () => undefined };

interface World {
  readonly ran: string[];
  /** Throws in the step, before or after its effect. */
  fail: Record<string, unknown>;
}

function order(options: SemelOptions = quiet, terms: object = {}) {
  const semel = createSemel(options);
  const world: World = { ran: [], fail: {} };
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    ...terms,
    run: async ({ order }: { order: number }, ctx) => {
      const step = (name: string) =>
        ctx.step(name, { correctiveAction: `Undo ${name}.` }, () => {
          if (world.fail[name] !== undefined) throw world.fail[name];
          world.ran.push(name);
          return `${name} of ${order}`;
        });
      return { charge: await step('charge'), mail: await step('mail'), ship: await step('ship') };
    },
  });
  return { semel, place, world };
}

test('every step runs once, and the call replays as a whole', async () => {
  const { semel, place, world } = order();
  await using _ = semel;
  const value = { charge: 'charge of 1', mail: 'mail of 1', ship: 'ship of 1' };
  expect(await place({ order: 1 })).toEqual(value);
  expect(await place({ order: 1 })).toEqual(value);
  expect(world.ran).toEqual(['charge', 'mail', 'ship']);
});

test('a retry continues after the last step that landed', async () => {
  const { semel, place, world } = order();
  await using _ = semel;
  world.fail = { mail: new NotLanded('the mail server is away') };
  const first = await place.try({ order: 1 });
  expect(first.ok ? undefined : first.error).toMatchObject({ code: 'PARTIAL_SUCCESS', retriable: true });
  world.fail = {};
  expect(await place({ order: 1 })).toMatchObject({ charge: 'charge of 1', ship: 'ship of 1' });
  expect(world.ran).toEqual(['charge', 'mail', 'ship']);
});

test.each([
  ['redacted', { identity: ['order'], redact: ['text'] }, 'x'],
  ['longer than what is stored', { identity: ['order'] }, 'x'.repeat(70_000)],
] as const)('a retry goes on also where the args were %s, with the same ones', async (_, terms, text) => {
  const { semel, place, world } = order(quiet, terms);
  await using _semel = semel;
  const call = (more: string) => place.try({ order: 1, text: more } as { order: number });
  world.fail = { mail: new NotLanded('the mail server is away') };
  expect(await call(text)).toMatchObject({
    error: {
      code: 'PARTIAL_SUCCESS',
      retriable: true,
      correctiveAction: expect.stringContaining('Call again'),
    },
  });
  world.fail = {};
  expect(await call(text)).toMatchObject({ ok: true, value: { ship: 'ship of 1' } });
  expect(world.ran).toEqual(['charge', 'mail', 'ship']);
});

test('with args other than the first ones, which were not stored, no half of each is combined', async () => {
  const { semel, place, world } = order(quiet, { identity: ['order'] });
  await using _ = semel;
  const call = (text: string) => place.try({ order: 1, text } as { order: number });
  world.fail = { mail: new NotLanded('the mail server is away') };
  await call('x'.repeat(70_000));
  world.fail = {};
  const refused = await call('y'.repeat(70_000));
  expect(refused.ok ? '' : refused.error.message).toMatch(
    /Its args were not stored: called again with the same/,
  );
  expect(world.ran).toEqual(['charge']);
});

test('what landed, what did not and what to do are the same for the caller, the next one and the record', async () => {
  const { semel, place, world } = order();
  await using _ = semel;
  world.fail = { mail: new Rejected('no such address') };
  const first = await place.try({ order: 1 });
  const second = await place.try({ order: 1 });
  const [record] = (await semel.doubts.list()).items;
  for (const text of [
    first.ok ? '' : first.error.message,
    second.ok ? '' : second.error.message,
    record?.error?.message ?? '',
  ]) {
    expect(text).toContain('charge landed, mail did not land');
    expect(text).toContain('no such address');
    expect(text).toContain('Undo charge.');
  }
  expect(record?.error?.code).toBe('PARTIAL_SUCCESS');
  expect(first.ok ? undefined : first.error.value).toEqual({ landed: ['charge'], notLanded: ['mail'] });
  expect(world.ran).toEqual(['charge']);
});

test('a step that may have landed leaves the whole in doubt, and is not repeated', async () => {
  const { semel, place, world } = order();
  await using _ = semel;
  world.fail = { mail: new Error('socket hang up') };
  for (let calls = 0; calls < 3; calls += 1) {
    const result = await place.try({ order: 1 });
    expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
  }
  world.fail = {};
  const again = await place.try({ order: 1 });
  expect(again.ok).toBe(false);
  expect(world.ran).toEqual(['charge']);
  // Once somebody decides about the step, the call goes on after it.
  const doubts = (await semel.doubts.list({ contract: 'order.place.mail' })).items;
  expect(doubts).toHaveLength(1);
  await semel.doubts.resolve(doubts[0]?.ref as string, { landed: 'mail of 1' });
  expect(await place({ order: 1 })).toMatchObject({ mail: 'mail of 1', ship: 'ship of 1' });
  expect(world.ran).toEqual(['charge', 'ship']);
});

test('the first step decides alone: refused is refused, not landed may be tried again', async () => {
  const { semel, place, world } = order();
  await using _ = semel;
  world.fail = { charge: new NotLanded('declined for now') };
  const released = await place.try({ order: 1 });
  expect(released.ok ? undefined : released.error).toMatchObject({ code: 'NOT_LANDED', retriable: true });
  world.fail = { charge: new Rejected('the card is stolen') };
  const failed = await place.try({ order: 2 });
  expect(failed.ok ? undefined : failed.error.code).toBe('FAILED');
  expect(world.ran).toEqual([]);
});

test('a tool that was renamed does not repeat the steps that landed under its earlier name', async () => {
  const semel = createSemel(quiet);
  await using _ = semel;
  const ran: string[] = [];
  let isUp = false;
  const define = (name: string, was: { name: string }[]) =>
    semel.tool({
      name,
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      was,
      run: async (_: { order: number }, ctx) => {
        await ctx.step('charge', () => void ran.push('charge'));
        await ctx.step('mail', () => {
          if (!isUp) throw new NotLanded('away');
          ran.push('mail');
        });
      },
    });
  expect((await define('order.place', []).try({ order: 1 })).ok).toBe(false);
  isUp = true;
  expect((await define('order.submit', [{ name: 'order.place' }]).try({ order: 1 })).ok).toBe(true);
  expect(ran).toEqual(['charge', 'mail']);
});

test('code that runs on after a refused call takes no further step', async () => {
  const semel = createSemel(quiet);
  await using _ = semel;
  const ran: string[] = [];
  const refused = Promise.withResolvers<void>();
  const late = Promise.withResolvers<unknown>();
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: async (_: { order: number }, ctx) => {
      const mailing = refused.promise.then(() => ctx.step('mail', () => void ran.push('mail')));
      mailing.then(late.resolve, late.resolve);
      const charging = ctx.step('charge', () => {
        throw new Rejected('the card is stolen');
      });
      await Promise.all([charging, mailing]);
    },
  });
  const result = await place.try({ order: 1 });
  expect(result.ok ? undefined : result.error.code).toBe('FAILED');
  refused.resolve();
  expect(await late.promise).toBeInstanceOf(Error);
  expect(ran).toEqual([]);
});

test.each(['release', 'fail'] as const)('begin: %s does not hide a step that landed', async (end) => {
  const { semel, place } = order();
  await using _ = semel;
  const begun = await semel.begin(place, { order: 1 });
  if (!begun.execute) throw new Error('it was not begun');
  await begun.attempt.step('charge', () => 'charge of 1');
  const result = await begun.attempt[end](new Error('no such address'));
  expect(result.ok ? undefined : result.error).toMatchObject({ code: 'PARTIAL_SUCCESS', retriable: true });
  expect(result.ok ? '' : result.error.message).toContain('charge landed');
});

test('a half-done call is never forgotten: much later, its steps are still not repeated', async () => {
  const { semel, store, clock } = rig();
  const ran: string[] = [];
  let isUp = false;
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    window: '1h',
    failureWindow: '1m',
    via: 'steps',
    run: async (_: { order: number }, ctx) => {
      await ctx.step('charge', () => void ran.push('charge'));
      await ctx.step('mail', () => {
        if (!isUp) throw new NotLanded('away');
        ran.push('mail');
      });
    },
  });
  expect((await clock.until(place.try({ order: 1 }))).ok).toBe(false);
  await clock.advance(90 * 86_400_000);
  while ((await store.prune(100)) > 0);
  isUp = true;
  expect((await clock.until(place.try({ order: 1 }))).ok).toBe(true);
  expect(ran).toEqual(['charge', 'mail']);
});

test('after its window, the same intent does every step again', async () => {
  const { semel, clock } = rig();
  const ran: string[] = [];
  const place = semel.tool({
    name: 'digest',
    effect: 'write-non-idempotent',
    per: 'conversation',
    window: '1h',
    via: 'steps',
    run: (_: object, ctx) => ctx.step('mail', () => void ran.push('mail')),
  });
  await clock.until(place({}, { conversation: 'c' }));
  await clock.until(place({}, { conversation: 'c' }));
  expect(ran).toHaveLength(1);
  await clock.advance(2 * 3_600_000);
  await clock.until(place({}, { conversation: 'c' }));
  expect(ran).toHaveLength(2);
});

test('`retry` of the tool continues after the steps that landed', async () => {
  const { semel, place, world } = order(quiet, { retry: { tries: 3, backoff: '1ms' } });
  await using _ = semel;
  let tries = 0;
  const failing = new NotLanded('busy');
  world.fail = {
    get mail() {
      tries += 1;
      return tries > 2 ? undefined : failing;
    },
  };
  expect(await place({ order: 1 })).toMatchObject({ mail: 'mail of 1' });
  expect(world.ran).toEqual(['charge', 'mail', 'ship']);
});

test('a word about the whole does not hide a step that landed', async () => {
  await using semel = createSemel(quiet);
  const ran: string[] = [];
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: async (_: object, ctx) => {
      await ctx.step('charge', () => void ran.push('charge'));
      throw new NotLanded('changed my mind');
    },
  });
  const result = await place.try({});
  expect(result.ok ? undefined : result.error.code).toBe('PARTIAL_SUCCESS');
  await place.try({});
  expect(ran).toEqual(['charge']);
});

test('parallel steps: one that still runs when another throws is in doubt until it ends', async () => {
  await using semel = createSemel(quiet);
  let finish: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const place = semel.tool({
    name: 'fan-out',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: (_: object, ctx) =>
      Promise.all([
        ctx.step('slow', () => slow),
        ctx.step('fast', () => {
          throw new NotLanded('no');
        }),
      ]),
  });
  const result = await place.try({});
  expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
  finish();
});

test('a step that `run` does not wait for is waited for, and its error is that of the call', async () => {
  await using semel = createSemel(quiet);
  const ran: string[] = [];
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  const forget = (name: string, end: () => void) =>
    semel.tool({
      name,
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      run: async (_: object, ctx) => {
        await ctx.step('charge', () => void ran.push(name));
        void ctx.step('mail', async () => {
          await pause();
          end();
        });
      },
    });
  expect((await forget('good', () => void ran.push('mail')).try({})).ok).toBe(true);
  expect(ran).toEqual(['good', 'mail']);
  const broken = () => {
    throw new Error('socket hang up');
  };
  const doubtful = await forget('bad', broken).try({});
  expect(doubtful.ok ? undefined : doubtful.error.code).toBe('IN_DOUBT');
});

test('a step that failed long before `run` ended, and that nobody waits for, fails the call', async () => {
  await using semel = createSemel(quiet);
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  const define = (
    name: string,
    effect: 'irreversible' | 'write-idempotent',
    take: (ctx: AttemptContext) => unknown,
  ) =>
    semel.tool({
      name,
      effect,
      ...(effect === 'irreversible' ? { per: 'ever', via: 'steps' } : {}),
      run: async (_: object, ctx: AttemptContext) => {
        void take(ctx);
        await pause();
        await pause();
        return 'done';
      },
    } as never);
  const away = () => {
    throw new NotLanded('the mail server is away');
  };
  const forgotten = define('forgotten', 'irreversible', (ctx) => ctx.step('mail', away));
  expect(await forgotten.try({})).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
  const refused = define('refused', 'write-idempotent', (ctx) => ctx.step('mail', () => 1));
  expect(await refused.try({})).toMatchObject({ ok: false });
  // An error that `run` has heard of is its own affair.
  const handled = define('handled', 'irreversible', (ctx) => ctx.step('mail', away).catch(() => undefined));
  expect(await handled.try({})).toMatchObject({ ok: true, value: 'done' });
});

test('a misspelt option of a step is refused before its effect', async () => {
  await using semel = createSemel(quiet);
  const sent: string[] = [];
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: (_: object, ctx) => ctx.step('mail', { verfy: () => notLanded() } as never, () => sent.push('mail')),
  });
  const result = await place.try({});
  expect(result.ok ? '' : result.error.message).toContain('there is no field `verfy`');
  expect(sent).toEqual([]);
});

test('`verify` of a step settles it, and the call continues', async () => {
  await using semel = createSemel(quiet);
  const sent: string[] = [];
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    run: async (_: object, ctx) => {
      const verify = () => (sent.includes('mail') ? landed('m-1') : notLanded());
      const id = await ctx.step('mail', { verify }, (): string => {
        sent.push('mail');
        throw new Error('socket hang up');
      });
      return `${id}, ${await ctx.step('ship', () => sent.push('ship'))}`;
    },
  });
  expect(await place({})).toBe('m-1, 2');
  expect(sent).toEqual(['mail', 'ship']);
});

describe('refused', () => {
  const wrong = (run: (ctx: never) => unknown, terms: object = {}) => {
    const semel = createSemel(quiet);
    const tool = semel.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      ...terms,
      run: (_: object, ctx: never) => run(ctx),
    } as never) as unknown as { try(args: object): Promise<{ ok: boolean; error: Error }> };
    return tool.try({}).finally(() => semel.close());
  };

  test('two steps with one name: the second would silently be skipped', async () => {
    const ran: string[] = [];
    const { error } = await wrong(async (ctx: { step: (...args: unknown[]) => Promise<unknown> }) => {
      await ctx.step('mail', () => void ran.push('ann'));
      await ctx.step('mail', () => void ran.push('bob'));
    });
    expect(error.message).toContain('two steps of one run are called mail');
    expect(ran).toEqual(['ann']);
  });

  test.each(['', 'a b', 'a.b', 'x'.repeat(64), 7])('a step called %j', async (name) => {
    const { error } = await wrong((ctx: { step: (...args: unknown[]) => unknown }) =>
      ctx.step(name, () => 1),
    );
    expect(error.message).toMatch(/no usable name|more than 64/);
  });

  test('a step without work', async () => {
    const { error } = await wrong((ctx: { step: (...args: unknown[]) => unknown }) => ctx.step('mail'));
    expect(error.message).toContain('needs a function');
  });

  test('a request outside of a step: nothing is sent', async () => {
    let requests = 0;
    const server = createServer((_, response) => {
      requests += 1;
      response.end();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { error } = await wrong((ctx: { fetch: typeof fetch }) => ctx.fetch(url, { method: 'POST' }));
    expect(error.message).toContain('outside of a step');
    expect(requests).toBe(0);
    server.close();
  });

  test.each([
    [{ effect: 'write-idempotent' }, 'class that is remembered'],
    [{ provider: { name: 'stripe', window: '24h' } }, 'each step has its own provider'],
    [{ dispatch: 'explicit' }, 'nothing is sent outside of a step'],
  ])('%j with via: steps', (terms, message) => {
    const define = () =>
      createSemel(quiet).tool({
        name: 'x',
        effect: 'irreversible',
        per: 'ever',
        via: 'steps',
        run: () => 1,
        ...terms,
      } as never);
    expect(define).toThrow(message);
  });

  test('a step in a tool that is not remembered', async () => {
    const { error } = await wrong(
      (ctx: { step: (...args: unknown[]) => unknown }) => ctx.step('mail', () => 1),
      {
        effect: 'write-idempotent',
        via: undefined,
      },
    );
    expect(error.message).toContain('`ctx.step` is not available here');
  });
});

test.each(['observe', 'off'] as const)(
  'in the mode `%s` steps run as the work that they name',
  async (mode) => {
    const { semel, place, world } = order({ ...quiet, mode });
    await using _ = semel;
    await place({ order: 1 });
    await place({ order: 1 });
    expect(world.ran).toHaveLength(6);
  },
);

test('an older contract without steps left it in doubt: the new one does not run it again', async () => {
  const store = (await import('semel/memory')).memoryStore();
  const terms = { name: 'order.place', effect: 'write-non-idempotent', per: 'ever' } as const;
  const first = createSemel({ ...quiet, store, mode: 'enforce' });
  const before = first.tool({
    ...terms,
    run: (_: { order: number }): void => {
      throw new Error('socket hang up');
    },
  });
  await before.try({ order: 1 });
  const { semel, place, world } = order({ ...quiet, store });
  const result = await place.try({ order: 1 });
  expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
  expect(world.ran).toEqual([]);
  await semel.close();
});

test.each(['to steps', 'to a provider'])(
  'a doubt is not run again by other means: from the one %s',
  async (direction) => {
    const store = (await import('semel/memory')).memoryStore();
    let charges = 0;
    const keyed = { provider: { name: 'bank', window: '30d' } } as const;
    const made = { via: 'steps' } as const;
    const [before, after] = direction === 'to steps' ? [keyed, made] : [made, keyed];
    const deploy = (terms: typeof keyed | typeof made, end: () => void) =>
      createSemel({ ...quiet, store }).tool({
        name: 'order',
        effect: 'write-non-idempotent',
        per: 'ever',
        ...terms,
        run: async (_: { order: number }, ctx: AttemptContext) => {
          const charge = () => {
            charges += 1;
          };
          await ('via' in terms ? ctx.step('charge', charge) : charge());
          end();
        },
      } as never) as unknown as { try(args: object): Promise<{ ok: boolean; error: { code: string } }> };
    await deploy(before, () => {
      throw new MaybeLanded('hang up');
    }).try({ order: 1 });
    const result = await deploy(after, () => undefined).try({ order: 1 });
    expect(result.ok ? undefined : result.error.code).toBe('IN_DOUBT');
    expect(charges).toBe(1);
  },
);

test('a sweep that settles a step by its call does not report it as still in doubt', async () => {
  const { semel, another, clock, store } = rig();
  const ran: string[] = [];
  const define = (on: typeof semel) =>
    on.tool({
      name: 'order.place',
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      run: async (_: { order: number }, ctx) => {
        await ctx.step('charge', { verify: () => landed(undefined) }, async (): Promise<void> => {
          ran.push('charge');
          await new Promise(() => undefined);
        });
        await ctx.step('mail', () => void ran.push('mail'));
      },
    });
  void define(semel).try({ order: 1 });
  // Its process dies in the first step.
  await clock.advance(10);
  store.break('renew');
  await clock.advance(20 * 60_000);
  store.repair();
  const sweeper = another();
  define(sweeper);
  const open: string[] = [];
  const swept = await clock.until(
    sweeper.doubts.sweep({ onOpen: ({ contract }) => void open.push(contract) }),
  );
  expect([swept.open, open]).toEqual([0, []]);
  expect(ran).toEqual(['charge', 'mail']);
  expect((await sweeper.doubts.list()).items).toEqual([]);
});

test('a retry that dies in a step leaves no word about that step from the attempt before it', async () => {
  const made = rig();
  const ran: string[] = [];
  const define = (semel: typeof made.semel, mail: () => unknown, version = '1') =>
    semel.tool({
      name: 'order.place',
      version,
      effect: 'write-non-idempotent',
      per: 'ever',
      via: 'steps',
      lease: '10s',
      run: async (_: { order: number }, ctx) => {
        await ctx.step('charge', () => void ran.push('charge'));
        await ctx.step('mail', mail as () => Promise<unknown>);
      },
    });
  const fails = () => {
    throw new NotLanded('the mail server is away');
  };
  const first = await made.clock.until(define(made.semel, fails).try({ order: 1 }));
  expect(first).toMatchObject({ error: { code: 'PARTIAL_SUCCESS' } });
  const dies = () => {
    ran.push('mail');
    return new Promise(() => undefined);
  };
  void define(made.another(), dies).try({ order: 1 });
  await rest();
  expect(ran).toEqual(['charge', 'mail']);
  made.store.break('renew');
  await made.clock.advance(11_000);
  const last = await made.clock.until(define(made.another(), fails, '2').try({ order: 1 }));
  expect(last).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(last.ok ? '' : last.error.message).not.toContain('mail did not land');
});
