// A request through ctx.fetch whose idempotency key is not semel's: nobody may re-run it on the provider's word.

import { randomUUID } from 'node:crypto';
import { type AttemptContext, notLanded, type Provider, unsure, type Verification } from 'semel';
import { describe, expect, test } from 'vitest';
import { type Rig, rest, rig, target } from './support.ts';

/** Honours keys, does its work, and loses every reply. */
async function payments() {
  const effects = new Set<string>();
  const server = await target((request, _response, body) => {
    const inBody = /"idempotency_key":"?([^",}]*)/.exec(body)?.[1];
    const inQuery = new URL(request.url ?? '/', 'http://x').searchParams.get('requestid');
    effects.add(String(request.headers['idempotency-key'] ?? inBody ?? inQuery ?? randomUUID()));
    request.socket.destroy();
  });
  return { ...server, effects };
}

type Payments = Awaited<ReturnType<typeof payments>>;
type Send = (ctx: AttemptContext, url: string) => Promise<unknown>;

const post = (headers: Record<string, string>, body = '{}') => ({ method: 'POST', body, headers });

/** As an SDK does that makes up a key for every call. */
const withOwnHeader: Send = (ctx, url) => ctx.fetch(url, post({ 'Idempotency-Key': randomUUID() }));
const withOwnField: Send = (ctx, url) =>
  ctx.fetch(url, post({}, JSON.stringify({ idempotency_key: randomUUID() })));
const withOwnParameter: Send = (ctx, url) => ctx.fetch(`${url}/?requestid=${randomUUID()}`, post({}));
const withoutAny: Send = (ctx, url) => ctx.fetch(url, post({}));

const places: [string, Partial<Provider>, Send][] = [
  ['a header', {}, withOwnHeader],
  ['a header of the provider’s own', { header: 'idempotency-key' }, withOwnHeader],
  ['a field of the body', { bodyField: 'idempotency_key' }, withOwnField],
  ['a parameter of the query', { queryField: 'requestid' }, withOwnParameter],
  ['nowhere, although the tool was to send it', { sentBy: 'tool' }, withoutAny],
];

function refund(semel: Rig['semel'], { host, url }: Payments, own: Partial<Provider>, send: Send, more = {}) {
  return semel.tool({
    name: 'refund',
    effect: 'irreversible',
    per: 'ever',
    window: '24h',
    provider: { name: 'pay', window: '48h', hosts: [host], ...own },
    ...more,
    run: async (_: { order: number }, ctx) => void (await send(ctx, url)),
  });
}

describe.each(places)('a key that is not ours in %s', (_where, own, send) => {
  test('is not trusted: five calls refund once, and a warning says why', async () => {
    const pay = await payments();
    const { semel, warnings } = rig();
    const tool = refund(semel, pay, own, send);
    for (let call = 1; call <= 5; call += 1) {
      const result = await tool.try({ order: 1 });
      expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT', retriable: false } });
    }
    expect(pay.effects.size).toBe(1);
    expect(warnings.filter((text) => text.includes("does not carry semel's key"))).toHaveLength(1);
  });

  test('is not trusted by the tries of one call either', async () => {
    const pay = await payments();
    const { semel, clock } = rig();
    const retry = { tries: 3, backoff: '1s' } as const;
    const tool = refund(semel, pay, own, send, { retry });
    await clock.until(tool.try({ order: 1 }));
    expect(pay.effects.size).toBe(1);
  });

  test.each(['claim', 'explicit'] as const)(
    'is on record before the request leaves: a process that dies meanwhile is not re-run (line: %s)',
    async (dispatch) => {
      const pay = await payments();
      const made = rig();
      made.store.before = (method) => (method === 'settle' ? new Promise(() => undefined) : undefined);
      const dying = refund(made.semel, pay, own, send, { dispatch });
      void dying.try({ order: 1 });
      while (pay.effects.size === 0) await new Promise((resolve) => setImmediate(resolve));
      await rest();
      made.store.before = undefined;
      made.clock.jump(61_000);
      const next = refund(made.another(), pay, own, send, { dispatch });
      expect(await next.try({ order: 1 })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
      expect(pay.effects.size).toBe(1);
    },
  );
});

test('what may have landed under our key is not sent again under another', async () => {
  const pay = await payments();
  const made = rig();
  const ours = refund(made.semel, pay, {}, withoutAny);
  expect(await ours.try({ order: 1 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
  const foreign = refund(made.another(), pay, {}, withOwnHeader);
  expect(await foreign.try({ order: 1 })).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(pay.effects.size).toBe(1);
  expect(await ours.try({ order: 1 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
  expect(pay.effects.size).toBe(1);
});

test('nor by a later try of the same call', async () => {
  const pay = await payments();
  const { semel, clock } = rig();
  let tries = 0;
  const send: Send = (ctx, url) => (++tries === 1 ? withoutAny(ctx, url) : withOwnHeader(ctx, url));
  const tool = refund(semel, pay, {}, send, { retry: { tries: 3, backoff: '1s' } });
  await clock.until(tool.try({ order: 1 }));
  expect(tries).toBeGreaterThan(1);
  expect(pay.effects.size).toBe(1);
});

test('a key that the tool read from ctx is ours, and allows a re-run', async () => {
  const pay = await payments();
  const { semel, warnings } = rig();
  const tool = refund(semel, pay, {}, (ctx, url) =>
    ctx.fetch(url, post({ 'Idempotency-Key': ctx.keyFor('refund') })),
  );
  for (let call = 1; call <= 3; call += 1)
    expect(await tool.try({ order: 1 })).toMatchObject({ error: { code: 'IN_DOUBT', retriable: true } });
  expect(pay.requests).toHaveLength(3);
  expect(pay.effects.size).toBe(1);
  expect(warnings.join()).not.toContain("semel's key");
});

test('a key that only `verify` has read was not sent by the run after it', async () => {
  const pay = await payments();
  const made = rig();
  let answer: Verification = notLanded();
  const own = { sentBy: 'tool' } as const;
  const more = { verify: () => answer };
  const tool = refund(made.semel, pay, own, withoutAny, more);
  expect(await tool.try({ order: 1 })).toMatchObject({ error: { evidence: { withoutKey: true } } });
  made.clock.jump(10 * 60_000);
  expect(await tool.try({ order: 1 })).toMatchObject({ error: { evidence: { withoutKey: true } } });
  expect(pay.requests).toHaveLength(2);
  answer = unsure();
  expect(await tool.try({ order: 1 })).toMatchObject({ error: { evidence: { withoutKey: true } } });
  expect(pay.requests).toHaveLength(2);
});

test('an SDK may repeat a request by itself under the same key, and not under a fresh one', async () => {
  const twice = async (keys: readonly string[], own: Partial<Provider> | undefined) => {
    const pay = await payments();
    const { semel } = rig();
    const send: Send = async (ctx, url) => {
      for (const key of keys) await ctx.fetch(url, post({ 'Idempotency-Key': key })).catch(() => undefined);
      throw new Error('the SDK gave up');
    };
    const tool = refund(semel, pay, own ?? {}, send, own === undefined ? { provider: undefined } : {});
    await tool.try({ order: 1 });
    return pay.requests.length;
  };
  for (const own of [{}, undefined]) {
    expect(await twice(['a', 'a'], own)).toBe(2);
    expect(await twice(['a', 'b'], own)).toBe(1);
  }
});
