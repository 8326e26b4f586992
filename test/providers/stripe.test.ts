// The real SDK of Stripe against an API that keeps keys as Stripe documents it.

import { type AttemptContext, landed, notLanded, unsure } from 'semel';
import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { stripe } from '../../src/providers/index.ts';
import { deafAddress, quick, type Rig, rig } from '../library/support.ts';
import { type Api, api, inHeader } from './api.ts';

const hour = 3_600_000;

const charges = (now?: () => number) =>
  api({
    keyOf: inHeader('idempotency-key'),
    windowMs: 24 * hour,
    ...(now && { now }),
    mismatch: { status: 400, body: { error: { type: 'idempotency_error', message: 'other parameters' } } },
    done: (nth) => ({ id: `re_${nth}`, object: 'refund' }),
  });

function clientOf(at: { readonly port: number }, fetch: AttemptContext['fetch'], more: object = {}) {
  return new Stripe('sk_test_x', {
    host: '127.0.0.1',
    port: at.port,
    protocol: 'http',
    telemetry: false,
    httpClient: Stripe.createFetchHttpClient(fetch),
    ...more,
  });
}

interface Refund {
  readonly charge: string;
}

const contract = { name: 'refund', effect: 'write-non-idempotent', per: 'ever', window: '20h' } as const;
const none = { maxNetworkRetries: 0 };
const providerOf = (at: Api) => ({ ...stripe, hosts: [at.host] });

function refundTool(semel: Rig['semel'], at: Api, more: object = {}, options: object = none) {
  return semel.tool({
    ...contract,
    provider: providerOf(at),
    ...more,
    run: async ({ charge }: Refund, ctx) => {
      const { id } = await clientOf(at, ctx.fetch, options).refunds.create({ charge });
      return id;
    },
  });
}

const code = (result: { ok: boolean; error?: { code: string } }) => (result.ok ? 'ok' : result.error?.code);

