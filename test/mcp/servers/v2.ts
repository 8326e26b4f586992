// A server of the SDK, version 2, over standard input and output. The file of its effects is its argument.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { stock } from './shop.ts';

serveStdio(() => {
  const server = new McpServer({ name: 'shop', version: '2.0.0' });
  stock(server.registerTool.bind(server) as never, { effects: process.argv[2] as string, isRaw: false });
  return server;
});
