// The reply in an answer of HTTP, as JSON or among events.

import type { IncomingMessage } from 'node:http';
import { eventReader } from './events.ts';
import { isReply, parsed } from './messages.ts';
import { bodyOf, isEventStream } from './wire.ts';

/** Undefined: there is none. */
export async function replyIn(answer: IncomingMessage): Promise<unknown> {
  const bytes = (await bodyOf(answer)) ?? Buffer.alloc(0);
  if (!isEventStream(answer.headers)) return parsed(bytes.toString());
  let found: unknown;
  const events = eventReader((_event, { data }) => {
    const message = data === undefined ? undefined : parsed(data);
    if (isReply(message)) found = message;
  });
  events.read(bytes);
  return found;
}
