// One request to an HTTP server. Other messages in the stream pass through; the answer is held back, for a guarded call until
// the ledger has recorded it. If the client hangs up, the proxy still reads the answer to its end, resuming the stream if needed.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { classifyRequestError, classifyStatus } from '../../core/contract/classify.ts';
import { limits } from '../../core/limits.ts';
import { createReservation } from '../../core/reservations.ts';
import { MaybeLanded, NotLanded } from '../../core/signals.ts';
import { createEventReader, type EventFields, TooLong } from '../protocol/events.ts';
import { type Id, idKey, isReply, type Reply } from '../protocol/messages.ts';
import { parseReply } from '../protocol/numbers.ts';
import { isToolReply } from './outcome.ts';
import type { Forward } from './tool-calls.ts';
import { countUnread, disconnect } from './unread.ts';
import { decodeBody, forwardedHeaders, isEventStream, readBody, rewrittenHeaders, sendJson } from './wire.ts';

export interface Exchange {
  /** Sends the call and returns the answer, or throws what became of the call. */
  readonly forward: Forward;
  finish(reply: Reply): void;
}

/** Sends to the call's server, with the client's own headers. */
export interface Upstream {
  send(key: Parameters<Forward>[0]): Promise<IncomingMessage>;
  /** Requests the rest of a stream, after this event. */
  resume(lastEventId: string): Promise<IncomingMessage>;
}

/** If the server sends no `retry`. */
const defaultRetryMs = 1_000;
/** A server that asks for no pause and ends each stream at once would be polled in a tight loop. */
const minRetryMs = 100;

