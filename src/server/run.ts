// A request at its endpoint: by itself, or as the items of a batch.

import { SemelError } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import type { Context, Endpoint } from './endpoint.ts';
import { Refusal, type Reply, toReply, write } from './exchange/reply.ts';
import type { Stream } from './views/live.ts';

export async function run({ input, run: act }: Endpoint, given: unknown, context: Context): Promise<Reply> {
  const body = await act(input.read(given, '') as never, context);
  if (!isStream(body)) return { status: 200, body };
  return { status: 200, body: '', headers: { 'content-type': 'text/event-stream' }, stream: body.stream };
}

function isStream(body: object): body is Stream {
  return typeof (body as Partial<Stream>).stream === 'function';
}

/** Each item succeeds or fails by itself. */
export async function runBatch(
  endpoint: Endpoint,
  { items }: { readonly items: readonly unknown[] },
  context: Context,
  refuse: (error: unknown) => Reply,
): Promise<Reply> {
  if (items.length === 0 || items.length > limits.batchItems)
    throw new SemelError('INVALID_ARGS', `\`items\` has ${items.length} items.`, {
      path: 'items',
      next: `Send 1 to ${limits.batchItems}.`,
    });
  refuseSharedTokens(items);
  let bytes = 0;
  const one = async (item: unknown): Promise<Reply> => {
    const reply = await run(endpoint, item, context).catch(refuse);
    // An attempt is given out once; a stored value can be asked for again.
    if ((reply.body as { readonly outcome?: string }).outcome === 'execute') return reply;
    bytes += write(reply).text.length;
    if (bytes <= limits.answerBytes) return reply;
    const { shorten } = endpoint;
    if (shorten !== undefined && reply.status === 200)
      return { ...reply, body: { ...shorten(reply.body as object), isShort: true } };
    return toReply(new Refusal(503, tooLong, 'Send this item by itself.'));
  };
  const replies = await Promise.all(items.map(one));
  return { status: 200, body: { items: replies.map(({ status, body }) => ({ status, body })) } };
}

/** Equal items with one token would be one attempt, given out twice. */
function refuseSharedTokens(items: readonly unknown[]): void {
  const tokens = items.map((item) => (item as { readonly token?: unknown } | null)?.token);
  const known = tokens.filter((token) => token !== undefined);
  if (new Set(known).size === known.length) return;
  throw new SemelError('INVALID_ARGS', 'Two items have the same `token`.', {
    path: 'items',
    next: 'Make a new token for each item.',
  });
}

const tooLong = `The answers of this batch have more than ${limits.answerBytes} characters.`;

export function isBatch(body: unknown): body is { readonly items: readonly unknown[] } {
  return typeof body === 'object' && body !== null && Array.isArray((body as { items?: unknown }).items);
}
