// The web-standard form: `(request) => Response`. Hono and Next.js use the same requests and responses, with an argument of their own.

import type { AttemptContext } from '../../call/index.ts';
import type { Semel } from '../../semel/index.ts';
import { type BodyLimits, readBody } from '../body.ts';
import { toResponse } from '../problem.ts';
import { captureStream } from './captured-stream.ts';
import { createEndpoint } from './endpoint.ts';
import type { ContextFor, IdempotentOptions } from './options.ts';
import type { Captured } from './stored-response.ts';

export function idempotent<Required extends boolean = true>(
  semel: Semel,
  options: IdempotentOptions<Request, Required>,
  handler: (request: Request, ctx: ContextFor<Required>) => Response | Promise<Response>,
): (request: Request) => Promise<Response> {
  const guarded = guardRequests(semel, options, handler);
  return (request) =>
    guarded(
      request,
      request,
      (inner, ctx) => handler(inner, ctx as ContextFor<Required>),
      (copy) => copy,
    );
}

/** A route handler of Next.js: `export const POST = idempotentNext(semel, options, async (request, { params }, ctx) => …)`. */
export function idempotentNext<Incoming extends Request, Context, Required extends boolean = true>(
  semel: Semel,
  options: IdempotentOptions<Incoming, Required>,
  handler: (request: Incoming, context: Context, ctx: ContextFor<Required>) => Response | Promise<Response>,
): (request: Incoming, context: Context) => Promise<Response> {
  const guarded = guardRequests<Incoming>(semel, options, handler);
  return (request, context) =>
    guarded(
      request,
      request,
      (inner, ctx) => handler(inner as Incoming, context, ctx as ContextFor<Required>),
      (copy) => copy as Incoming,
    );
}

/** What is used of Hono's context. */
export interface HonoContext {
  readonly req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> };
}

/** `app.post('/orders', idempotentHono(semel, options, async (c, ctx) => c.json(…)))` */
export function idempotentHono<Context extends HonoContext, Required extends boolean = true>(
  semel: Semel,
  options: IdempotentOptions<Context, Required>,
  handler: (c: Context, ctx: ContextFor<Required>) => Response | Promise<Response>,
): (c: Context) => Promise<Response> {
  const guarded = guardRequests<Context>(semel, options, handler);
  return (c) =>
    guarded(
      c,
      c.req.raw,
      (inner, ctx) => {
        // A body that a validator has read before is kept by Hono itself.
        if (inner !== c.req.raw) c.req.raw = inner;
        return handler(c, ctx as ContextFor<Required>);
      },
      (copy) => {
        c.req.raw = copy;
        return c;
      },
      c,
    );
}

type Run = (request: Request, ctx: AttemptContext | undefined) => Response | Promise<Response>;

function guardRequests<Incoming>(semel: Semel, options: IdempotentOptions<Incoming>, handler: unknown) {
  const endpoint = createEndpoint(semel, options, handler);
  return async (
    incoming: Incoming,
    request: Request,
    run: Run,
    withRequest: (copy: Request) => Incoming,
    hono?: HonoContext,
  ): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    let bytes: Uint8Array | undefined;
    let own: Response | undefined;
    const outgoing = await endpoint.handle(
      {
        incoming,
        method: request.method,
        url: pathname + search,
        key: request.headers.get('idempotency-key'),
        async readBody(limits: BodyLimits) {
          if (request.bodyUsed && hono !== undefined)
            return { raw: new Uint8Array(await hono.req.arrayBuffer()) };
          bytes = await readBody(request, limits);
          return { raw: bytes };
        },
        withBody: () =>
          bytes === undefined ? incoming : withRequest(copyRequest(request, bytes, request.signal)),
      },
      async (ctx, maxBytes) => {
        const inner = bytes === undefined ? request : copyRequest(request, bytes, ctx.signal);
        const { captured, response } = await captureResponse(await run(inner, ctx), maxBytes);
        own = response;
        return captured;
      },
    );
    if (outgoing.is === 'unguarded') return run(request, undefined);
    return outgoing.is === 'own' ? (own as Response) : toResponse(outgoing.answer);
  };
}

/** With a body that can be read once more. A handler does not get the client's signal: who hangs up does not stop what has started. */
function copyRequest(request: Request, bytes: Uint8Array, signal: AbortSignal): Request {
  const Kind = isSubclass(request) ? (request.constructor as typeof Request) : Request;
  return new Kind(request.url, {
    method: request.method,
    headers: request.headers,
    body: bytes.length === 0 ? null : (bytes as Uint8Array<ArrayBuffer>),
    signal,
  });
}

/** Such as NextRequest. */
function isSubclass(request: Request): boolean {
  return request.constructor.prototype instanceof Request;
}

/** Reads the body as far as it is kept, and leaves a response that can be sent. */
async function captureResponse(
  response: Response,
  maxBytes: number,
): Promise<{ captured: Captured; response: Response }> {
  const { status, statusText, headers } = response;
  const about = { status, headers: [...headers] };
  if (response.body === null) return { captured: { ...about, body: new Uint8Array() }, response };
  const { body, rest } = await captureStream(response.body, maxBytes);
  const sent = body === undefined ? rest : (body as Uint8Array<ArrayBuffer>);
  return { captured: { ...about, body }, response: new Response(sent, { status, statusText, headers }) };
}
