// The clients and servers of both SDKs over HTTP, with the proxy between them.

import { describe, expect, test } from 'vitest';
import { eventually } from '../cli/place.ts';
import { type ClientName, httpClient } from './clients.ts';
import { httpProxy } from './http-proxy.ts';
import { startV1, startV2 } from './http-servers.ts';
import { isKept, isQuestion, proxyPlace } from './proxy.ts';

const replayed = 'dev.semel/replayed';

const pairs: [ClientName, string, (effects: string) => Promise<string>][] = [
  ['v1', 'v1, sessions and events', (effects) => startV1({ effects })],
  ['v1', 'v1, sessions and JSON', (effects) => startV1({ effects }, true)],
  ['v1', 'v2', (effects) => startV2({ effects })],
  ['v2 legacy', 'v1, sessions and events', (effects) => startV1({ effects })],
  ['v2 legacy', 'v2', (effects) => startV2({ effects })],
  ['v2 modern', 'v2', (effects) => startV2({ effects })],
];

describe.each(pairs)('client %s, server %s', (client, _, start) => {
  test('a write lands once, for two clients and after a restart of the proxy', async () => {
    const here = proxyPlace();
    const upstream = await start(here.path('effects'));
    const proxy = await httpProxy(upstream, here.env);
    const one = await httpClient(client, proxy.url);
    expect(await one.tools()).toContain('send');
    const first = await one.call('send', { to: 'ann', body: 'hi' });
    expect(first.content).toEqual([{ type: 'text', text: 'send 1' }]);
    await one.close();

    const two = await httpClient(client, proxy.url);
    const second = await two.call('send', { body: 'hi', to: 'ann' });
    expect(isQuestion(second)).toBe(true);
    expect(second.structuredContent).toEqual(first.structuredContent);
    for (const name of ['look', 'put', 'look', 'put'])
      expect((await two.call(name, { to: 'x' }))._meta?.[replayed]).toBeUndefined();
    await two.call('send', { to: 'bob' });
    proxy.child.kill('SIGTERM');
    await eventually(() => proxy.child.exitCode === 0, 'the end');

    const next = await httpProxy(upstream, here.env);
    const three = await httpClient(client, next.url);
    expect(isQuestion(await three.call('send', { to: 'bob' }))).toBe(true);
    expect(isQuestion(await three.call('send', { to: 'ann', body: 'hi' }))).toBe(true);
    expect(here.effects().filter((line) => line.startsWith('send'))).toEqual(['send ann hi', 'send bob ']);
    expect(here.effects()).toHaveLength(6);
  });

  test('a client that hangs up in the middle of a call does not lose its record', async () => {
    const here = proxyPlace();
    const proxy = await httpProxy(await start(here.path('effects')), here.env);
    const one = await httpClient(client, proxy.url);
    const lost = one.call('slow', { to: 'ann' }).catch(() => 'lost');
    await eventually(() => here.effects().length > 0);
    await one.close();
    await lost;
    const two = await httpClient(client, proxy.url);
    expect(isKept({ result: await two.call('slow', { to: 'ann' }) })).toBe(true);
    expect(here.effects()).toHaveLength(1);
  });
});
