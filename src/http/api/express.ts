// Express, or node:http itself: the handler writes to `res` as usual, and what it writes is held back until its outcome is durable.

import type { ServerResponse } from 'node:http';
import type { AttemptContext } from '../../call/index.ts';
import type { Semel } from '../../semel/index.ts';
import { type BodyLimits, readBody } from '../body.ts';
import { findWholeBody, type NodeRequest, toWebRequest } from '../node-request.ts';
import { type HeldResponse, holdResponse, sendAnswer } from '../node-response.ts';
import { createEndpoint } from './endpoint.ts';
import type { ContextFor, IdempotentOptions } from './options.ts';

/** `app.post('/orders', idempotentExpress(semel, options, async (req, res, ctx) => res.json(…)))` */
export function idempotentExpress<
  Incoming extends NodeRequest,
  Outgoing extends ServerResponse,
  Required extends boolean = true,
>(
  semel: Semel,
  options: IdempotentOptions<Incoming, Required>,
  handler: (request: Incoming, response: Outgoing, ctx: ContextFor<Required>) => unknown,
): (request: Incoming, response: Outgoing, next?: (error?: unknown) => void) => Promise<void> {
  const endpoint = createEndpoint<Incoming>(semel, options, handler);
  return async (request, response, next) => {
    let held: HeldResponse | undefined;
    const run = (ctx: AttemptContext | undefined) => handler(request, response, ctx as ContextFor<Required>);
    const outgoing = await endpoint.handle(
      {
        incoming: request,
        method: request.method ?? '',
        url: request.originalUrl ?? request.url ?? '/',
        key: request.headers['idempotency-key'],
        readBody: (limits) => takeBody(request, limits),
        leavesBody: true,
      },
      async (ctx, maxBytes) => {
        // A transaction may be tried again.
        held?.undo();
        held = holdResponse(response, maxBytes);
        // Not raced with its end: a handler may answer later than it returns.
        const failed = new Promise<never>((_resolve, reject) => {
          (async () => run(ctx))().catch(reject);
        });
        return Promise.race([held.captured, failed]);
      },
    );
    if (outgoing.is === 'unguarded') return runUnguarded(() => run(undefined), response, next);
    if (outgoing.is === 'own') return held?.release();
    if (held === undefined) sendAnswer(response, outgoing.answer);
    else held.replace(outgoing.answer);
  };

  /** What it throws must not end the process: not every caller waits for this promise. */
  async function runUnguarded(
    run: () => unknown,
    response: ServerResponse,
    next: ((error?: unknown) => void) | undefined,
  ): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (next !== undefined) return next(error);
      const answer = endpoint.fail(error);
      // A response that has started cannot be undone; the client must not mistake it for a complete one.
      if (response.headersSent) response.destroy();
      else sendAnswer(response, answer);
    }
  }
}

/** Where no parser has read the body, the handler finds its bytes in `req.body`. */
async function takeBody(request: NodeRequest, limits: BodyLimits) {
  const found = findWholeBody(request, request.headers, request.readableDidRead);
  if (found !== 'unread') return found;
  request.body = undefined;
  const raw = await readBody(toWebRequest(request, '/'), limits);
  if (raw.length > 0) request.body = raw;
  return { raw };
}
