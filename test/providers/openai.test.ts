// The real SDK of OpenAI against an API that honours no key.

import OpenAI from 'openai';
import { type AttemptContext, landed, notLanded } from 'semel';
import { describe, expect, test } from 'vitest';
import { openai } from '../../src/providers/index.ts';
import { deafAddress, quick, rig } from '../library/support.ts';
import { type Api, api } from './api.ts';

const stores = () => api({ done: (nth) => ({ id: `vs_${nth}`, object: 'vector_store' }) });

const clientOf = (url: string, fetch: AttemptContext['fetch'], more: object = {}) =>
  new OpenAI({ apiKey: 'x', baseURL: url, fetch, ...more });

interface Store {
  readonly name: string;
}

const contract = {
  name: 'store.create',
  effect: 'write-non-idempotent',
  per: 'ever',
  provider: openai,
  via: 'fetch',
} as const;

function createTool(semel: ReturnType<typeof quick>, at: Api, more: object = {}, options: object = {}) {
  return semel.tool({
    ...contract,
    ...more,
    run: async ({ name }: Store, ctx) => {
      const { id } = await clientOf(at.url, ctx.fetch, options).vectorStores.create({ name });
      return id;
    },
  });
}

const code = (result: { ok: boolean; error?: { code: string } }) => (result.ok ? 'ok' : result.error?.code);

describe('a lost answer', () => {
  test.each([
    ['openai is its provider', openai],
    ['it has no provider', undefined],
  ])(
    'ends in doubt, though the SDK wants to try twice more; and is not sent again by a second call: %s',
    async (_, provider) => {
      const at = await stores();
      const semel = quick();
      const tool = createTool(semel, at, { provider });
      at.lose(1);
      expect(code(await tool.try({ name: 'a' }))).toBe('IN_DOUBT');
      expect(code(await tool.try({ name: 'a' }))).toBe('IN_DOUBT');
      expect(at.effects).toHaveLength(1);
      expect(at.requests).toHaveLength(1);
      await semel.close();
    },
  );

  test('what that would be without semel: two', async () => {
    const at = await stores();
    at.lose(1);
    await clientOf(at.url, fetch).vectorStores.create({ name: 'a' });
    expect(at.effects).toHaveLength(2);
  });

  test('is found by verify', async () => {
    const made = rig();
    const at = await stores();
    const tool = createTool(made.semel, at, {
      verify: async ({ name }: Store) =>
        at.effects.some((words) => words.includes(`"${name}"`)) ? landed('vs_1') : notLanded(),
    });
    at.lose(1);
    // The SDK waits between its tries on the real clock.
    expect(await tool({ name: 'a' })).toBe('vs_1');
    expect(at.effects).toHaveLength(1);
  });
});

test('no key is sent to a service that would not recognise it', async () => {
  const at = await stores();
  const semel = quick();
  expect(await createTool(semel, at)({ name: 'a' })).toBe('vs_1');
  expect(Object.keys(at.requests[0]!.headers).filter((name) => name.includes('idempotency'))).toEqual([]);
  await semel.close();
});

test('what did not land is tried again by the SDK', async () => {
  const at = await stores();
  const semel = quick();
  at.answer({ status: 429, body: { error: { message: 'slow down' } } });
  expect(await createTool(semel, at)({ name: 'a' })).toBe('vs_1');
  expect(at.requests).toHaveLength(2);
  await semel.close();
});

describe('what its errors mean', () => {
  test.each([
    ['BadRequestError', 400, 'FAILED'],
    ['AuthenticationError', 401, 'NOT_LANDED'],
    ['PermissionDeniedError', 403, 'NOT_LANDED'],
    ['NotFoundError', 404, 'FAILED'],
    ['ConflictError', 409, 'IN_DOUBT'],
    ['UnprocessableEntityError', 422, 'FAILED'],
    ['RateLimitError', 429, 'NOT_LANDED'],
    ['InternalServerError', 500, 'IN_DOUBT'],
  ])('%s', async (name, status, expected) => {
    for (const choose of [(ctx: AttemptContext) => ctx.fetch, () => fetch]) {
      const at = await stores();
      at.answer({ status, body: { error: { message: 'no', type: 't', param: null, code: null } } });
      const semel = quick();
      let thrown: unknown;
      const tool = semel.tool({
        ...contract,
        run: ({ name }: Store, ctx) =>
          clientOf(at.url, choose(ctx), { maxRetries: 0 })
            .vectorStores.create({ name })
            .catch((error: unknown) => {
              thrown = error;
              throw error;
            }),
      });
      expect(code(await tool.try({ name: 'a' }))).toBe(expected);
      expect((thrown as object).constructor.name).toBe(name);
      await semel.close();
    }
  });

  test('APIConnectionError: not landed only where no connection was made', async () => {
    const failing = (url: string) =>
      clientOf(url, fetch, { maxRetries: 0 })
        .vectorStores.create({ name: 'a' })
        .then(
          () => undefined,
          (error: unknown) => error,
        );
    expect(openai.classify?.(await failing(await deafAddress()))).toBe('notLanded');
    const at = await stores();
    at.lose(1);
    const cut = await failing(at.url);
    expect((cut as object).constructor.name).toBe('APIConnectionError');
    expect(openai.classify?.(cut)).toBeUndefined();
  });

  test("another service's error is not its own", () => {
    for (const other of [new Error('x'), { status: 400 }, { status: 400, requestID: 'r', error: {} }, null])
      expect(openai.classify?.(other)).toBeUndefined();
  });
});
