// What is known of MCP and its clients, one test or more for each fact, numbered as in our notes: 2.1 identity, 2.2 keys,
// 2.3 the proxy and its rules, 2.4 handlers, 2.5 questions to the user, 2.6 duplicates that clients have made, 2.7 tests
// without a network.

import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { createSemel } from 'semel';
import { guard } from 'semel/mcp';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { eventually } from '../cli/place.ts';
import { httpClient, stdioClient } from './clients.ts';
import { httpProxy, post } from './http-proxy.ts';
import { listening, startV1, startV2 } from './http-servers.ts';
import { errorOf, isKept, proxyPlace, serverAt, soon } from './proxy.ts';

const info = { name: 'test', version: '1.0.0' };

describe('2.1 there is no stable identity in the protocol', () => {
  test('2.1 a retry has a new id and a new progress token, and is still the same call', async () => {
    const here = proxyPlace();
    const client = here.client();
    for (const progressToken of [1, 2]) await client.call('act', { n: 1 }, { _meta: { progressToken } });
    expect(here.effects()).toHaveLength(1);
  });

  test('2.1 traceparent is never a key: neither does it part calls, nor join them', async () => {
    const here = proxyPlace();
    const client = here.client();
    const trace = (id: string) => ({ _meta: { traceparent: `00-${id.repeat(32)}-${id.repeat(16)}-01` } });
    await client.call('act', { n: 1 }, trace('a'));
    expect(isKept(await client.call('act', { n: 1 }, trace('b')))).toBe(true);
    expect(isKept(await client.call('act', { n: 2 }, trace('a')))).toBe(false);
  });

  test('2.1 a session lasts no longer than its connection: another one asks for the same', async () => {
    const here = proxyPlace();
    const proxy = await httpProxy(await startV1({ effects: here.path('effects') }), here.env);
    for (const _ of [1, 2]) await (await httpClient('v1', proxy.url)).call('send', { to: 'ann' });
    expect(here.effects()).toHaveLength(1);
  });
});

test('2.2 params.idempotencyKey is read first, then _meta; keys in the arguments are only arguments', async () => {
  const here = proxyPlace();
  const client = here.client();
  const both = (own: string, meta: string) => ({
    idempotencyKey: own,
    _meta: { 'dev.semel/idempotency-key': meta },
  });
  await client.call('act', { n: 1 }, both('a', 'b'));
  expect(isKept(await client.call('act', { n: 1 }, both('a', 'c')))).toBe(true);
  expect(isKept(await client.call('act', { n: 1 }, both('d', 'b')))).toBe(false);
  const meta = { idempotency_key: 'x' };
  await client.call('act', { n: 5, meta });
  expect(isKept(await client.call('act', { n: 6, meta }))).toBe(false);
});

describe('2.3 a proxy that is not noticed', () => {
  test('2.3 closing a stream does not cancel the call, if the protocol says so', async () => {
    const here = proxyPlace();
    const proxy = await httpProxy(await startV2({ effects: here.path('effects') }), here.env);
    const client = await httpClient('v2 modern', proxy.url);
    void client.call('slow', { to: 'ann' }).catch(() => undefined);
    await eventually(() => here.effects().length > 0);
    await client.close();
    const again = await (await httpClient('v2 modern', proxy.url)).call('slow', { to: 'ann' });
    expect(again._meta?.['dev.semel/replayed']).toBe(true);
  });

  test('2.3 a replay has the requested id, and no progress', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', { n: 1 });
    const before = client.stdout().length;
    const again = await client.call('act', { n: 1 }, { _meta: { progressToken: 9 } });
    expect(again.id).toBe(1002);
    expect(client.stdout().slice(before).trim().split('\n')).toHaveLength(1);
  });

  test('2.3 hints are learnt from the list that passes by; the proxy then asks for none of its own', async () => {
    const here = proxyPlace();
    const client = here.client();
    client.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
    await client.answer(1);
    for (const _ of [1, 2]) await client.call('peek');
    expect(here.lines('listed')).toHaveLength(1);
    expect(here.effects()).toHaveLength(2);
  });

  test('2.3 after a 401 the client sends the call again with a token: it runs once', async () => {
    const here = proxyPlace();
    let ran = 0;
    const upstream = await listening(async (request, response) => {
      if (request.headers.authorization === undefined)
        return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      ran += 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}');
    });
    const policy = here.policy({ send: 'write-non-idempotent' });
    const proxy = await httpProxy(upstream, here.env, ['--policy', policy]);
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send"}}';
    expect(await post(proxy.url, call)).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Bearer' },
    });
    for (const _ of [1, 2])
      expect((await post(proxy.url, call, { authorization: 'Bearer t' })).status).toBe(200);
    expect(ran).toBe(1);
  });

  test('2.3 only stdout carries JSON: what semel has to say is on stderr', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', { n: 1 });
    for (const line of client.stdout().trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    expect(client.stderr()).toContain('semel: ');
  });

  test('2.3 the probe of a new client is answered by the server itself', async () => {
    const here = proxyPlace();
    const command = here.command([], [process.execPath, serverAt('v2.ts'), here.path('effects')]);
    const client = await stdioClient('v2 modern', command, here.env);
    await client.call('send', { to: 'ann' });
    expect(here.effects()).toHaveLength(1);
  });
});

