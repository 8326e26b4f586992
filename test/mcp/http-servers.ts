// Servers that talk streamable HTTP, in this process: version 1 with sessions, version 2 without, and one by hand.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer as McpServerV2 } from '@modelcontextprotocol/server';
import { atTheEnd } from '../cli/place.ts';
import { type ShopOptions, stock } from './servers/shop.ts';

export async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atTheEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

/** Version 1: sessions, answers as events, or as JSON. */
export function startV1(shop: Omit<ShopOptions, 'isRaw'>, enableJsonResponse = false): Promise<string> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  return listening(async (request, response) => {
    const known = sessions.get(String(request.headers['mcp-session-id']));
    if (known !== undefined) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const server = new McpServerV1({ name: 'shop', version: '1.0.0' });
    stock(server.registerTool.bind(server) as never, { ...shop, isRaw: true });
    await server.connect(transport as never);
    return transport.handleRequest(request, response);
  });
}

/** Version 2: no sessions; clients of before are served too. */
export function startV2(shop: Omit<ShopOptions, 'isRaw'>): Promise<string> {
  const handler = createMcpHandler(() => {
    const server = new McpServerV2({ name: 'shop', version: '2.0.0' });
    stock(server.registerTool.bind(server) as never, { ...shop, isRaw: false });
    return server;
  });
  const node = toNodeHandler(handler);
  return listening((request, response) => void node(request as never, response));
}

export async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}
