// What people met when they used semel for the first time: each was silent, or said the wrong thing.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSemel } from 'semel';
import { afterAll, describe, expect, test } from 'vitest';
import { quick, rig } from './support.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const base = { name: 'pay', effect: 'write-non-idempotent', per: 'ever' } as const;

/** Takes every request and answers none. */
const silent = createServer(() => undefined).listen(0, '127.0.0.1');
afterAll(() => {
  silent.closeAllConnections();
  silent.close();
});
const silentUrl = () => `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;

test.each(['POST', 'GET'])(
  'ctx.fetch obeys the signal that it is given, with a provider too: %s',
  async (method) => {
    const provider = { name: 'bank', window: '48h', hosts: ['127.0.0.1'] } as const;
    const tool = quick().tool({
      ...base,
      provider,
      run: async (_args: object, ctx) => {
        const giveUp = new AbortController();
        setTimeout(() => {
          collectGarbage();
          giveUp.abort(new Error('took too long'));
        }, 50);
        await ctx.fetch(silentUrl(), { method, signal: giveUp.signal });
      },
    });
    const result = await tool.try({});
    expect(result.ok ? '' : String(result.error.cause)).toMatch(/took too long/);
  },
);

describe('what `fetch` hides in its cause', () => {
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const failing = (definition: object = {}) =>
    quick().tool({
      ...base,
      run: () => {
        throw new TypeError('fetch failed', { cause: reset });
      },
      ...definition,
    });

  test('is said', async () => {
    const result = await failing().try({});
    expect(result.ok ? '' : result.error.message).toMatch(
      /ECONNRESET: fetch failed \(read ECONNRESET\)\. It may have landed/,
    );
  });

  test('is classified by its code', async () => {
    const tool = failing({ classify: { ECONNRESET: 'notLanded' } });
    expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
  });
});

test('a person finds the key that the provider was sent', async () => {
  const made = rig();
  let sent = '';
  const provider = { name: 'bank', window: '48h' } as const;
  const tool = made.semel.tool({
    ...base,
    provider,
    run: (_args: object, { key }) => {
      sent = key;
      throw new Error('reset');
    },
  });
  await tool.try({});
  expect((await made.semel.doubts.list()).items[0]).toMatchObject({ providerKey: sent });
  await made.semel.once('other', 1, () => 1);
  const { items } = await made.semel.records.list({ contract: 'other' });
  expect(items[0]?.providerKey).toBeUndefined();
});

test('two tools of one name and contract that do different things are warned about', () => {
  const { semel, warnings } = rig();
  semel.tool({ ...base, run: () => 'one' });
  semel.tool({ ...base, run: () => 'one' });
  expect(warnings).toEqual([]);
  semel.tool({ ...base, run: () => 'two' });
  expect(warnings).toEqual([expect.stringMatching(/pay is defined twice, with another `run`/)]);
});

test('two contracts of one name: the field in which they differ is named', () => {
  const semel = quick();
  semel.tool({ ...base, run: () => 1 });
  expect(() => semel.tool({ ...base, per: 'turn', window: '2d', run: () => 1 })).toThrow(
    /\(`window`, `per`\)|\(`per`, `window`\)/,
  );
});

test.each([undefined, null])('%s can be thrown', async (thrown) => {
  const tool = quick().tool({
    ...base,
    run: () => {
      throw thrown;
    },
  });
  const result = await tool.try({});
  expect(result.ok ? '' : result.error.message).toContain(`: ${thrown} was thrown. It may have landed`);
});

test('for a plain bug, the message says what to throw', async () => {
  const tool = quick().tool({
    ...base,
    run: () => {
      throw new TypeError('x is not a function');
    },
  });
  const result = await tool.try({});
  expect(result.ok ? '' : result.error.message).toMatch(/before anything was sent: throw NotLanded/);
});

test('with a provider the advice begins with what is easiest', async () => {
  const provider = { name: 'bank', window: '48h' } as const;
  const tool = quick().tool({
    ...base,
    provider,
    run: (_: object, { key: _key }) => {
      throw new Error('reset');
    },
  });
  const result = await tool.try({});
  expect(result.ok ? '' : result.error.correctiveAction).toMatch(
    /^Call again: the provider gets the same key.* Or check /,
  );
});

test('an error that is thrown shows the line of the call', async () => {
  const { semel, clock } = rig();
  const tool = semel.tool({ ...base, run: () => expect.fail('not run') });
  async function theCaller() {
    await tool({}, { notAfter: clock.now() - 1 });
  }
  await expect(theCaller()).rejects.toMatchObject({ stack: expect.stringMatching(/theCaller/) });
});

test.each<[string, () => unknown, RegExp]>([
  ['options', () => createSemel('sqlite:x.db' as never), /createSemel takes an object.*store: 'sqlite:/],
  ["SQLite's memory", () => createSemel({ store: 'sqlite::memory:' }), /'memory:'/],
  ['a host', () => createSemel({ store: 'sqlite://home/x.db' }), /looks like a host/],
  [
    'hosts',
    () =>
      quick().tool({ ...base, provider: { name: 'b', window: '2d', hosts: 'b.com' as never }, run: () => 1 }),
    /`provider.hosts` must be a list/,
  ],
  [
    'a scheme',
    () =>
      quick().tool({
        ...base,
        provider: { name: 'b', window: '2d', hosts: ['https://b.com'] },
        run: () => 1,
      }),
    /"https:\/\/b.com" is not a host/,
  ],
  [
    'provider',
    () =>
      quick().tool({ ...base, provider: { name: 'b', window: '2d', host: 'b.com' } as never, run: () => 1 }),
    /no field `host`.*`hosts`/,
  ],
  [
    'per',
    () => quick().tool({ ...base, per: (() => 1) as never, run: () => 1 }),
    /a function that was not called is not a period.*minute\(\)/,
  ],
  [
    'classify',
    () => quick().tool({ ...base, classify: { E: 'not-landed' as never }, run: () => 1 }),
    /"not-landed".*notLanded/,
  ],
  ['an event', () => quick().on('setled' as never, () => undefined), /no event `setled`.*settled/],
  ['within', () => quick().within({ conversationId: 'c' } as never, () => 1), /no field `conversationId`/],
  ['nothing to do', () => quick().within({ turn: 't' }, undefined as never), /needs a function/],
  ['a tool', () => quick().tool({ ...base, execute: () => 1 } as never), /pay: there is no field `execute`/],
])('what is no %s is refused', (_what, make, message) => {
  expect(make).toThrow(message);
});