test('2.4 with an output schema, an error of semel is a valid result: the client accepts it', async () => {
  const here = proxyPlace();
  const policy = here.policy({ send: { effect: 'irreversible', per: 'turn' } });
  const command = here.command(
    ['--policy', policy],
    [process.execPath, serverAt('v1.ts'), here.path('effects')],
  );
  const client = await stdioClient('v1', command, here.env);
  await client.tools();
  const refused = await client.call('send', { to: 'ann' });
  expect(refused.isError).toBe(true);
  expect(JSON.parse(refused.content[0]?.text as string).code).toBe('NO_IDENTITY');
});

test('2.5 a handler may ask the user while it holds its claim, longer than the lease; it lands once', async () => {
  await using semel = createSemel({ store: 'memory:', onWarning: () => undefined });
  let ran = 0;
  const server = new McpServerV1(info);
  server.registerTool(
    'send',
    { inputSchema: { to: z.string() } },
    guard(semel, 'send', { effect: 'write-non-idempotent', ...soon, lease: '1s' }, async ({ to }) => {
      const { action } = await server.server.elicitInput({
        message: `to ${to}?`,
        requestedSchema: { type: 'object', properties: {} },
      });
      ran += 1;
      return { content: [{ type: 'text', text: action }] };
    }),
  );
  const client = new ClientV1(info, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => {
    // Until its claim was renewed: a person takes longer than a lease.
    for (let [left, renewals] = [Number.POSITIVE_INFINITY, 0]; renewals < 2; ) {
      const [record] = (await semel.records.list({ status: 'running', contract: 'send' })).items;
      const now = record?.leaseLeftMs ?? 0;
      if (now > left) renewals += 1;
      left = now;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return { action: 'accept', content: {} };
  });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  const call = () => client.callTool({ name: 'send', arguments: { to: 'ann' } });
  await Promise.all([call(), call()]);
  await call();
  expect(ran).toBe(1);
});

describe('2.6 duplicates that clients have made', () => {
  test('2.6 every call is dispatched twice, a few milliseconds apart, with different ids of the model', async () => {
    const here = proxyPlace();
    const client = here.client();
    const by = (id: string) => ({ _meta: { 'claudecode/toolUseId': id } });
    const first = client.call('act-then-wait', { n: 1 }, by('toolu_1'));
    const second = client.call('act-then-wait', { n: 1 }, by('toolu_2'));
    await eventually(() => here.effects().length > 0);
    here.open();
    await Promise.all([first, second]);
    expect(here.effects()).toHaveLength(1);
  });

  test('2.6 the client reconnects after the server died, and calls again: held, not repeated', async () => {
    const here = proxyPlace();
    const one = here.client();
    await one.call('die', { n: 1 });
    await one.ended;
    expect(errorOf(await here.client().call('die', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });

  test('2.6 the session is lost (404), the client opens another one and calls again: it runs once', async () => {
    const here = proxyPlace();
    const policy = here.policy({ send: 'write-non-idempotent' });
    const effects = here.path('effects');
    const upstream = await startV1({ effects });
    const proxy = await httpProxy(upstream, here.env, ['--policy', policy]);
    const call =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send","arguments":{"to":"ann"}}}';
    // The server does not know this session, and has not run it.
    const lost = await post(proxy.url, call, { 'mcp-session-id': 'gone' });
    expect(lost.status).toBeGreaterThanOrEqual(400);
    for (const _ of [1, 2]) await (await httpClient('v1', proxy.url)).call('send', { to: 'ann' });
    expect(here.effects()).toHaveLength(1);
  });

  test('2.6 the client gives up after its own timeout and calls again: it gets the answer of the first', async () => {
    const here = proxyPlace();
    const command = here.command([], [process.execPath, serverAt('v1.ts'), here.path('effects')]);
    const [program, ...args] = command as [string, ...string[]];
    const client = new ClientV1(info);
    await client.connect(
      new StdioClientTransport({ command: program, args, env: here.env, stderr: 'ignore' }),
    );
    const slow = (options: object) =>
      client.callTool({ name: 'slow', arguments: { to: 'ann' } }, undefined, options);
    // As at its timeout, and at a moment when the call has reached the server.
    const timeout = new AbortController();
    const lost = expect(slow({ signal: timeout.signal })).rejects.toThrow();
    await eventually(() => here.effects().length === 1);
    timeout.abort();
    await lost;
    const answer = await slow({});
    expect(answer._meta?.['dev.semel/replayed']).toBe(true);
    expect(here.effects()).toHaveLength(1);
    await client.close();
  });
});

test('2.7 all of it runs without a network: in memory', async () => {
  await using semel = createSemel({ store: 'memory:', onWarning: () => undefined });
  const server = new McpServerV1(info);
  let ran = 0;
  server.registerTool(
    'tick',
    {},
    guard(semel, 'tick', 'write-non-idempotent', () => {
      ran += 1;
      return { content: [] };
    }),
  );
  const client = new ClientV1(info);
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  for (const _ of [1, 2]) await client.callTool({ name: 'tick' });
  expect(ran).toBe(1);
});
