// The outside world of the demo: a server on this machine that performs effects, remembers keys, and counts. It
// knows nothing of semel.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Target extends AsyncDisposable {
  readonly url: string;
  /** What landed, in order. */
  readonly landed: readonly string[];
}

const maxBytes = 10_000;

export async function startTarget({ losesAnswers }: { readonly losesAnswers: boolean }): Promise<Target> {
  const landed: string[] = [];
  const ids = new Map<string, string>();

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const what = await bodyOf(request);
    const key = request.headers['idempotency-key'];
    const known = typeof key === 'string' ? ids.get(key) : undefined;
    if (known !== undefined) return say(response, known);
    landed.push(what);
    const id = `${what.split(' ', 1)[0]}_${landed.length}`;
    if (typeof key === 'string') ids.set(key, id);
    // It has landed, but the answer is lost.
    if (losesAnswers) return void request.socket.destroy();
    say(response, id);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    landed,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) {
    body += String(chunk);
    if (body.length > maxBytes) throw new Error('too large');
  }
  return body;
}

function say(response: ServerResponse, id: string): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ id }));
}
