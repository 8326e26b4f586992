// A tool that asks its caller, and one that goes on as a task, by the real SDKs. The rounds of the first are calls, and only
// the last one is kept; of the second the handle is.

import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { httpProxy } from './http-proxy.ts';
import { listening } from './http-servers.ts';
import { isQuestion, proxyPlace } from './proxy.ts';

test('2.5 questions are not stored and are asked again; what was done with the answer is not done again', async () => {
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
  expect(isQuestion(two)).toBe(true);
});

test('2.5 a task of the real SDK is begun once: calls at the same time hear of its end, a later one is asked about', async () => {
  const here = proxyPlace();
  const taskStore = new InMemoryTaskStore();
  let deployed = 0;
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const upstream = await listening(async (request, response) => {
    const known = sessions.get(String(request.headers['mcp-session-id']));
    if (known !== undefined) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const capabilities = { tasks: { requests: { tools: { call: {} } } } };
    const server = new McpServerV1({ name: 'ops', version: '1.0.0' }, { capabilities, taskStore });
    server.experimental.tasks.registerToolTask(
      'deploy',
      { inputSchema: { app: z.string() }, execution: { taskSupport: 'required' } },
      {
        async createTask({ app }, { taskStore: tasks }) {
          const task = await tasks.createTask({ ttl: 60_000, pollInterval: 20 });
          deployed += 1;
          const result = { content: [{ type: 'text' as const, text: `${app} is up ${deployed}` }] };
          setTimeout(() => void tasks.storeTaskResult(task.taskId, 'completed', result), 50);
          return { task };
        },
        getTask: async (_args, { taskStore: tasks, taskId }) => tasks.getTask(taskId),
        getTaskResult: async (_args, { taskStore: tasks, taskId }) =>
          (await tasks.getTaskResult(taskId)) as CallToolResult,
      },
    );
    await server.connect(transport as never);
    return transport.handleRequest(request, response);
  });
  const proxy = await httpProxy(upstream, here.env);
  const client = new ClientV1({ name: 'test', version: '1.0.0' });
  await client.connect(new HttpV1(new URL(proxy.url)) as never);
  await client.listTools();
  const deploy = async (app = 'shop') => {
    const seen: unknown[] = [];
    const call = { name: 'deploy', arguments: { app } };
    for await (const each of client.experimental.tasks.callToolStream(call))
      if (each.type === 'result') seen.push(each.result.content);
      else if (each.type === 'error') throw each.error;
    return seen;
  };
  const once = [[{ type: 'text', text: 'shop is up 1' }]];
  const other = [[{ type: 'text', text: 'other is up 2' }]];
  expect(await deploy()).toEqual(once);
  await expect(deploy()).rejects.toThrow(/The same call succeeded on .* it began the task/);
  expect(await Promise.all([deploy('other'), deploy('other')])).toEqual([other, other]);
  await client.close();
  taskStore.cleanup();
  expect(deployed).toBe(2);
});
