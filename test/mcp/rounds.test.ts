// A tool that asks its caller, by the real SDK: its rounds are calls, and only the last one is kept.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { httpProxy } from './http-proxy.ts';
import { listening } from './http-servers.ts';
import { proxyPlace } from './proxy.ts';

test('2.5 no question is kept: it is asked again; what was done with its answer is not done again', async () => {
  const here = proxyPlace();
  const seen = { rounds: 0, sent: 0 };
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'shop', version: '2.0.0' });
    server.registerTool('send', { inputSchema: z.object({ to: z.string() }) }, ({ to }, ctx) => {
      seen.rounds += 1;
      if (ctx.mcpReq.inputResponses === undefined)
        return inputRequired({
          inputRequests: {
            ok: inputRequired.elicit({
              message: `to ${to}?`,
              requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } },
            }),
          },
        });
      seen.sent += 1;
      return { content: [{ type: 'text', text: `sent ${seen.sent}` }] };
    });
    return server;
  });
  const node = toNodeHandler(handler);
  const upstream = await listening((request, response) => void node(request as never, response));
  const proxy = await httpProxy(upstream, here.env);
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { sure: true } }));
  await client.connect(new StreamableHTTPClientTransport(new URL(proxy.url)));
  const one = await client.callTool({ name: 'send', arguments: { to: 'ann' } });
  const two = await client.callTool({ name: 'send', arguments: { to: 'ann' } });
  await client.close();
  expect(one.content).toEqual([{ type: 'text', text: 'sent 1' }]);
  // The question was asked again, because no question is kept; the answered round is the same intent.
  expect(seen).toEqual({ rounds: 3, sent: 1 });
  expect(two._meta?.['dev.semel/replayed']).toBe(true);
});
