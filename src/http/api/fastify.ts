// Fastify: `app.post('/orders', idempotentFastify(semel, options, handler))`. Serialisers and hooks run as usual; the last hook before
// sending waits until the outcome is durable.

import { Readable } from 'node:stream';
import type { AttemptContext } from '../../call/index.ts';
import { deferred } from '../../core/older-node.ts';
import { NotLanded } from '../../core/signals.ts';
import type { Semel } from '../../semel/index.ts';
import type { FastifyReplyLike, FastifyRequestLike } from '../node.ts';
import { findWholeBody } from '../node-request.ts';
import { listHeaders } from '../node-response.ts';
import type { Answer } from '../problem.ts';
import { captureStream } from './captured-stream.ts';
import { createEndpoint, type Outgoing } from './endpoint.ts';
import type { ContextFor, IdempotentOptions } from './options.ts';
import type { Captured } from './stored-response.ts';

export interface FastifyExchange extends FastifyRequestLike {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface FastifyReply extends FastifyReplyLike {
  readonly statusCode: number;
  readonly sent: boolean;
  getHeaders(): Record<string, number | string | string[] | undefined>;
  removeHeader(name: string): unknown;
}

/** The options of one route. */
export interface IdempotentRoute<Incoming, Reply> {
  readonly handler: (request: Incoming, reply: Reply) => Promise<unknown>;
  readonly onSend: (request: Incoming, reply: Reply, payload: unknown) => Promise<unknown>;
}

/** One response on its way out. */
interface Held {
  readonly maxBytes: number;
  readonly capture: (captured: Captured) => void;
  readonly fail: (error: unknown) => void;
  readonly decided: Promise<Outgoing>;
  /** The names of headers that others have set. */
  readonly before: ReadonlySet<string>;
  /** The handler has given its reply. */
  isTaken: boolean;
}

export function idempotentFastify<
  Incoming extends FastifyExchange,
  Reply extends FastifyReply,
  Required extends boolean = true,
>(
  semel: Semel,
  options: IdempotentOptions<Incoming, Required>,
  handler: (request: Incoming, reply: Reply, ctx: ContextFor<Required>) => unknown,
): IdempotentRoute<Incoming, Reply> {
  const endpoint = createEndpoint<Incoming>(semel, options, handler);
  const heldBack = new WeakMap<object, Held>();

  return {
    async handler(request, reply) {
      const run = (ctx: AttemptContext | undefined) => handler(request, reply, ctx as ContextFor<Required>);
      const decision = deferred<Outgoing>();
      let held: Held | undefined;
      const outgoing = await endpoint.handle(
        {
          incoming: request,
          method: request.method,
          url: request.url,
          key: request.headers['idempotency-key'],
          // Fastify has parsed what it parses.
          async readBody() {
            const found = findWholeBody(request, request.headers, true);
            return found === 'unread' ? undefined : found;
          },
        },
        (ctx, maxBytes) =>
          new Promise<Captured>((capture, fail) => {
            // Fastify sends a reply once. A transaction that is tried again has undone what the handler did.
            if (held !== undefined) throw new NotLanded('its reply was given before');
            const before = new Set(Object.keys(reply.getHeaders()));
            held = { maxBytes, capture, fail, before, decided: decision.promise, isTaken: false };
            heldBack.set(request, held);
            (async () => run(ctx))().then((value) => {
              if (!reply.sent && value !== reply && value !== undefined) reply.send(value);
            }, fail);
          }),
      );
      decision.resolve(outgoing);
      if (outgoing.is === 'unguarded') return run(undefined);
      // The hook has it, and sends it or the answer.
      if (outgoing.is === 'own' || held?.isTaken) return reply;
      heldBack.delete(request);
      setAnswer(reply, outgoing.answer, held);
      return reply.send(Buffer.from(outgoing.answer.body));
    },

    async onSend(request, reply, payload) {
      const held = heldBack.get(request);
      if (held === undefined) return payload;
      heldBack.delete(request);
      held.isTaken = true;
      const body = payload instanceof Response ? unpack(reply, payload) : payload;
      const about = { status: reply.statusCode, headers: listHeaders(reply.getHeaders()) };
      let sent: unknown = body;
      try {
        const { body: kept, whole } = await capturePayload(body, held.maxBytes);
        sent = whole;
        held.capture({ ...about, body: kept });
      } catch (error) {
        held.fail(error);
      }
      const outgoing = await held.decided;
      if (outgoing.is !== 'answer') return sent;
      setAnswer(reply, outgoing.answer, held);
      return Buffer.from(outgoing.answer.body);
    },
  };
}

/** Fastify does the same, but only after this hook. */
function unpack(reply: FastifyReply, { status, headers, body }: Response): unknown {
  reply.code(status);
  for (const [name, value] of headers) reply.header(name, value);
  return body;
}

/** Replaces the handler's reply, if it has run. */
function setAnswer(reply: FastifyReply, { status, headers }: Answer, held: Held | undefined): void {
  if (held !== undefined)
    for (const name of Object.keys(reply.getHeaders())) if (!held.before.has(name)) reply.removeHeader(name);
  reply.code(status);
  for (const [name, value] of headers) reply.header(name, value);
}

async function capturePayload(
  payload: unknown,
  maxBytes: number,
): Promise<{ body: Uint8Array | undefined; whole: unknown }> {
  if (payload === null || payload === undefined) return { body: new Uint8Array(), whole: payload };
  if (typeof payload === 'string' || payload instanceof Uint8Array) {
    const body = Buffer.from(payload as string);
    return { body: body.length > maxBytes ? undefined : body, whole: payload };
  }
  const web = payload instanceof Readable ? (Readable.toWeb(payload) as ReadableStream<Uint8Array>) : payload;
  const { body, rest } = await captureStream(web as ReadableStream<Uint8Array>, maxBytes);
  return body === undefined
    ? { body, whole: Readable.fromWeb(rest as never) }
    : { body, whole: Buffer.from(body) };
}
