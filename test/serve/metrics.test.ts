// GET /metrics of the server: for any token, of its own namespaces only.

import { expect, onTestFinished, test } from 'vitest';
import { digestToken, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import { readExposition } from '../signals/strict-exposition.ts';

const tokenOf = (name: string) => `token-of-${name}-which-is-long-enough-to-be-one`;
const entry = (name: string, role: 'read' | 'execute', namespace: string) => ({
  ...{ name, role, namespace },
  sha256: digestToken(tokenOf(name)),
});

async function open() {
  const seen: string[] = [];
  const server = await startServer({
    store: memoryStore(),
    policies: {
      version: 1,
      tools: { refund: { effect: 'irreversible', per: 'ever', identity: ['payment'] } },
    },
    mayDefine: false,
    tokens: [
      entry('scraper', 'read', '*'),
      entry('all', 'execute', '*'),
      entry('rest', 'read', '(other)'),
      entry('shop', 'execute', 'shop'),
      entry('other', 'execute', 'other'),
    ],
    version: '1.2.3',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
    onRequest: ({ path }) => void seen.push(path),
  });
  onTestFinished(() => server.close(0));
  const headers = (name: string) => ({ authorization: `Bearer ${tokenOf(name)}` });
  const post = async (name: string, path: string, body: object, more: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}/v1/${path}`, {
      method: 'POST',
      headers: { ...headers(name), 'content-type': 'application/json', ...more },
      body: JSON.stringify(body),
    });
    return (await response.json()) as { readonly attempt: string };
  };
  const scrape = async (name: string) => {
    const response = await fetch(`${server.url}/metrics`, { headers: headers(name) });
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    return readExposition(await response.text());
  };
  return { server, post, scrape, seen };
}

test('a token for all namespaces sees every call and doubt, a token for one only its own', async () => {
  const { server, post, scrape, seen } = await open();
  for (const name of ['shop', 'other']) {
    const call = { tool: 'refund', args: { payment: 'pay_1' } };
    const { attempt } = await post(name, 'begin', call);
    await post(name, 'settle', { attempt, outcome: 'succeeded', value: 1 });
    await post(name, 'begin', call);
    const lost = await post(name, 'begin', { tool: 'refund', args: { payment: 'pay_2' } });
    await post(name, 'settle', { attempt: lost.attempt, outcome: 'unknown' });
    await post(name, 'begin', { tool: 'refund', args: { payment: 'pay_3' } });
  }
  const all = await scrape('scraper');
  for (const namespace of ['shop', 'other']) {
    const of = { namespace, tool: 'refund' };
    expect(all.find('semel_calls_total', { ...of, outcome: 'executed' })).toBe(1);
    expect(all.find('semel_calls_total', { ...of, outcome: 'replayed' })).toBe(1);
    expect(all.find('semel_in_doubt', of)).toBe(1);
    expect(all.find('semel_in_flight', of)).toBe(1);
  }
  expect(all.find('semel_build_info', { version: '1.2.3' })).toBe(1);
  expect(all.find('semel_store_duration_seconds_count', { op: 'claim' })).toBeGreaterThan(0);
  const own = await scrape('shop');
  expect(own.find('semel_in_doubt')).toBe(1);
  expect(own.series.filter(({ labels }) => labels.namespace === 'other')).toEqual([]);
  expect(seen).toContain('/metrics');
  expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
});

test('what is summed up of many namespaces is for no token of one', async () => {
  const { post, scrape } = await open();
  for (let n = 0; n < 60; n += 1)
    await post(
      'all',
      'begin',
      { tool: 'refund', args: { payment: 'pay_1' } },
      { 'semel-namespace': `shop${n}` },
    );
  const all = await scrape('scraper');
  expect(all.find('semel_in_flight', { namespace: '(other)', tool: 'other' })).toBe(10);
  for (const name of ['other', 'rest']) {
    const { series } = await scrape(name);
    expect(
      series.filter(({ labels }) => 'namespace' in labels),
      name,
    ).toEqual([]);
  }
});
