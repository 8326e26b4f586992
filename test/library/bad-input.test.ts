// Bad input: each gets a code, the place, and what to do; nothing is claimed, run or lost.

import { readFileSync } from 'node:fs';
import {
  createSemel,
  day,
  type ErrorCode,
  errorCodes,
  isSemelError,
  landed,
  NotLanded,
  PartialSuccess,
  Rejected,
  retryOf,
  SemelError,
} from 'semel';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { afterOutage, isEmpty, quick, rest, rig } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: the point is to pass what the compiler would refuse
type Any = any;

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;
const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
const provider = { name: 'mailer', window: '1h' };

describe('an invalid contract throws when it is defined', () => {
  test.each<[string, object, string, RegExp]>([
    ['an empty name', { name: '' }, 'name', /1 to 64 letters/],
    ['a name of 2,000 characters', { name: 'x'.repeat(2000) }, 'name', /1 to 64 letters/],
    ['a name with a slash', { name: 'a/b' }, 'name', /"a\/b"/],
    ['a name with a control character', { name: 'a\u0007b' }, 'name', /1 to 64/],
    ['__proto__ as a name', { name: '__proto__' }, 'name', /1 to 64/],
    ['a name that is not a string', { name: 7 }, 'name', /number/],
    ['no run', { run: undefined }, 'run', /`run`/],
    ['an unknown class', { effect: 'write' }, 'effect', /Use one of read, write-idempotent/],
    ['no class', { effect: undefined }, 'effect', /not a valid effect/],
    ['no `per` for what is remembered', { per: undefined }, 'per', /needs `per`/],
    ['an unknown period', { per: 'daily' }, 'per', /is not a period/],
    ['a zone that is none', { per: { unit: 'day', zone: 'Mars/Phobos' } }, 'per.zone', /IANA/],
    ['a lease that is no duration', { lease: 'soon' }, 'lease', /'30s'/],
    ['a lease of nothing', { lease: 0 }, 'lease', /longer than 0/],
    ['a negative lease', { lease: -1 }, 'lease', /not a duration/],
    ['a window that is no duration', { window: '1 day' }, 'window', /not a duration/],
    ['a window of nothing', { window: 0 }, 'window', /longer than 0/],
    ['a failure window that is no duration', { failureWindow: 1.5 }, 'failureWindow', /not a duration/],
    ['a timeout of nothing', { timeout: 0 }, 'timeout', /longer than 0/],
    ['an endless timeout', { timeout: Number.POSITIVE_INFINITY }, 'timeout', /not a duration/],
    ['no number of tries', { retry: { tries: 0 } }, 'retry.tries', /whole number/],
    [
      'a backoff that is no duration',
      { retry: { tries: 2, backoff: 'x' } },
      'retry.backoff',
      /not a duration/,
    ],
    ['a wrong maxAttempts', { maxAttempts: Number.NaN }, 'maxAttempts', /whole number/],
    ['a wrong ifBusy', { ifBusy: 'queue' }, 'ifBusy', /wait, fail, skip/],
    ['a wrong mode', { mode: 'watch' }, 'mode', /enforce, observe/],
    ['a wrong onDoubt', { onDoubt: 'retry' }, 'onDoubt', /hold, rerun/],
    ['a wrong dispatch', { dispatch: 'late' }, 'dispatch', /claim, explicit/],
    ['a wrong result', { result: 'none' }, 'result', /value, reference/],
    ['a wrong version', { version: 2 }, 'version', /not a version/],
    ['an unknown normaliser', { normalize: { a: 'phone' } }, 'normalize.a', /e164/],
    [
      'a field in two lists',
      { identity: ['a'], content: ['a'] },
      'content',
      /"a" is in `identity` and in `content`/,
    ],
    ['a field twice in one list', { volatile: ['a', 'a'] }, 'volatile', /"a"/],
    ['no identity field', { identity: [] }, 'identity', /all calls would be the same intent/],
    ['identity that is no list', { identity: 'id' }, 'identity', /list of field paths/],
    ['a path that is none', { content: [''] }, 'content', /other than field paths/],
    ['redact that is no list', { redact: 'body' }, 'redact', /list of field paths/],
    ['permissions that are no list', { permissions: 'mail' }, 'permissions', /list/],
    ['earlier forms that are no list', { was: { name: 'old' } }, 'was', /list/],
    [
      'a claim as the line of what is prepared',
      { dispatch: 'claim', prepare: () => 1 },
      'dispatch',
      /`prepare`/,
    ],
    ['a provider that forgets sooner than we', { provider }, 'provider', /Add `verify`, or shorten `window`/],
    ['a provider without a window', { provider: { name: 'x' } }, 'provider.window', /not a duration/],
    ['an input that is no schema', { input: { type: 'object' } }, 'input', /Standard Schema/],
    ['a verify that is no function', { verify: true }, 'verify', /function/],
    ['a prepare that is no function', { prepare: 'x' }, 'prepare', /function/],
    ['an onReplay that is no function', { onReplay: {} }, 'onReplay', /function/],
    ['a classify that is neither', { classify: 'notLanded' }, 'classify', /function.*table/],
  ])('%s', async (_title, definition, path, message) => {
    const made = rig();
    let error: unknown;
    try {
      made.semel.tool({ ...base, run: () => 1, ...definition } as Any);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ code: 'CONTRACT_INVALID', path });
    expect((error as SemelError).message).toMatch(message);
    expect((error as SemelError).correctiveAction.length).toBeGreaterThan(3);
    expect(made.store.calls).toEqual([]);
  });

  test('the same name with two contracts', () => {
    const { semel } = rig();
    semel.tool({ ...base, run: () => 1 });
    semel.tool({ ...base, run: () => 2 });
    expect(() => semel.tool({ ...base, per: day(), run: () => 1 })).toThrow(
      expect.objectContaining({ code: 'CONTRACT_INVALID', path: 'name' }),
    );
  });

  test('a definition that is none', () => {
    const { semel } = rig();
    for (const wrong of [undefined, null, 'post', () => 1])
      expect(() => semel.tool(wrong as Any)).toThrow(expect.objectContaining({ code: 'CONTRACT_INVALID' }));
  });
});

