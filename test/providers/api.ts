// An HTTP API that behaves as a provider documents it: it remembers keys for a while, or knows none, and it does the
// work before its answer is lost.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export interface Got {
  readonly path: string;
  readonly key: string | undefined;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

export interface ApiRules {
  /** Undefined: it honours no key. */
  readonly keyOf?: (request: IncomingMessage, body: string) => string | undefined;
  readonly windowMs?: number;
  readonly now?: () => number;
  /** Known key, another request. */
  readonly mismatch?: Reply;
  /** The nth effect. */
  readonly done: (nth: number) => unknown;
}

export interface Api {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly requests: Got[];
  /** What landed. */
  readonly effects: string[];
  /** So many requests from now on are done, and their answers are lost. */
  lose(count: number): void;
  /** So many requests from now on are done, and never answered. */
  hang(count: number): void;
  /** The next requests get these instead. */
  answer(...replies: Reply[]): void;
}

interface Kept {
  readonly words: string;
  readonly reply: Reply;
  readonly at: number;
}

const open: Server[] = [];
afterAll(() => {
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
});

export const inHeader = (name: string) => (request: IncomingMessage) => request.headers[name] as string;

export async function api({ keyOf, windowMs, now = Date.now, mismatch, done }: ApiRules): Promise<Api> {
  const requests: Got[] = [];
  const effects: string[] = [];
  const kept = new Map<string, Kept>();
  const scripted: Reply[] = [];
  let losing = 0;
  let hanging = 0;

  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const path = request.url ?? '';
      const key = keyOf?.(request, body);
      requests.push({ path, key, body, headers: request.headers });
      const reply = scripted.shift() ?? work(request, `${path} ${body}`, key);
      if (hanging > 0) {
        hanging -= 1;
      } else if (losing > 0) {
        losing -= 1;
        request.socket.destroy();
      } else send(response, reply);
    });
  });

  function work(request: IncomingMessage, words: string, key: string | undefined): Reply {
    if (request.method === 'GET') return { status: 200, body: { data: effects } };
    const known = key === undefined ? undefined : kept.get(key);
    if (known !== undefined && now() - known.at < (windowMs ?? Number.POSITIVE_INFINITY))
      return known.words === words || mismatch === undefined ? known.reply : mismatch;
    effects.push(words);
    const reply = { status: 200, body: done(effects.length) };
    if (key !== undefined) kept.set(key, { words, reply, at: now() });
    return reply;
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(server);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    port,
    requests,
    effects,
    lose(count) {
      losing = count;
    },
    hang(count) {
      hanging = count;
    },
    answer: (...replies) => void scripted.push(...replies),
  };
}

function send(response: ServerResponse, { status, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
