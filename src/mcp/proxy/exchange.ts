// One request to a server that talks HTTP: its other messages are passed on as they come, its answer is held back, for a
// guarded call until the ledger knows it. The client may hang up meanwhile; the server is heard out, also where it breaks its stream off
// to go on with it later.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { classifyRequestError, classifyStatus } from '../../core/contract/classify.ts';
import { limits } from '../../core/limits.ts';
import { MaybeLanded, NotLanded } from '../../core/signals.ts';
import { type EventFields, eventReader, TooLong } from '../protocol/events.ts';
import { holding } from '../protocol/held.ts';
import { type Id, idKey, isReply, type Reply } from '../protocol/messages.ts';
import { answerIn } from '../protocol/numbers.ts';
import { isOfTool } from './outcome.ts';
import type { Forward } from './tool-calls.ts';
import { countUnread } from './unread.ts';
import { bodyOf, isEventStream, kept, passed, sendJson, textIn } from './wire.ts';

export interface Exchange {
  /** Sends the call on; its answer, or an error that tells what became of it. */
  readonly forward: Forward;
  finish(reply: Reply): void;
}

/** To the server of the call, with what its client said of itself. */
export interface Upstream {
  send(key: Parameters<Forward>[0]): Promise<IncomingMessage>;
  /** The rest of a stream, after this event. */
  resume(lastEventId: string): Promise<IncomingMessage>;
}

/** Where a server does not say how long to wait before its stream is taken up again. */
const usualRetryMs = 1_000;
/** One that asks for no pause, and ends each stream at once, would be asked without end. */
const leastRetryMs = 100;

export function exchangeFor(id: Id, response: ServerResponse, { send, resume }: Upstream): Exchange {
  /** The answer as it came: what is not changed is passed on byte for byte. */
  let came: { readonly reply: Reply; readonly bytes: Buffer; readonly fields?: EventFields } | undefined;
  let isStreaming = false;
  let turnAway: (() => void) | undefined;

  const isAnswer = (message: unknown): message is Reply =>
    isReply(message) && idKey(message.id) === idKey(id);

  async function whole(answer: IncomingMessage): Promise<Reply> {
    const bytes = await wordsOf(answer);
    const reply = answerIn(textIn(bytes));
    if (!isAnswer(reply)) throw new MaybeLanded('The server did not answer the request.');
    for (const [name, value] of Object.entries(kept(answer.headers))) response.setHeader(name, value);
    came = { reply, bytes };
    return reply;
  }

  function wordsOf(answer: IncomingMessage): Promise<Buffer> {
    const held = holding('servers');
    return bodyOf(answer, held)
      .catch((error: unknown) => {
        // Its server would wait for a reader.
        answer.destroy();
        throw error;
      })
      .finally(held.end);
  }

  async function streamed(answer: IncomingMessage, signal: AbortSignal): Promise<Reply> {
    isStreaming = true;
    response.writeHead(200, kept(answer.headers));
    response.flushHeaders();
    let last: string | undefined;
    let retryMs = usualRetryMs;
    const others: Buffer[] = [];
    for (let stream = answer; ; stream = await taken(last, signal)) {
      const events = eventReader((event, fields) => {
        const { data, id: eventId, retryMs: asked } = fields;
        if (eventId !== undefined) last = isHeader(eventId) ? eventId : undefined;
        retryMs = asked ?? retryMs;
        const message = data === undefined ? undefined : answerIn(data);
        if (isAnswer(message)) came = { reply: message, bytes: event, fields };
        else others.push(event);
      });
      try {
        for await (const chunk of stream) {
          events.read(chunk as Buffer);
          await passEvents(others.splice(0));
          if (came !== undefined) return came.reply;
        }
      } catch (error) {
        if (last === undefined || error instanceof TooLong) throw error;
      } finally {
        events.end();
      }
      await pause(Math.max(leastRetryMs, retryMs), undefined, { signal });
    }
  }

  /** A client that does not read is waited for, then left behind: the server is heard out without it. */
  async function passEvents(events: readonly Buffer[]): Promise<void> {
    if (events.length === 0 || response.destroyed) return;
    response.write(Buffer.concat(events));
    countUnread(response);
    if (response.writableLength <= limits.unreadBytes) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => response.destroy(), limits.unreadMs);
    response.once('drain', resolve).once('close', resolve);
    await promise;
    clearTimeout(timer);
    response.off('drain', resolve).off('close', resolve);
  }

  async function taken(last: string | undefined, signal: AbortSignal): Promise<IncomingMessage> {
    if (last === undefined) throw new MaybeLanded('The server ended its answer before the result.');
    for (;;) {
      const answer = await resume(last).catch((error: unknown) => {
        // It has moved. That says something of the stream, and nothing of the call.
        if (error instanceof NotLanded || error instanceof MaybeLanded) throw new MaybeLanded(error.message);
        return undefined;
      });
      if (answer?.statusCode === 200 && isEventStream(answer.headers)) return answer;
      answer?.resume();
      // It is not back yet, or the client has taken the stream up itself.
      const mayComeBack =
        answer === undefined || answer.statusCode === 409 || (answer.statusCode ?? 0) >= 500;
      if (!mayComeBack) throw new MaybeLanded('The server does not go on with its answer.');
      await pause(usualRetryMs, undefined, { signal });
    }
  }

  return {
    async forward(key, signal) {
      const answer = await send(key).catch((error: unknown) => {
        throw classifyRequestError(error) === 'not sent' ? new NotLanded(String(error)) : error;
      });
      const { statusCode: status = 502, headers } = answer;
      if (status >= 200 && status < 300)
        return isEventStream(headers) ? streamed(answer, signal) : whole(answer);
      const words = await wordsOf(answer).catch(() => undefined);
      // Some servers say by the status, too, that a tool has failed: what it answered counts, not how it was wrapped.
      const reply = words && answerIn(textIn(words));
      if (words !== undefined && classifyStatus(status) !== 'denied' && isAnswer(reply) && isOfTool(reply)) {
        came = { reply, bytes: words };
        return reply;
      }
      // Without its words it is shorter than it says, and the client would wait for the rest.
      const told = words === undefined ? kept(headers) : passed(headers);
      turnAway = () => void response.writeHead(status, told).end(words);
      const happened = `The server answered ${status}.`;
      throw classifyStatus(status) === 'ambiguous' ? new MaybeLanded(happened) : new NotLanded(happened);
    },
    finish(reply) {
      const bytes = came?.reply === reply ? came.bytes : undefined;
      if (turnAway !== undefined) turnAway();
      else if (isStreaming) response.end(bytes ?? eventOf(reply, came?.fields));
      else if (bytes !== undefined) response.end(bytes);
      else sendJson(response, reply);
      countUnread(response);
    },
  };
}

/** The stream is asked for by it. */
function isHeader(id: string): boolean {
  return id !== '' && !/\p{Cc}/u.test(id);
}

/** With the other fields of the event that it stands for: a client may resume by its id. */
function eventOf(reply: Reply, instead: EventFields | undefined): string {
  const { id, retryMs, event } = instead ?? { event: 'message' };
  const others = Object.entries({ event, id, retry: retryMs }).filter(([, value]) => value !== undefined);
  const lines = others.map(([name, value]) => `${name}: ${value}`);
  return [...lines, `data: ${JSON.stringify(reply)}`, '', ''].join('\n');
}
