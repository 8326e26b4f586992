// A server of the SDK, version 1, over standard input and output. The file of its effects is its argument.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { stock } from './shop.ts';

const server = new McpServer({ name: 'shop', version: '1.0.0' });
stock(server.registerTool.bind(server) as never, { effects: process.argv[2] as string, isRaw: true });
await server.connect(new StdioServerTransport());
