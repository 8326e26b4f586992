// A local server in the place of a service: it keeps what was created, shows it page by page, late if told so, limits the
// rate, checks the token, and loses requests or replies. What a service looks like is said by each `Shape`.

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import type { Found, Verifier } from '../../../src/providers/verifiers/index.ts';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body: unknown;
}

/** Something that was created, as the service shows it. */
export interface Thing {
  readonly id: string;
  readonly at: number;
  readonly shown: Record<string, unknown>;
}

export interface Shape {
  /** A created thing, from the request that creates it. `nth` is from 1. */
  create(asked: Asked, nth: number, at: number): Record<string, unknown>;
  isCreate(asked: Asked): boolean;
  idOf(shown: Record<string, unknown>): string;
  /** What a client gets that created it. @default as it is shown */
  created?(shown: Record<string, unknown>): Answer;
  /** Things are the visible ones, oldest first; `all` has those too that a list does not show yet. */
  read(asked: Asked, things: readonly Thing[], all: readonly Thing[]): Answer;
  isAllowed(headers: IncomingHttpHeaders, asked: Asked): boolean;
  /** @default 401 */
  readonly refused?: Answer;
  readonly limited?: Answer;
}

export interface StandIn {
  readonly url: string;
  readonly things: Thing[];
  readonly reads: Asked[];
  /** Created things are listed this much later. */
  lagMs: number;
  /** The next write is cut off before anything is done. */
  drop(): void;
  /** The next write is done, and its reply is lost. */
  lose(): void;
  /** The next read gets this instead. */
  answer(answer: Answer): void;
  /** Creates something, as a request with this body would. */
  add(asked: Partial<Asked>): Thing;
}

export const goodToken = 'token-that-works';
export const retryAfterSeconds = 17;

const servers: { close(): void; closeAllConnections(): void }[] = [];
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

export async function startStandIn(shape: Shape, now: () => number): Promise<StandIn> {
  const things: Thing[] = [];
  const reads: Asked[] = [];
  const answers: Answer[] = [];
  const writes: ('drop' | 'lose')[] = [];

  const standIn: StandIn = {
    url: '',
    things,
    reads,
    lagMs: 0,
    drop: () => void writes.push('drop'),
    lose: () => void writes.push('lose'),
    answer: (each) => void answers.push(each),
    add(given) {
      const asked = {
        method: 'POST',
        path: '',
        query: new URLSearchParams(),
        headers: {},
        body: '',
        ...given,
      };
      const at = now();
      const shown = shape.create(asked, things.length + 1, at);
      const thing = { id: shape.idOf(shown), at, shown };
      things.push(thing);
      return thing;
    },
  };

  function read(asked: Asked): Answer {
    reads.push(asked);
    if (!shape.isAllowed(asked.headers, asked))
      return shape.refused ?? { status: 401, body: { message: 'Bad credentials' } };
    const visible = things.filter(({ at }) => at + standIn.lagMs <= now());
    return answers.shift() ?? shape.read(asked, visible, things);
  }

  const server = createServer((request, response): void => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://local');
      const asked: Asked = {
        method: request.method ?? 'GET',
        path: decodeURIComponent(url.pathname),
        query: url.searchParams,
        headers: request.headers,
        body: Buffer.concat(parts).toString(),
      };
      let answer: Answer;
      if (shape.isCreate(asked)) {
        const fault = writes.shift();
        const shown = fault === 'drop' ? undefined : standIn.add(asked).shown;
        if (fault !== undefined || shown === undefined) {
          request.socket.destroy();
          return;
        }
        answer = shape.created?.(shown) ?? { body: shown };
      } else answer = read(asked);
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers });
      response.end(JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return Object.assign(standIn, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

export interface Order {
  readonly order: number;
}

interface VerifierTerms {
  readonly token?: string;
  readonly maxPages?: number;
}

/** One verifier and the service that it asks. */
export interface VerifierCase {
  readonly name: string;
  readonly shape: Shape;
  /** What the verifier says about its service, and waits for. */
  readonly lagMs: number;
  /** It has to read page after page: it cannot ask for the mark itself. */
  readonly isPaged: boolean;
  /** The request that creates a thing with this mark. */
  request(mark: string, order: Order, key: string): Partial<Asked>;
  verifier(at: StandIn, terms: VerifierTerms): Verifier<Order, Found>;
  /** The id that a tool would note, from what the service answers. */
  readonly noted?: (body: Record<string, unknown>) => string;
}

/** What the tool of a case does. */
export async function send(at: StandIn, { request }: VerifierCase, mark: string, order: Order, key: string) {
  const { method = 'POST', path = '/', headers = {}, body = '' } = request(mark, order, key);
  const response = await fetch(`${at.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${goodToken}`, ...(headers as Record<string, string>) },
    ...(body === '' ? {} : { body }),
  });
  if (!response.ok) throw new Error(`answered ${response.status}`);
  return response;
}

export function bearer(headers: IncomingHttpHeaders): boolean {
  return headers.authorization === `Bearer ${goodToken}`;
}

export function post(path: string, body: object): Partial<Asked> {
  return { path, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
}

export const notFound: Answer = { status: 404, body: { message: 'Not Found' } };

/** Newest first, from behind the thing with this id. */
export function after(things: readonly Thing[], id: string | null, limit: number) {
  const newest = things.toReversed();
  const start = id === null ? 0 : newest.findIndex((thing) => thing.id === id) + 1;
  const page = newest.slice(start, start + limit);
  return { page: page.map(({ shown }) => shown), hasMore: start + limit < newest.length };
}