describe('a lost answer', () => {
  test('is asked for again under the same key: one refund', async () => {
    const at = await charges();
    const semel = quick();
    const tool = refundTool(semel, at);
    at.lose(1);
    expect(code(await tool.try({ charge: 'ch_1' }))).toBe('IN_DOUBT');
    expect(await tool({ charge: 'ch_1' })).toBe('re_1');
    expect(at.effects).toHaveLength(1);
    const keys = at.requests.map(({ key }) => key);
    expect(keys).toEqual([keys[0], keys[0]]);
    // Not the one that the SDK makes up for each call.
    expect(keys[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    await semel.close();
  });

  test('that never comes is given up by the SDK, and requested again under the same key', async () => {
    const at = await charges();
    const semel = quick();
    const options = { ...none, timeout: 100 };
    const tool = refundTool(semel, at, {}, options);
    at.hang(1);
    expect(code(await tool.try({ charge: 'ch_1' }))).toBe('IN_DOUBT');
    options.timeout = 30_000;
    // On a busy machine the SDK may have given up before its request arrived.
    at.hang(0);
    expect(await tool({ charge: 'ch_1' })).toBe('re_1');
    expect(at.effects).toHaveLength(1);
    await semel.close();
  });

  test('and a tool that words its request differently each time: the key is refused, and it stays in doubt', async () => {
    const at = await charges();
    const semel = quick();
    let words = 0;
    const tool = semel.tool({
      ...contract,
      provider: providerOf(at),
      run: ({ charge }: Refund, ctx) =>
        clientOf(at, ctx.fetch, none).refunds.create({ charge, metadata: { words: ++words } }),
    });
    at.lose(1);
    expect(code(await tool.try({ charge: 'ch_1' }))).toBe('IN_DOUBT');
    expect(code(await tool.try({ charge: 'ch_1' }))).toBe('IN_DOUBT');
    expect(at.effects).toHaveLength(1);
    expect(at.requests).toHaveLength(2);
    await semel.close();
  });

  test('is asked for again by the SDK itself, under the same key too', async () => {
    const at = await charges();
    const semel = quick();
    const tool = refundTool(semel, at, {}, { maxNetworkRetries: 2 });
    at.lose(2);
    expect(await tool({ charge: 'ch_1' })).toBe('re_1');
    expect(at.effects).toHaveLength(1);
    expect(new Set(at.requests.map(({ key }) => key)).size).toBe(1);
    await semel.close();
  });

  test('what that would be without semel: a second call, a second key, a second refund', async () => {
    const at = await charges();
    const client = clientOf(at, fetch, none);
    at.lose(1);
    await client.refunds.create({ charge: 'ch_1' }).catch(() => client.refunds.create({ charge: 'ch_1' }));
    expect(at.effects).toHaveLength(2);
  });

  test('past the window the key is forgotten there: verify is asked, and nothing is sent', async () => {
    const made = rig();
    const at = await charges(made.clock.now);
    let asked = 0;
    const tool = refundTool(made.semel, at, {
      window: '7d',
      verify: async (_: Refund, { key }: { key: string }) => {
        asked += 1;
        if (asked === 1) return unsure('its list is late');
        return at.requests.some((each) => each.key === key) ? landed('re_1') : notLanded();
      },
    });
    at.lose(1);
    expect(code(await tool.try({ charge: 'ch_1' }))).toBe('IN_DOUBT');
    await made.clock.advance(25 * hour);
    expect(await tool({ charge: 'ch_1' })).toBe('re_1');
    expect({ asked, effects: at.effects.length, requests: at.requests.length }).toEqual({
      asked: 2,
      effects: 1,
      requests: 1,
    });
  });

  test('a contract that remembers for longer than Stripe needs that verify', async () => {
    const at = await charges();
    expect(() => refundTool(quick(), at, { window: '7d' })).toThrow(
      /stripe remembers a key for 1d, this contract for 7d/,
    );
  });
});

describe('several requests in one tool', () => {
  test('are numbered, or named, and keep their keys on a re-run', async () => {
    const at = await charges();
    const semel = quick();
    const tool = semel.tool({
      ...contract,
      provider: providerOf(at),
      run: async (_: Refund, ctx) => {
        const client = clientOf(at, ctx.fetch, none);
        await client.refunds.create({ charge: 'ch_1' });
        await client.refunds.create({ charge: 'ch_2' });
        await client.refunds.create({ charge: 'ch_3' }, { idempotencyKey: ctx.keyFor('third') });
        if (at.requests.length < 4) throw new Error('crashed');
        return 1;
      },
    });
    expect(code(await tool.try({ charge: 'all' }))).toBe('IN_DOUBT');
    expect(await tool({ charge: 'all' })).toBe(1);
    const keys = at.requests.map(({ key }) => key);
    expect(keys.slice(3)).toEqual(keys.slice(0, 3));
    expect(new Set(keys).size).toBe(3);
    expect(at.effects).toHaveLength(3);
    await semel.close();
  });
});

test('the key goes to no other host', async () => {
  const at = await charges();
  const stranger = await charges();
  const semel = quick();
  const tool = semel.tool({
    ...contract,
    provider: providerOf(at),
    run: (_: Refund, ctx) => clientOf(stranger, ctx.fetch, none).refunds.create({ charge: 'ch_1' }),
  });
  const result = await tool.try({ charge: 'ch_1' });
  expect(result.ok).toBe(false);
  expect(stranger.requests).toEqual([]);
  await semel.close();
});

describe('what its errors mean', () => {
  const error = (status: number, type: string, more: object = {}) => ({
    status,
    body: { error: { type, message: 'no', ...more } },
  });
  const replies = [
    ['StripeCardError', error(402, 'card_error', { code: 'card_declined' }), 'FAILED'],
    ['StripeInvalidRequestError', error(400, 'invalid_request_error'), 'FAILED'],
    ['StripeInvalidRequestError', error(404, 'invalid_request_error'), 'FAILED'],
    ['StripeAuthenticationError', error(401, 'invalid_request_error'), 'NOT_LANDED'],
    ['StripePermissionError', error(403, 'invalid_request_error'), 'NOT_LANDED'],
    ['StripeRateLimitError', error(429, 'invalid_request_error', { code: 'rate_limit' }), 'NOT_LANDED'],
    ['StripeIdempotencyError', error(400, 'idempotency_error'), 'IN_DOUBT'],
    [
      'StripeError, key in use',
      error(409, 'invalid_request_error', { code: 'idempotency_key_in_use' }),
      'IN_DOUBT',
    ],
    ['StripeAPIError', error(500, 'api_error'), 'IN_DOUBT'],
  ] as const;

  test.each(replies)('%s', async (_, reply, expected) => {
    // With ctx.fetch, and by the shape of the error alone.
    for (const choose of [(ctx: AttemptContext) => ctx.fetch, () => fetch]) {
      const at = await charges();
      at.answer(reply);
      const semel = quick();
      const tool = semel.tool({
        ...contract,
        provider: providerOf(at),
        run: (_: Refund, ctx) => clientOf(at, choose(ctx), none).refunds.create({ charge: 'ch_1' }),
      });
      expect(code(await tool.try({ charge: 'ch_1' }))).toBe(expected);
      await semel.close();
    }
  });

  test('StripeConnectionError: not landed only where no connection was made', async () => {
    const deaf = { port: Number(new URL(await deafAddress()).port) };
    const connection = await thrownBy(clientOf(deaf, fetch, none).refunds.create({ charge: 'x' }));
    expect([connection, stripe.classify?.(connection)]).toMatchObject([
      { type: 'StripeConnectionError' },
      'notLanded',
    ]);
    const at = await charges();
    at.lose(2);
    const cut = await thrownBy(clientOf(at, fetch, none).refunds.create({ charge: 'x' }));
    expect(stripe.classify?.(cut)).toBeUndefined();
  });

  test("another service's error is not its own", () => {
    for (const other of [
      new Error('x'),
      { status: 400 },
      { statusCode: 400, name: 'validation_error' },
      null,
      'x',
    ])
      expect(stripe.classify?.(other)).toBeUndefined();
  });
});

test('one refund landed and the next was declined: in doubt, though the SDK names a definite error', async () => {
  const at = await charges();
  const semel = quick();
  const tool = semel.tool({
    ...contract,
    provider: providerOf(at),
    run: async (_: Refund, ctx) => {
      const client = clientOf(at, ctx.fetch, none);
      await client.refunds.create({ charge: 'ch_1' });
      at.answer({ status: 402, body: { error: { type: 'card_error', message: 'declined' } } });
      await client.refunds.create({ charge: 'ch_2' });
    },
  });
  expect(code(await tool.try({ charge: 'both' }))).toBe('IN_DOUBT');
  await semel.close();
});

async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('nothing was thrown');
    },
    (error: unknown) => error,
  );
}
