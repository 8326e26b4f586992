// Verifiers with the official clients, and the types that a tool with a verifier has.

import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { verifyGitHubIssue, verifyStripeRefund } from '../../src/providers/verifiers/index.ts';
import { quick } from '../library/support.ts';
import { goodToken, startStandIn } from './stand-ins/stand-in.ts';
import { stripeCases } from './stand-ins/stripe.ts';

const contract = { name: 'refund', effect: 'irreversible', per: 'ever' } as const;

interface Refund {
  readonly charge: string;
  readonly reason: string;
}

function stripeAt(url: string, key: string) {
  const { hostname, port } = new URL(url);
  return new Stripe(key, {
    host: hostname,
    port: Number(port),
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  });
}

describe('the client of Stripe', () => {
  const shape = stripeCases[0]!.shape;

  test('finds a refund whose reply was lost, on the third page', async () => {
    const at = await startStandIn(shape, Date.now);
    const client = stripeAt(at.url, goodToken);
    const add = (semel: string) => at.add({ body: JSON.stringify({ charge: 'ch_1', metadata: { semel } }) });
    const semel = quick();
    const tool = semel.tool({
      ...contract,
      run: (_: Refund, ctx): { id: string } => {
        add(ctx.mark());
        throw new Error('socket hang up');
      },
      verify: verifyStripeRefund({ client, list: ({ charge }: Refund) => ({ charge }) }),
    });
    await tool.try({ charge: 'ch_1', reason: 'x' });
    for (let nth = 0; nth < 230; nth += 1) add(`semel-${nth}`);
    expect(await tool({ charge: 'ch_1', reason: 'x' })).toEqual({ id: 're_1' });
    expect(at.reads.every(({ query }) => query.get('charge') === 'ch_1')).toBe(true);
    await semel.close();
  });

  test('a noted id that is not there, a wrong key and a rate limit decide nothing, and are reported', async () => {
    const at = await startStandIn(shape, Date.now);
    const ask = (key: string, remoteRef?: string) =>
      verifyStripeRefund({ client: stripeAt(at.url, key) })(undefined, {
        key: 'k',
        keyFor: () => 'k',
        mark: () => 'semel-1',
        remoteRef,
        firstDispatchedAt: new Date(),
        lastDispatchedAt: new Date(),
        attempts: 1,
        signal: new AbortController().signal,
      });
    expect(await ask(goodToken)).toEqual({ verdict: 'notLanded', lagMs: 0 });
    expect(await ask(goodToken, 're_9')).toMatchObject({
      verdict: 'unsure',
      because: expect.stringMatching(/noted the id re_9/),
    });
    expect(await ask('wrong')).toMatchObject({ because: expect.stringMatching(/^Stripe answered 401 \(/) });
    at.answer({ status: 429, headers: { 'retry-after': '5' }, body: { error: { message: 'slow down' } } });
    expect(await ask(goodToken)).toMatchObject({ because: expect.stringMatching(/limits the rate.*in 5 s/) });
  });
});

test('the value is { id }, or what `value` makes; another one does not compile', () => {
  const semel = quick();
  const access = { token: 'x' };
  semel.tool({
    ...contract,
    name: 'a',
    run: (_: Refund) => ({ id: 're_1' }),
    verify: verifyStripeRefund(access),
  });
  semel.tool({
    ...contract,
    name: 'b',
    run: (_: Refund) => ({ id: 're_1', status: null as string | null }),
    // The item is of the client's own type.
    verify: verifyStripeRefund({
      client: stripeAt('http://localhost:1', 'x'),
      value: ({ id, status }) => ({ id, status }),
    }),
  });
  semel.tool({
    ...contract,
    name: 'c',
    run: (_: Refund) => 12,
    verify: verifyGitHubIssue({ ...access, repo: 'a/b', value: ({ number = 0 }) => number }),
  });
  semel.tool({
    ...contract,
    name: 'd',
    run: (_: Refund) => 're_1',
    // @ts-expect-error The tool returns a string, the verifier { id }.
    verify: verifyStripeRefund(access),
  });
  semel.tool({
    ...contract,
    name: 'e',
    run: (_: Refund) => ({ id: 're_1' }),
    // @ts-expect-error The args have no `order`.
    verify: verifyStripeRefund({ ...access, list: ({ order }: { order: string }) => ({ order }) }),
  });
});
