// A web-standard handler as one of node:http, Express or Fastify. For receivers of webhooks, which need the bytes as they were sent.

import type { ServerResponse } from 'node:http';
import { SemelError } from '../core/errors.ts';
import { findBody, type NodeRequest, toWebRequest } from './node-request.ts';
import { sendResponse } from './node-response.ts';

type Handler = (request: Request) => Promise<Response>;

/** `createServer(toNode(handler))`, `app.post('/hooks', toNode(handler))`: before or without a body parser, or after `express.raw()`. */
export function toNode(
  handler: Handler,
): (request: NodeRequest, response: ServerResponse, next?: (error?: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    try {
      const made = toWebRequest(request, request.originalUrl ?? request.url ?? '/');
      await sendResponse(response, await handler(made));
    } catch (error) {
      // A response that has started cannot be undone; the client must not mistake it for a complete one.
      if (next === undefined || response.headersSent) response.destroy();
      else next(error);
    }
  };
}

/** What is used of Fastify. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest;
  readonly url: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

export interface FastifyReplyLike {
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body?: unknown): unknown;
}

/** `app.post('/hooks', toFastify(handler))`, where the content type is parsed as a buffer. */
export function toFastify(
  handler: Handler,
): (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown> {
  return async (request, reply) => {
    const found = findBody(request);
    if (found !== undefined && !('raw' in found))
      throw new SemelError(
        'CONTRACT_INVALID',
        'The body was parsed, but its signature covers the raw bytes.',
        {
          path: 'body',
          next: "Register app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_, body, done) => done(null, body)) where the route is.",
        },
      );
    const raw = Object.assign(Object.create(request.raw) as NodeRequest, { body: found?.raw ?? '' });
    const made = await handler(toWebRequest(raw, request.url));
    reply.code(made.status);
    for (const [name, value] of made.headers) reply.header(name, value);
    return reply.send(Buffer.from(await made.arrayBuffer()));
  };
}
