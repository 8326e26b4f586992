// A server that takes a key: what is in doubt is run again under the same one, as long as it is remembered.

import { createSemel } from 'semel';
import { guard } from 'semel/mcp';
import { describe, expect, test } from 'vitest';
import { atTheEnd, eventually } from '../cli/place.ts';
import { httpClient } from './clients.ts';
import { httpProxy, post } from './http-proxy.ts';
import { listening, readBody, startV1 } from './http-servers.ts';
import { errorOf, proxyPlace, soon } from './proxy.ts';

const terms = { effect: 'write-non-idempotent', window: '24h', ...soon } as const;

describe.each([
  ['in _meta', 'stripe', {}],
  ['as an argument', { name: 'stripe', argument: 'idempotency_key' }, { idempotency_key: 'the model’s own' }],
])('a key %s', (_where, provider, own) => {
  test('a proxy that is killed after the server acted: the next one runs the call again, and it lands once', async () => {
    const here = proxyPlace();
    const file = here.policy({ keyed: { ...terms, provider } });
    const ask = (id: number, args: object) =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"keyed","arguments":${JSON.stringify(args).replace('"BIG"', '12345678901234567890')}}}\n`;
    const first = here.client(['--policy', file]);
    first.write(ask(1, { n: 'BIG', ...own }));
    await eventually(() => here.effects().length > 0);
    first.child.kill('SIGKILL');
    await new Promise((resolve) => first.child.once('exit', resolve));
    here.open();

    const next = here.client(['--policy', file]);
    const reworded = Object.fromEntries(Object.keys(own).map((name) => [name, 'another one']));
    next.write(ask(2, { n: 'BIG', ...reworded }));
    expect((await next.answer(2)).result?.content?.[0]?.text).toBe('as before');
    expect(here.effects()).toHaveLength(1);
    const keys = here.lines('keys');
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), keys[0]]);
    // Nothing else changes by it: digits stay as they were.
    expect(here.received().match(/"n":12345678901234567890/g)).toHaveLength(2);
  });
});

test('without a provider nothing is sent along, and the call is held', async () => {
  const here = proxyPlace();
  const client = here.client(['--policy', here.policy({ die: terms })]);
  void client.call('die', { n: 1 }).catch(() => undefined);
  await client.ended;
  expect(here.received()).not.toContain('idempotency-key');
  const again = await here.client(['--policy', here.policy({ die: terms })]).call('die', { n: 1 });
  expect(errorOf(again)?.code).toBe('IN_DOUBT');
  expect(here.effects()).toHaveLength(1);
});

test('what is sent again under the key is worded as it was first, digits included', async () => {
  const seen: string[] = [];
  const upstream = await listening(async (request, response) => {
    const body = await readBody(request);
    const { id } = JSON.parse(body);
    seen.push(/"arguments":(\{.*?\})/.exec(body)?.[1] ?? '');
    if (seen.length === 1) return void request.socket.destroy();
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }));
  });
  const here = proxyPlace();
  const provider = { name: 'the shop', window: '48h' };
  const file = here.policy({ pay: { ...terms, identity: ['order'], provider } });
  const { url } = await httpProxy(upstream, here.env, ['--policy', file]);
  const ask = (args: string) =>
    post(url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":${args}}}`);
  await ask('{"order":1,"cents":12345678901234567890,"why":"«1»"}');
  await ask('{"order":1,"cents":12345678901234567899,"why":"another word"}');
  expect(seen).toEqual(['{"order":1,"cents":12345678901234567890,"why":"«1»"}', seen[0]]);
});

test('over HTTP: after a lost reply, the request is sent again under the same key', async () => {
  const seen: unknown[] = [];
  const upstream = await listening(async (request, response) => {
    const { id, params } = JSON.parse(await readBody(request));
    seen.push(params?._meta?.['dev.semel/idempotency-key']);
    if (seen.length === 1) return void request.socket.destroy();
    const result = { content: [{ type: 'text', text: 'as before' }] };
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  const here = proxyPlace();
  const file = here.policy({ pay: { ...terms, provider: { name: 'the shop', window: '48h' } } });
  const { call } = await httpProxy(upstream, here.env, ['--policy', file]);
  expect(errorOf(await call('pay', { order: 1 }))?.code).toBe('IN_DOUBT');
  expect((await call('pay', { order: 1 })).result?.content?.[0]?.text).toBe('as before');
  expect(seen).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), seen[0]]);
});

test('a server with `guard` of semel/mcp finds the key: what it has done is not done again', async () => {
  const here = proxyPlace();
  const semel = createSemel({ store: `sqlite:${here.path('inner.db')}`, namespace: 'shop' });
  atTheEnd(() => void semel.close());
  const wrap = (name: string, handler: (...given: never[]) => unknown) =>
    guard(semel, name, { effect: 'write-non-idempotent', per: 'conversation' }, handler as never) as never;
  const shop = await startV1({ effects: here.path('effects'), wrap }, true);
  let isCut = false;
  // Between the two: the first answer to a call is lost on its way.
  const cutting = await listening(async (request, response) => {
    const body = await readBody(request);
    const { host: _, connection: _c, 'content-length': _l, ...headers } = request.headers;
    const answer = await fetch(shop, { method: 'POST', headers: headers as never, body });
    const text = await answer.text();
    if (body.includes('tools/call') && !isCut) {
      isCut = true;
      return void request.socket.destroy();
    }
    const type = answer.headers.get('content-type') ?? 'application/json';
    const session = answer.headers.get('mcp-session-id');
    response.writeHead(answer.status, {
      'content-type': type,
      ...(session ? { 'mcp-session-id': session } : {}),
    });
    response.end(text);
  });
  const file = here.policy({ send: { ...terms, provider: { name: 'the shop', window: '24h' } } });
  const proxy = await httpProxy(cutting, here.env, ['--policy', file]);
  const client = await httpClient('v1', proxy.url);
  const args = { to: 'ann' };
  expect((await client.call('send', args)).isError).toBe(true);
  expect((await client.call('send', args)).structuredContent).toEqual({ to: 'ann', n: 1 });
  expect(here.effects()).toHaveLength(1);
});