describe('calls are refused before anything is claimed', () => {
  const input = z.object({ id: z.number(), who: z.object({ mail: z.string() }).optional() });

  test.each<[string, object, unknown, object, ErrorCode, string | undefined]>([
    ['args that fail the schema', { input }, { id: 'x' }, {}, 'INVALID_ARGS', 'args.id'],
    [
      'args that fail it deep inside',
      { input },
      { id: 1, who: { mail: 2 } },
      {},
      'INVALID_ARGS',
      'args.who.mail',
    ],
    [
      'args on which the schema throws',
      {
        input: z.any().transform(() => {
          throw new Error('mine');
        }),
      },
      {},
      {},
      'INVALID_ARGS',
      'args',
    ],
    ['args with a function', {}, { f: () => 1 }, {}, 'NOT_CANONICAL', 'args.f'],
    ['args with NaN', {}, { n: { x: Number.NaN } }, {}, 'NOT_CANONICAL', 'args.n.x'],
    ['args with a Map', {}, { m: new Map() }, {}, 'NOT_CANONICAL', 'args.m'],
    ['args with half a surrogate pair', {}, { t: '\ud800' }, {}, 'NOT_CANONICAL', 'args.t'],
    ['args deeper than 64 levels', {}, nested(70), {}, 'NOT_CANONICAL', undefined],
    ['args over the size limit', {}, { t: 'x'.repeat(2_000_000) }, {}, 'NOT_CANONICAL', undefined],
    ['no args', {}, undefined, {}, 'NOT_CANONICAL', 'args'],
    ['none of the identity fields', { identity: ['id'] }, { x: 1 }, {}, 'INVALID_ARGS', 'args'],
    ['no conversation', { per: 'turn' }, {}, {}, 'NO_IDENTITY', 'conversation'],
    ['no turn', { per: 'turn' }, {}, { conversation: 'c' }, 'NO_IDENTITY', 'turn'],
    ['an empty turn', { per: 'turn' }, {}, { conversation: 'c', turn: '' }, 'INVALID_ARGS', 'turn'],
    ['a turn that is a number', { per: 'turn' }, {}, { conversation: 'c', turn: 1 }, 'INVALID_ARGS', 'turn'],
    ['an empty key', {}, {}, { key: '' }, 'INVALID_ARGS', 'key'],
    ['a key of 2,000 characters', {}, {}, { key: 'k'.repeat(2000) }, 'INVALID_ARGS', 'key'],
    ['a key with a control character', {}, {}, { key: 'a\nb' }, 'INVALID_ARGS', 'key'],
    ['__proto__ as a key', {}, {}, { key: '__proto__' }, 'INVALID_ARGS', 'key'],
    ['an empty reason for another time', {}, {}, { again: '' }, 'INVALID_ARGS', 'again'],
    ['a limit that is no instant', {}, {}, { notAfter: 'tomorrow' }, 'INVALID_ARGS', 'notAfter'],
    ["an instant that is ''", {}, {}, { at: '' }, 'INVALID_ARGS', 'at'],
    ['an instant that is []', {}, {}, { at: [] }, 'INVALID_ARGS', 'at'],
    ['an instant that is true', {}, {}, { at: true }, 'INVALID_ARGS', 'at'],
    // `null` is not "as around it": a missing id would be taken for the surrounding one.
    ['null as at', {}, {}, { at: null }, 'INVALID_ARGS', 'at'],
    ['null as conversation', {}, {}, { conversation: null }, 'INVALID_ARGS', 'conversation'],
    ['null as turn', {}, {}, { turn: null }, 'INVALID_ARGS', 'turn'],
    ['null as run', {}, {}, { run: null }, 'INVALID_ARGS', 'run'],
    ['an instant that is null', {}, {}, { notAfter: null }, 'INVALID_ARGS', 'notAfter'],
    ["an instant that is '1781859720000'", {}, {}, { at: '1781859720000' }, 'INVALID_ARGS', 'at'],
    ['a key of spaces', {}, {}, { key: ' \u00a0\u200b' }, 'INVALID_ARGS', 'key'],
    ['a conversation of spaces', {}, {}, { conversation: ' \u00a0\u200b' }, 'INVALID_ARGS', 'conversation'],
    ['a turn of spaces', {}, {}, { turn: ' \u00a0\u200b' }, 'INVALID_ARGS', 'turn'],
    ['a run of spaces', {}, {}, { run: ' \u00a0\u200b' }, 'INVALID_ARGS', 'run'],
    ['a toolCallId of spaces', {}, {}, { toolCallId: ' \u00a0\u200b' }, 'INVALID_ARGS', 'toolCallId'],
    ['a again of spaces', {}, {}, { again: ' \u00a0\u200b' }, 'INVALID_ARGS', 'again'],
    ['an instant that is none', { per: day() }, {}, { at: new Date('x') }, 'INVALID_ARGS', 'at'],
    ['another major version', { version: '2.1' }, {}, { version: '3' }, 'VERSION_MISMATCH', 'version'],
    [
      'a missing permission',
      { permissions: ['mail'] },
      {},
      { permissions: ['sms'] },
      'NOT_PERMITTED',
      'permissions',
    ],
    ['an aborted signal', {}, {}, { signal: AbortSignal.abort() }, 'ABORTED', undefined],
    ['a signal that is none', {}, {}, { signal: 'stop' }, 'INVALID_ARGS', 'signal'],
    ['too late', {}, {}, { notAfter: 1 }, 'EXPIRED', undefined],
    ['options that are none', {}, {}, 'c1' as Any, 'INVALID_ARGS', 'options'],
  ])('%s', async (_title, definition, args, options, code, path) => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => expect.fail('not run'), ...definition } as Any) as Any;
    const result = await tool.try(args, options);
    expect(result).toMatchObject({
      ok: false,
      error: { code },
      receipt: { contract: 'post', executed: false },
    });
    if (path !== undefined) expect(result.error.path).toBe(path);
    expect(result.error.message).toContain(result.error.correctiveAction);
    await expect(tool(args, options)).rejects.toMatchObject({ code, receipt: { contract: 'post' } });
    // What was done in time is looked for by a claim that cannot win: it finds the record under every form of its key.
    const looks = code === 'EXPIRED' ? ['open', 'read', 'claim'] : ['open', 'read'];
    expect(made.store.calls.filter((method) => !looks.includes(method))).toEqual([]);
    expect(await isEmpty(made)).toBe(true);
  });

  test('the version of a call is compared by its major part', async () => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, version: '2.1.0', run: () => 1 });
    expect(await tool({}, { version: '2' })).toBe(1);
    expect(await tool({}, { version: '2.7' })).toBe(1);
  });

  test.each(['', 'x'.repeat(2000), 'a\u0000b', '__proto__', 7])(
    'the namespace %j is refused',
    (namespace) => {
      expect(() => createSemel({ store: 'memory:', namespace: namespace as string })).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGS', path: 'namespace' }),
      );
    },
  );

  test.each([true, null, 'on', 5])('the cache %j is refused', (cache) => {
    expect(() => createSemel({ store: 'memory:', namespace: 'test', cache: cache as never })).toThrow(
      expect.objectContaining({ code: 'CONTRACT_INVALID', path: 'cache' }),
    );
  });

  test('a namespace from the environment is checked too; an empty one is none', () => {
    try {
      process.env.SEMEL_NAMESPACE = 'a\u0007b';
      expect(() => createSemel({ store: 'memory:' })).toThrow(
        expect.objectContaining({ path: 'SEMEL_NAMESPACE' }),
      );
      process.env.SEMEL_NAMESPACE = '';
      expect(createSemel({ store: 'memory:' }).namespace).not.toBe('');
    } finally {
      delete process.env.SEMEL_NAMESPACE;
    }
  });

  test.each(['mysql://x', 'ledger.db', 7, {}])('the store %j is refused', (store) => {
    expect(() => createSemel({ store: store as Any })).toThrow(
      expect.objectContaining({ code: 'CONTRACT_INVALID', path: 'store' }),
    );
  });

  test('`once` without an effect, with a bad name, with no id', async () => {
    const made = rig();
    const { semel } = made;
    await expect(semel.once('a', 1, {} as Any)).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'effect',
    });
    await expect(semel.once('a/b', 1, () => 1)).rejects.toMatchObject({
      code: 'CONTRACT_INVALID',
      path: 'name',
    });
    await expect(semel.once('a', undefined, () => 1)).rejects.toMatchObject({ code: 'NOT_CANONICAL' });
    await expect(semel.once('a', 1, { per: 'daily' as Any }, () => 1)).rejects.toMatchObject({ path: 'per' });
    expect(await isEmpty(made)).toBe(true);
  });

  test('options of `once` in the place of the id, which would land once for good', async () => {
    const semel = quick();
    for (const id of [{ via: 'fetch' }, { timeout: '5s', ifBusy: 'fail' }, { verify: () => landed(1) }]) {
      const run = () => expect.fail('not run');
      const refused = {
        code: 'INVALID_ARGS',
        path: 'id',
        message: expect.stringMatching(/Pass the id first/),
      };
      await expect(semel.once('mail', id, run)).rejects.toMatchObject(refused);
      const job = semel.job('report', {}, async ({ once }) => void (await once('mail', id, run)));
      await expect(job.run()).rejects.toMatchObject(refused);
    }
    expect(await semel.once('sync', { provider: 'acme' }, () => 'an id')).toBe('an id');
    expect(await semel.once('sync', { window: 'left', via: 'fetch' }, () => 'too')).toBe('too');
    expect(await semel.once('sync', { via: 'fetch' }, {}, () => 'with options')).toBe('with options');
  });

  test('`begin` takes tools of this semel that are recorded', async () => {
    const { semel } = rig();
    const read = semel.tool({ name: 'read', effect: 'read', run: () => 1 });
    const foreign = rig().semel.tool({ ...base, name: 'foreign', run: () => 1 });
    for (const wrong of [read, foreign, (() => 1) as Any, undefined as Any])
      await expect(semel.begin(wrong, {})).rejects.toMatchObject({ code: 'CONTRACT_INVALID', path: 'tool' });
  });
});

