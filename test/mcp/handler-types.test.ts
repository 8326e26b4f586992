// The one line fits the servers of both SDKs, and the compiler still knows the args. That it compiles is the test.

import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer as McpServerV2 } from '@modelcontextprotocol/server';
import { createSemel } from 'semel';
import { guard } from 'semel/mcp';
import { expect, test } from 'vitest';
import { z } from 'zod';

test('handlers with and without args, in both versions', async () => {
  await using semel = createSemel({ store: 'memory:' });
  const v1 = new McpServerV1({ name: 'a', version: '1' });
  const v2 = new McpServerV2({ name: 'a', version: '1' });
  const terms = { effect: 'write-non-idempotent', identity: ['to'] } as const;
  v1.registerTool(
    'send',
    { inputSchema: { to: z.string(), n: z.number() } },
    guard(semel, 'send', terms, async ({ to, n }, extra) => {
      const words: string = to + n.toFixed(1) + String(extra.requestId);
      return { content: [{ type: 'text', text: words }] };
    }),
  );
  v2.registerTool(
    'send',
    { inputSchema: z.object({ to: z.string(), n: z.number() }) },
    guard(semel, 'send', terms, ({ to, n }, ctx) => {
      const words: string = to + n.toFixed(1) + String(ctx.mcpReq.id);
      return { content: [{ type: 'text', text: words }] };
    }),
  );
  v1.registerTool(
    'tick',
    {},
    guard(semel, 'tick', 'write-non-idempotent', () => ({ content: [{ type: 'text', text: 'x' }] })),
  );
  v2.registerTool(
    'tick',
    {},
    guard(semel, 'tick', 'write-non-idempotent', () => ({ content: [{ type: 'text', text: 'x' }] })),
  );
  v1.registerTool(
    'wrong',
    { inputSchema: { to: z.string() } },
    // @ts-expect-error: there is no such field.
    guard(semel, 'wrong', { effect: 'read', identity: ['too'] }, ({ to }) => ({
      content: [{ type: 'text', text: to }],
    })),
  );
  expect(v1.isConnected()).toBe(false);
});
