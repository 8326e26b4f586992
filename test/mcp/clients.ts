// The clients of both SDKs as one shape, so that one test can be asked by each of them.

import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach } from 'vitest';

export interface CallResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Record<string, unknown>;
}

export interface SdkClient {
  call(name: string, args: object, meta?: Record<string, unknown>): Promise<CallResult>;
  tools(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export type ClientName = 'v1' | 'v2 legacy' | 'v2 modern';
export const clientNames: readonly ClientName[] = ['v1', 'v2 legacy', 'v2 modern'];

const open: SdkClient[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close().catch(() => undefined)));
});

export function stdioClient(
  name: ClientName,
  [command, ...args]: readonly string[],
  env: Record<string, string>,
): Promise<SdkClient> {
  const options = { command: command as string, args, env, stderr: 'ignore' as const };
  return connected(name, () => (name === 'v1' ? new StdioV1(options) : new StdioV2(options)));
}

export function httpClient(
  name: ClientName,
  url: string,
  headers: Record<string, string> = {},
): Promise<SdkClient> {
  const options = { requestInit: { headers } };
  return connected(name, () =>
    name === 'v1' ? new HttpV1(new URL(url), options) : new HttpV2(new URL(url), options),
  );
}

async function connected(name: ClientName, transport: () => unknown): Promise<SdkClient> {
  const info = { name: 'test', version: '1.0.0' };
  const client =
    name === 'v1'
      ? new ClientV1(info)
      : new ClientV2(info, {
          versionNegotiation: { mode: name === 'v2 modern' ? { pin: '2026-07-28' } : 'legacy' },
        });
  // biome-ignore lint/suspicious/noExplicitAny: two clients of one shape, whose types do not know each other.
  const any = client as any;
  await any.connect(transport());
  const sdk: SdkClient = {
    call: (tool, args, meta) =>
      any.callTool({ name: tool, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }),
    tools: async () => (await any.listTools()).tools.map((tool: { name: string }) => tool.name),
    close: () => any.close(),
  };
  open.push(sdk);
  return sdk;
}
