// Providers that take the key in the body, in the query, or from the tool itself; and what is trusted of each.

import type { IncomingMessage } from 'node:http';
import { landed, notLanded, type Provider } from 'semel';
import { describe, expect, test } from 'vitest';
import { discord, quickbooks, smtp, square, xero } from '../../src/providers/index.ts';
import { type Rig, rig } from '../library/support.ts';
import { type Api, api, inHeader } from './api.ts';

const hour = 3_600_000;

const inBody = (field: string) => (_: unknown, body: string) => JSON.parse(body)[field] as string;
const inQuery = (field: string) => (request: IncomingMessage) =>
  new URL(request.url ?? '', 'http://x').searchParams.get(field) ?? undefined;

interface Payment {
  readonly order: string;
}

function payTool({ semel }: Rig, at: Api, provider: Provider, more: object = {}) {
  return semel.tool({
    name: 'pay',
    effect: 'write-non-idempotent',
    per: 'ever',
    provider: { ...provider, hosts: [at.host] },
    verify: () => (at.effects.length > 0 ? landed(1) : notLanded()),
    ...more,
    run: async (payment: Payment, ctx) => {
      const response = await ctx.fetch(`${at.url}/payments?v=2`, {
        method: 'POST',
        body: JSON.stringify(payment),
      });
      return ((await response.json()) as { nth: number }).nth;
    },
  });
}

const done = (nth: number) => ({ nth });
const places = [
  ['square, in the body', square, inBody('idempotency_key')],
  ['discord, in the body and short', discord, inBody('nonce')],
  ['quickbooks, in the query', quickbooks, inQuery('requestid')],
  ['xero, in a header', xero, inHeader('idempotency-key')],
] as const;

describe.each(places)('%s', (_, row, keyOf) => {
  test('the key arrives there; without a documented window, a lost answer is not sent again', async () => {
    const made = rig();
    const at = await api({ keyOf, done });
    const tool = payTool(made, at, row);
    at.lose(1);
    // `verify` is asked at once, in the same call.
    expect(await tool.try({ order: 'o-1' })).toMatchObject({ ok: true, value: 1 });
    await made.clock.advance(hour);
    expect(await tool.try({ order: 'o-1' })).toMatchObject({
      ok: true,
      value: 1,
      receipt: { executed: false },
    });
    expect(at.requests).toHaveLength(1);
    expect(at.requests[0]!.key).toMatch(/^[0-9a-f-]{25,36}$/);
  });

  test('with `verified: true` it is sent again, and lands once', async () => {
    const made = rig();
    const at = await api({ keyOf, done });
    const vouched = { ...row, verified: true, window: '48h' } as const;
    const tool = payTool(made, at, vouched, { verify: undefined });
    at.lose(1);
    await tool.try({ order: 'o-1' });
    expect(await tool.try({ order: 'o-1' })).toMatchObject({
      ok: true,
      value: 1,
      receipt: { executed: true },
    });
    expect(at.requests).toHaveLength(2);
    expect(at.effects).toHaveLength(1);
  });

  test('without a verify a contract is refused', async () => {
    const at = await api({ keyOf, done });
    expect(() => payTool(rig(), at, row, { verify: undefined })).toThrow(/nothing could decide a doubt/);
  });
});

test('smtp: the key is a Message-ID, the tool sends it, and verify finds it', async () => {
  const made = rig();
  const sent: string[] = [];
  const tool = made.semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    provider: smtp('shop.example.com'),
    verify: (_: Payment, { key }) => (sent.includes(key) ? landed(key) : notLanded()),
    run: (_: Payment, ctx): string => {
      sent.push(ctx.key);
      throw new Error('connection lost');
    },
  });
  await tool.try({ order: 'o-1' });
  await made.clock.advance(hour);
  expect(await tool({ order: 'o-1' })).toMatch(/^<[0-9a-f-]{36}@shop\.example\.com>$/);
  expect(sent).toHaveLength(1);
});