describe('every code', () => {
  test('says who may try again, has both parts in its message, and is explained in the docs', () => {
    const page = readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8');
    const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!.toLowerCase().replaceAll('`', ''),
    );
    for (const code of errorCodes) {
      const error = new SemelError(code, 'It happened.');
      expect(error.message).toBe(`It happened. ${error.correctiveAction}`);
      expect(error.correctiveAction).toMatch(/^[A-Z`].+\.$/);
      expect(['call', 'delay', 'person', 'nobody']).toContain(retryOf(code));
      expect(error.docs).toBe(`npx semel explain ${code}`);
      expect(anchors, code).toContain(code.toLowerCase());
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code, message: error.message });
    }
  });

  const fails = (error: unknown) => () => {
    throw error;
  };

  const produce: Partial<Record<ErrorCode, (made: ReturnType<typeof rig>) => Promise<unknown> | unknown>> = {
    INVALID_ARGS: ({ semel }) => semel.tool({ ...base, run: () => 1 })({}, { key: '' }),
    NOT_CANONICAL: ({ semel }) => semel.tool({ ...base, run: () => 1 })({ f: () => 1 }),
    NOT_PERMITTED: ({ semel }) => semel.tool({ ...base, permissions: ['x'], run: () => 1 })({}),
    VERSION_MISMATCH: ({ semel }) => semel.tool({ ...base, run: () => 1 })({}, { version: '9' }),
    NO_IDENTITY: ({ semel }) => semel.handoff(),
    async KEY_CONFLICT({ semel }) {
      const tool = semel.tool({ ...base, run: () => 1 });
      await tool({ a: 1 }, { key: 'k' });
      await tool({ a: 2 }, { key: 'k' });
    },
    async IN_FLIGHT({ semel }) {
      const tool = semel.tool({ ...base, ifBusy: 'fail', run: () => new Promise(() => undefined) });
      void tool.try({});
      await rest();
      await tool({});
    },
    async REENTRANT({ semel }) {
      const tool = semel.tool({ ...base, run: async (): Promise<unknown> => (await tool.try({})) as Any });
      const result = (await tool({})) as Any;
      throw result.error;
    },
    IN_DOUBT: ({ semel }) => semel.tool({ ...base, run: fails(new Error('reset')) })({}),
    async LEASE_LOST(made) {
      const lazy = { ...base, dispatch: 'explicit', lease: '10s', timeout: '1h' } as const;
      const wake = Promise.withResolvers<void>();
      const slow = made.semel.tool({
        ...lazy,
        run: async (_args: object, ctx) => {
          await wake.promise;
          await ctx.dispatch();
        },
      });
      const call = slow({});
      call.catch(() => undefined);
      await rest();
      made.clock.jump(11_000);
      void made
        .another()
        .tool({ ...lazy, run: () => new Promise(() => undefined) })
        .try({});
      await rest();
      wake.resolve();
      await call;
    },
    NOT_LANDED: ({ semel }) => semel.tool({ ...base, run: fails(new NotLanded('later')) })({}),
    FAILED: ({ semel }) => semel.tool({ ...base, run: fails(new Rejected('no')) })({}),
    async POISON(made) {
      const lazy = { ...base, dispatch: 'explicit', lease: '10s', timeout: '1h', maxAttempts: 1 } as const;
      void made.semel.tool({ ...lazy, run: () => new Promise(() => undefined) }).try({});
      await rest();
      made.clock.jump(11_000);
      await made.another().tool({ ...lazy, run: () => 1 })({});
    },
    PARTIAL_SUCCESS: ({ semel }) => semel.tool({ ...base, run: fails(new PartialSuccess([1])) })({}),
    async UNRECORDED({ semel, store, clock }) {
      await semel.open();
      store.break('settle');
      await clock.until(semel.tool({ ...base, run: () => 1 })({}));
    },
    async RESULT_OMITTED({ semel }) {
      const tool = semel.tool({ ...base, run: (): unknown => () => 1 });
      await tool({});
      await tool({});
    },
    EXPIRED: ({ semel }) => semel.tool({ ...base, run: () => 1 })({}, { notAfter: 1 }),
    async RESOLVE_STALE({ semel }) {
      const tool = semel.tool({
        ...base,
        run: fails(new Error('reset')),
        verify: afterOutage(() => landed(undefined as never)),
      });
      await tool.try({});
      const [record] = (await semel.doubts.list()).items;
      await tool.try({});
      await semel.doubts.resolve(record!.ref, 'runAgain');
    },
    async STORE_UNAVAILABLE({ semel, store, clock }) {
      store.break();
      await clock.until(semel.tool({ ...base, run: () => 1 })({}));
    },
    CONTRACT_INVALID: ({ semel }) => semel.tool({ ...base, name: '', run: () => 1 }),
    ABORTED: ({ semel }) => semel.tool({ ...base, run: () => 1 })({}, { signal: AbortSignal.abort() }),
  };

  test.each(Object.keys(produce) as ErrorCode[])(
    '%s can be met, with both parts in its message',
    async (code) => {
      const made = rig();
      let error: unknown;
      try {
        await produce[code]?.(made);
      } catch (thrown) {
        error = thrown;
      }
      expect(isSemelError(error, code), String(error)).toBe(true);
      const { message, happened, correctiveAction } = error as SemelError;
      expect(message).toBe(`${happened} ${correctiveAction}`);
      expect(happened).toMatch(/[.)]$/);
      expect(correctiveAction).toMatch(/\.$/);
      expect(message).not.toMatch(/undefined|\[object|\.\.(?!\.)/);
    },
  );

  test('is met by a test, here or where its part of semel is tested', () => {
    const elsewhere: ErrorCode[] = ['STEP_CHANGED', 'STORE_UNSAFE', 'STORE_MOVED'];
    expect([...Object.keys(produce), ...elsewhere].sort()).toEqual([...errorCodes].sort());
  });
});

test('an unknown field is refused, with the likely one', () => {
  const semel = quick();
  const common = { name: 'm', effect: 'irreversible', per: 'ever', idenity: ['p'] } as const;
  expect(() => semel.tool({ ...common, run: (_: { p: string }) => 1 })).toThrow(
    /no field `idenity`.*`identity`/,
  );
});

describe('an unknown option is refused, with the nearest known one', () => {
  test.each([
    [{ namspace: 'shop' }, /createSemel: there is no field `namspace`.*`namespace`/],
    [{ limits: { argBytes: 1 } }, /limits: there is no field `argBytes`.*`argsBytes`/],
    [{ cache: { maxAg: 1 } }, /cache: there is no field `maxAg`.*`maxAge`/],
    [{ defaults: { leas: 1 } }, /defaults: there is no field `leas`.*`lease`/],
  ])('createSemel(%j)', (options, message) => {
    expect(() => quick(options as never)).toThrow(message);
  });

  test('of a call', async () => {
    const tool = quick().tool({ ...base, run: () => expect.fail('not run') });
    const misspelt = { idempotencyKey: 'k', turns: '1' } as never;
    expect(await tool.try({}, misspelt)).toMatchObject({
      ok: false,
      error: { code: 'INVALID_ARGS', path: 'idempotencyKey' },
    });
    await expect(tool({}, { turns: '1' } as never)).rejects.toThrow(/`turns`.*`turn`/);
  });

  test('of a one-liner', async () => {
    const once = quick().once('mail', {}, { widow: '1d' } as never, () => expect.fail('not run'));
    await expect(once).rejects.toThrow(/options of once: there is no field `widow`.*`window`/);
  });
});
