// A real HTTP receiver of alerts: keeps what it got, and answers as a test says.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Received {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly data: Record<string, unknown>;
  } & Record<string, unknown>;
}

export type Answer = number | 'hang' | ((response: ServerResponse, request: IncomingMessage) => void);

export async function receiver(answer: (received: Received, count: number) => Answer = () => 204) {
  const got: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const received = {
      headers: request.headers as Received['headers'],
      body,
      event: JSON.parse(body) as Received['event'],
    };
    got.push(received);
    const now = answer(received, got.length);
    if (now === 'hang') return;
    if (typeof now === 'function') return now(response, request);
    response.writeHead(now).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?secret=1`;
  return { url, got };
}
