// A server that breaks the stream of an answer off and goes on with it later, as the protocol lets it: the proxy takes it up.

import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  type EventStore,
  StreamableHTTPServerTransport,
} from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { eventually } from '../cli/place.ts';
import { httpClient } from './clients.ts';
import { httpProxy } from './http-proxy.ts';
import { listening } from './http-servers.ts';
import { errorOf, isKept, isQuestion, proxyPlace } from './proxy.ts';

function eventStore(): EventStore {
  const events: { readonly id: string; readonly stream: string; readonly message: JSONRPCMessage }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = `${stream}_${events.length}`;
      events.push({ id, stream, message });
      return id;
    },
    async replayEventsAfter(last, { send }) {
      const at = events.findIndex(({ id }) => id === last);
      const { stream = '' } = events[at] ?? {};
      for (const { id, message } of events.slice(at + 1).filter((each) => each.stream === stream))
        if ('jsonrpc' in message) await send(id, message);
      return stream;
    },
  };
}

test('by the real SDK: a tool that lets its client poll is heard out, and lands once', async () => {
  const here = proxyPlace();
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  let sent = 0;
  /** The proxy has taken the stream up again. */
  const resumed = Promise.withResolvers<void>();
  const upstream = await listening(async (request, response) => {
    if (request.method === 'GET' && request.headers['last-event-id'] !== undefined) resumed.resolve();
    const known = sessions.get(String(request.headers['mcp-session-id']));
    if (known !== undefined) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: eventStore(),
      retryInterval: 50,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const server = new McpServer({ name: 'slow', version: '1.0.0' });
    server.registerTool('send', { inputSchema: { to: z.string() } }, async ({ to }, extra) => {
      extra.closeSSEStream?.();
      await resumed.promise;
      sent += 1;
      return { content: [{ type: 'text', text: `sent to ${to}, ${sent}` }] };
    });
    await server.connect(transport as never);
    return transport.handleRequest(request, response);
  });
  const proxy = await httpProxy(upstream, here.env);
  const client = await httpClient('v1', proxy.url);
  const one = await client.call('send', { to: 'ann' });
  expect(one).toMatchObject({ content: [{ text: 'sent to ann, 1' }] });
  expect(one.isError).not.toBe(true);
  const two = await client.call('send', { to: 'ann' });
  expect(isQuestion(two)).toBe(true);
  expect(sent).toBe(1);
});

/** A server by hand: it answers a call with this much of a stream, and a GET as the test says. */
async function halting(first: string, resumed: (response: ServerResponse, last: string) => void) {
  const asked = { calls: 0, resumed: 0 };
  const url = await listening((request, response) => {
    if (request.method === 'GET') {
      asked.resumed += 1;
      return resumed(response, String(request.headers['last-event-id']));
    }
    asked.calls += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(first);
  });
  const here = proxyPlace();
  const file = here.policy({ send: { effect: 'write-non-idempotent' } });
  return { asked, ...(await httpProxy(url, here.env, ['--policy', file, '--grace', '1s'])) };
}

const answer = 'data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}\n\n';

test('the stream is requested from its last event on, until the server is back', async () => {
  const { call, asked } = await halting('id: e7\nretry: 20\ndata:\n\n', (response, last) => {
    if (asked.resumed === 1) return void response.writeHead(503).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(last === 'e7' ? answer : '');
  });
  expect((await call('send', { to: 'ann' }, { id: 1 })).result?.content?.[0]?.text).toBe('done');
  expect(isKept(await call('send', { to: 'ann' }))).toBe(true);
  expect(asked).toEqual({ calls: 1, resumed: 2 });
});

test('an id is sent back as it came, whatever its letters', async () => {
  const { call } = await halting('id: é→7\nretry: 20\ndata:\n\n', (response, last) => {
    const isSame = Buffer.from(last, 'latin1').toString() === 'é→7';
    response.writeHead(isSame ? 200 : 400, { 'content-type': 'text/event-stream' }).end(answer);
  });
  expect((await call('send', { to: 'ann' }, { id: 1 })).result?.content?.[0]?.text).toBe('done');
});

test('a server that asks for no pause is still polled with one', async () => {
  const askedAt: number[] = [];
  const { call } = await halting('id: e7\nretry: 0\ndata:\n\n', (response) => {
    askedAt.push(performance.now());
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(askedAt.length > 5 ? answer : '');
  });
  expect((await call('send', { to: 'ann' }, { id: 1 })).result?.content?.[0]?.text).toBe('done');
  const pauses = askedAt.slice(1).map((at, n) => at - (askedAt[n] as number));
  // The pause lies between two requests, so that a busy machine can only make it longer.
  expect(Math.min(...pauses)).toBeGreaterThan(90);
});

test('a server that restarted elsewhere leaves the call in doubt, even if it ignored the request to resume', async () => {
  const { call } = await halting('id: e7\nretry: 20\ndata:\n\n', (response) => {
    response.writeHead(307, { location: '/elsewhere' }).end();
  });
  expect(errorOf(await call('send', { to: 'ann' }, { id: 1 }))?.code).toBe('IN_DOUBT');
});

test('an event that is too long is not fetched again and again', async () => {
  const { call, asked } = await halting('id: e7\nretry: 20\ndata:\n\n', (response) => {
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(Buffer.alloc(65 * 1024 * 1024, 'x'));
  });
  expect(errorOf(await call('send', { to: 'ann' }, { id: 1 }))?.code).toBe('IN_DOUBT');
  expect(asked.resumed).toBe(1);
});

test('a stream that is left open does not keep the proxy from ending', async () => {
  const { asked, child, call } = await halting('id: e7\nretry: 20\ndata:\n\n', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
  });
  void call('send', { to: 'ann' }, { id: 1 }).catch(() => undefined);
  await eventually(() => asked.resumed > 0);
  child.kill('SIGTERM');
  await eventually(() => child.exitCode !== null, 'the end');
  expect(child.exitCode).toBe(0);
});

test.each([
  ['an id that no header can hold', 'id: a\u0001\nretry: 20\ndata:\n\n', 0],
  ['a stream without ids', 'data: {"jsonrpc":"2.0","method":"x"}\n\n', 0],
  ['a server that does not go on', 'id: e7\nretry: 20\ndata:\n\n', 1],
])('%s leaves the call in doubt', async (_what, first, resumed) => {
  const { call, asked } = await halting(first, (response) => void response.writeHead(404).end());
  expect(errorOf(await call('send', { to: 'ann' }, { id: 1 }))?.code).toBe('IN_DOUBT');
  expect(errorOf(await call('send', { to: 'ann' }))?.code).toBe('IN_DOUBT');
  expect(asked).toEqual({ calls: 1, resumed });
});
