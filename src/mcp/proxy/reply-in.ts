// The reply in an answer of HTTP, as JSON or among events.

import type { IncomingMessage } from 'node:http';
import { eventReader } from '../protocol/events.ts';
import { holding } from '../protocol/held.ts';
import { isReply, parsed } from '../protocol/messages.ts';
import { bodyOf, isEventStream, textIn } from './wire.ts';

/** Undefined: there is none. Not every server closes a stream once it has answered: what comes after is not waited for. */
export async function replyIn(answer: IncomingMessage): Promise<unknown> {
  const held = holding('servers');
  if (!isEventStream(answer.headers))
    return bodyOf(answer, held)
      .then((body) => parsed(textIn(body)))
      .finally(() => {
        held.end();
        answer.destroy();
      });
  let found: unknown;
  const events = eventReader((_event, { data }) => {
    const message = data === undefined ? undefined : parsed(data);
    if (isReply(message)) found = message;
  });
  try {
    for await (const chunk of answer) {
      events.read(chunk as Buffer);
      if (found !== undefined) break;
    }
    return found;
  } finally {
    events.end();
  }
}
