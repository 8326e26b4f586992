// One API on each framework, through real HTTP: POST /orders takes JSON, and does what the test says.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import type { AttemptContext, Semel } from 'semel';
import {
  type IdempotentOptions,
  idempotent,
  idempotentExpress,
  idempotentFastify,
  idempotentHono,
  idempotentNext,
  toNode,
} from 'semel/http';

export interface Said {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly cookies?: readonly string[];
  /** Sent in pieces. */
  readonly pieces?: readonly string[];
}

export type Work = (
  order: unknown,
  ctx: AttemptContext | undefined,
  signal?: AbortSignal,
) => Said | Promise<Said>;

export type Terms = Omit<IdempotentOptions<unknown>, 'name' | 'caller' | 'fingerprint'>;

export interface Running {
  readonly url: string;
  close(): Promise<void>;
}

export interface Framework {
  readonly name: string;
  start(semel: Semel, terms: Terms, work: Work): Promise<Running>;
}

interface Env {
  Variables: { user: string | undefined };
}

const name = 'orders.create';

function toResponse({ status = 201, headers = {}, body = '', pieces, cookies = [] }: Said): Response {
  const text = pieces === undefined ? body : ReadableStream.from(pieces.map((piece) => Buffer.from(piece)));
  const made = new Response(text as string, {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
  for (const cookie of cookies) made.headers.append('set-cookie', cookie);
  return made;
}

async function listen(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const user = (value: unknown) => (typeof value === 'string' ? value : undefined);

export const frameworks: readonly Framework[] = [
  {
    name: 'web standard',
    start(semel, terms, work) {
      const handler = idempotent(
        semel,
        { name, caller: (request) => request.headers.get('x-user'), ...terms },
        async (request, ctx) => toResponse(await work(await request.json(), ctx, request.signal)),
      );
      return listen(createServer(toNode(handler)));
    },
  },
  {
    // Its requests and responses are plain ones here: Next.js itself is not installed.
    name: 'Next.js route handler',
    start(semel, terms, work) {
      class NextLike extends Request {
        get nextUrl(): URL {
          return new URL(this.url);
        }
      }
      const POST = idempotentNext(
        semel,
        {
          name,
          caller: (request: NextLike) => request.headers.get('x-user'),
          ...terms,
        },
        async (request: NextLike, { params }: { params: Promise<{ shop: string }> }, ctx) => {
          if (request.nextUrl.pathname !== '/orders' || (await params).shop !== 'lamps')
            throw new Error('lost');
          return toResponse(await work(await request.json(), ctx, request.signal));
        },
      );
      const params = Promise.resolve({ shop: 'lamps' });
      return listen(createServer(toNode((request) => POST(new NextLike(request), { params }))));
    },
  },
  {
    name: 'Hono',
    async start(semel, terms, work) {
      const app = new Hono<Env>();
      app.use(async (c, next) => {
        c.set('user', c.req.header('x-user'));
        await next();
        c.header('x-served-by', 'hono');
      });
      app.post(
        '/orders',
        idempotentHono(
          semel,
          { name, caller: (c: Context<Env>) => c.get('user'), ...terms },
          async (c, ctx) => toResponse(await work(await c.req.json(), ctx, c.req.raw.signal)),
        ),
      );
      return new Promise((resolve) => {
        const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
          resolve({
            url: `http://127.0.0.1:${port}`,
            async close() {
              (server as Server).closeAllConnections();
              await new Promise((closed) => server.close(closed));
            },
          }),
        );
      });
    },
  },
  ...[true, false].map((isParsed) => ({
    name: isParsed ? 'Express with a parser' : 'Express without a parser',
    start(semel: Semel, terms: Terms, work: Work) {
      const app = express();
      app.use((_req, res, next) => {
        res.setHeader('x-served-by', 'express');
        next();
      });
      if (isParsed) app.use(express.json());
      app.post(
        '/orders',
        idempotentExpress(
          semel,
          {
            name,
            caller: (req: express.Request) => user(req.headers['x-user']),
            ...terms,
          },
          async (req, res: express.Response, ctx) => {
            const order = isParsed ? req.body : JSON.parse(String(req.body));
            const { status = 201, headers = {}, body = '', pieces, cookies = [] } = await work(order, ctx);
            res.status(status).type('application/json').set(headers);
            for (const cookie of cookies) res.append('set-cookie', cookie);
            if (pieces === undefined) res.send(body);
            else Readable.from(pieces).pipe(res);
          },
        ),
      );
      return listen(createServer(app));
    },
  })),
  ...[false, true].map((isWeb) => ({
    name: isWeb ? 'Fastify with web responses' : 'Fastify',
    async start(semel: Semel, terms: Terms, work: Work) {
      const app = fastify();
      app.addHook('onRequest', async (_request, reply) => void reply.header('x-served-by', 'fastify'));
      app.post(
        '/orders',
        idempotentFastify(
          semel,
          { name, caller: (request: FastifyRequest) => user(request.headers['x-user']), ...terms },
          async (request, reply: FastifyReply, ctx) => {
            const said = await work(request.body, ctx);
            if (isWeb) return toResponse(said);
            const { status = 201, headers = {}, body = '', pieces, cookies = [] } = said;
            reply.code(status).type('application/json').headers(headers);
            for (const cookie of cookies) reply.header('set-cookie', cookie);
            return pieces === undefined ? body : Readable.from(pieces);
          },
        ),
      );
      const url = await app.listen({ port: 0, host: '127.0.0.1' });
      return {
        url,
        async close() {
          app.server.closeAllConnections();
          await app.close();
        },
      };
    },
  })),
];