/** `request`: only of a tool call can a refused request carry the tool's own reply. */
export function createExchange(
  id: Id,
  response: ServerResponse,
  { send, resume }: Upstream,
  request: 'call' | 'list',
): Exchange {
  /** The raw bytes: an unchanged answer is passed on byte for byte. */
  let received: { readonly reply: Reply; readonly bytes: Buffer; readonly fields?: EventFields } | undefined;
  let isStreaming = false;
  let passRefusal: (() => void) | undefined;

  const isAnswer = (message: unknown): message is Reply =>
    isReply(message) && idKey(message.id) === idKey(id);

  async function readWhole(answer: IncomingMessage): Promise<Reply> {
    const bytes = await readAll(answer);
    const reply = parseReply(decodeBody(bytes));
    if (!isAnswer(reply)) throw new MaybeLanded('The server did not answer the request.');
    return keep(reply, bytes, answer);
  }

  function keep(reply: Reply, bytes: Buffer, { headers }: IncomingMessage): Reply {
    for (const [name, value] of Object.entries(rewrittenHeaders(headers))) response.setHeader(name, value);
    received = { reply, bytes };
    return reply;
  }

  function readAll(answer: IncomingMessage): Promise<Buffer> {
    const held = createReservation('servers');
    return readBody(answer, held)
      .catch((error: unknown) => {
        // Otherwise the server waits for a reader.
        answer.destroy();
        throw error;
      })
      .finally(held.end);
  }

  async function readStream(answer: IncomingMessage, signal: AbortSignal): Promise<Reply> {
    isStreaming = true;
    response.writeHead(200, rewrittenHeaders(answer.headers));
    response.flushHeaders();
    let lastEventId: string | undefined;
    let retryMs = defaultRetryMs;
    const others: Buffer[] = [];
    for (let stream = answer; ; stream = await resumeStream(lastEventId, signal)) {
      const events = createEventReader((event, fields) => {
        const { data, id: eventId, retryMs: requested } = fields;
        if (eventId !== undefined) lastEventId = isValidHeader(eventId) ? eventId : undefined;
        retryMs = requested ?? retryMs;
        const message = data === undefined ? undefined : parseReply(data);
        if (isAnswer(message)) received = { reply: message, bytes: event, fields };
        else others.push(event);
      });
      try {
        for await (const chunk of stream) {
          events.read(chunk as Buffer);
          await passEvents(others.splice(0));
          if (received !== undefined) return received.reply;
        }
      } catch (error) {
        if (lastEventId === undefined || error instanceof TooLong) throw error;
      } finally {
        events.end();
      }
      await pause(Math.max(minRetryMs, retryMs), undefined, { signal });
    }
  }

  /** Waits for a client that does not read, then disconnects it and reads the server's answer without it. */
  async function passEvents(events: readonly Buffer[]): Promise<void> {
    if (events.length === 0 || response.destroyed) return;
    response.write(Buffer.concat(events));
    countUnread(response);
    if (response.writableLength <= limits.unreadBytes) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => disconnect(response), limits.unreadMs);
    response.once('drain', resolve).once('close', resolve);
    await promise;
    clearTimeout(timer);
    response.off('drain', resolve).off('close', resolve);
  }

  async function resumeStream(
    lastEventId: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    if (lastEventId === undefined) throw new MaybeLanded('The server ended its answer before the result.');
    for (;;) {
      const answer = await resume(lastEventId).catch((error: unknown) => {
        // The server has moved. That concerns the stream; the call may still have landed.
        if (error instanceof NotLanded || error instanceof MaybeLanded) throw new MaybeLanded(error.message);
        return undefined;
      });
      if (answer?.statusCode === 200 && isEventStream(answer.headers)) return answer;
      answer?.resume();
      // The server is not back yet, or the client resumed the stream itself.
      const mayComeBack =
        answer === undefined || answer.statusCode === 409 || (answer.statusCode ?? 0) >= 500;
      if (!mayComeBack) throw new MaybeLanded('The server stopped in the middle of its answer.');
      await pause(defaultRetryMs, undefined, { signal });
    }
  }

  return {
    async forward(key, signal) {
      const answer = await send(key).catch((error: unknown) => {
        throw classifyRequestError(error) === 'not sent' ? new NotLanded(String(error)) : error;
      });
      const { statusCode: status = 502, headers } = answer;
      if (status >= 200 && status < 300)
        return isEventStream(headers) ? readStream(answer, signal) : readWhole(answer);
      const body = await readAll(answer).catch(() => undefined);
      // Some servers also use the HTTP status to report a failed tool: the tool's reply counts.
      const mayBeTool = request === 'call' && classifyStatus(status) !== 'denied';
      const reply = body && mayBeTool ? parseReply(decodeBody(body)) : undefined;
      if (body !== undefined && isAnswer(reply) && isToolReply(reply)) return keep(reply, body, answer);
      // Without the body, content-length would make the client wait for the rest.
      const headersToSend = body === undefined ? rewrittenHeaders(headers) : forwardedHeaders(headers);
      passRefusal = () => void response.writeHead(status, headersToSend).end(body);
      const happened = `The server answered ${status}.`;
      throw classifyStatus(status) === 'ambiguous' ? new MaybeLanded(happened) : new NotLanded(happened);
    },
    finish(reply) {
      const bytes = received?.reply === reply ? received.bytes : undefined;
      if (passRefusal !== undefined) passRefusal();
      else if (isStreaming) response.end(bytes ?? formatEvent(reply, received?.fields));
      else if (bytes !== undefined) response.end(bytes);
      else sendJson(response, reply);
      countUnread(response);
    },
  };
}

/** Sent as Last-Event-ID, so it must be a valid header. */
function isValidHeader(id: string): boolean {
  return id !== '' && !/\p{Cc}/u.test(id);
}

/** Keeps the other fields of the event that it replaces: a client may resume by its id. */
function formatEvent(reply: Reply, replaced: EventFields | undefined): string {
  const { id, retryMs, event } = replaced ?? { event: 'message' };
  const others = Object.entries({ event, id, retry: retryMs }).filter(([, value]) => value !== undefined);
  const lines = others.map(([name, value]) => `${name}: ${value}`);
  return [...lines, `data: ${JSON.stringify(reply)}`, '', ''].join('\n');
}
