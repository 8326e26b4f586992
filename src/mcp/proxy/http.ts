// The proxy for a server that speaks streamable HTTP. A POST with a tools/call goes through the ledger; everything else
// passes unchanged. A client that hangs up does not cancel its calls.

import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { digestCaller } from '../../core/caller.ts';
import { handoffHeader } from '../../core/handoff-places.ts';
import { limits } from '../../core/limits.ts';
import { createReservation, type Reservation } from '../../core/reservations.ts';
import { MaybeLanded, NotLanded } from '../../core/signals.ts';
import { shellWord } from '../../core/visible.ts';
import type { Ambient } from '../../semel/index.ts';
import {
  asRecord,
  brokenReply,
  cancelledId,
  errorReply,
  type Id,
  idKey,
  isListRequest,
  isToolCall,
  type ListedTool,
  readMessage,
  refusedBatch,
  refusedCall,
  type ToolCall,
  unreadableReply,
} from '../protocol/messages.ts';
import { metaNames } from './call-input.ts';
import { createExchange, type Upstream } from './exchange.ts';
import { withKey } from './sent-key.ts';
import type { ToolCalls } from './tool-calls.ts';
import { createToolLists, listAgeMs } from './tool-lists.ts';
import { disconnectIfUnread } from './unread.ts';
import {
  decompress,
  forwardedHeaders,
  hasToken,
  isAllowed,
  isJsonInUtf8,
  isUncompressed,
  LimitExceeded,
  readBody,
  readReply,
  redirectTarget,
  type Sending,
  send,
  sendJson,
  tokenHeader,
  withoutCompression,
} from './wire.ts';

export interface HttpOptions {
  readonly upstream: URL;
  readonly host: string;
  readonly port: number;
  readonly calls: ToolCalls;
  readonly identity: Ambient;
  /** Callers must send it. Undefined: anyone who reaches the port may call. */
  readonly token: string | undefined;
  /** Something in front has verified bearer tokens, so a JWT's subject is trusted. */
  readonly verifiedTokens: boolean;
  /** Web pages of these origins may call, besides those on this machine. */
  readonly origins: readonly string[];
  /** How long `close` waits for calls that have begun. */
  readonly graceMs: number;
}

export interface HttpProxy {
  readonly url: string;
  /** Waits for calls that have begun. */
  close(): Promise<void>;
}

/** Carries a hand-off if the client cannot set `_meta`. Lower case, as Node.js spells headers. */
const contextHeader = handoffHeader.toLowerCase();

/** For a GET. */
const eventStreamHeaders = {
  accept: 'text/event-stream',
  'content-type': undefined,
  'mcp-method': undefined,
};
const movedMessage = 'The server has moved to another address; the proxy does not follow redirects.';

/** Node.js writes each header character as one byte; an event id is UTF-8. */
const toLatin1 = (text: string) => Buffer.from(text).toString('latin1');

export async function proxyHttp(options: HttpOptions): Promise<HttpProxy> {
  const { upstream, calls, identity, token, origins, graceMs, verifiedTokens } = options;
  /** By caller: a server may list different tools to each. */
  const lists = createToolLists();
  const answering = new Set<Promise<void>>();
  const activeCalls = new Set<string>();
  /** Unanswered requests per connection. */
  const unanswered = new WeakMap<Socket, number>();
  /** Aborted at the end: a server that never ends its answer would keep this process alive. */
  const shutdown = new AbortController();
  setMaxListeners(0, shutdown.signal);
  let hasWarnedOfMove = false;
  // The interval bounds how late Node.js notices a slow request.
  const times = { requestTimeout: limits.requestMs, connectionsCheckingInterval: limits.requestMs / 4 };
  const server = createServer(times, (request, response) => {
    response.on('error', () => undefined);
    disconnectIfUnread(response);
    // While closing, do not serve further requests on a kept-alive connection.
    if (!server.listening) response.shouldKeepAlive = false;
    const held = createReservation();
    const served = serve(request, response, held).catch(() => {
      sendJson(response, errorReply(null, -32603, 'The server could not be reached.'), 502);
    });
    // A call goes on without its client and holds its message until it ends.
    void Promise.all([served, untilClosed(response)]).then(held.end);
  });
  server.maxConnections = limits.connections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${upstream.pathname}`,
    async close() {
      server.close();
      const { promise: patience, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, graceMs);
      await Promise.race([Promise.allSettled(answering), patience]);
      clearTimeout(timer);
      shutdown.abort();
      server.closeAllConnections();
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse, held: Reservation): Promise<void> {
    const { pathname } = new URL(request.url ?? '', upstream);
    const refuse = (status: number, message: string) =>
      sendJson(response, errorReply(null, -32600, message), status);
    if (!isWithinPipelineLimit(request, response))
      return refuse(
        503,
        `This connection has ${limits.pipelined} unanswered requests. Wait for the answers.`,
      );
    if (!isAllowed(request, origins)) return refuse(403, 'This origin or host may not call.');
    if (token !== undefined && !hasToken(request, token))
      return refuse(401, `Send the token of the proxy as the header ${tokenHeader}.`);
    if (pathname !== upstream.pathname) return refuse(404, `The MCP endpoint is ${upstream.pathname}.`);
    if (request.method !== 'POST') return passThrough(request, response, undefined, held);
    if (!isUncompressed(request.headers)) return refuse(415, 'Send the message uncompressed.');
    if (!isJsonInUtf8(request.headers)) return refuse(415, 'Send the message as application/json in UTF-8.');
    const body = await readBody(request, held).catch((error: unknown) => {
      if (error instanceof LimitExceeded) refuse(error.status, error.message);
      else throw error;
    });
    if (body === undefined) return;
    const parsed = readMessage(body);
    if ('refused' in parsed) return sendJson(response, unreadableReply(parsed.refused), 400);
    const { message } = parsed;
    const batch = refusedBatch(message);
    if (batch !== undefined) return sendJson(response, batch);
    const refused = refusedCall(message);
    if (refused !== undefined) return sendJson(response, refused, 400);
    const scope = callerScope(request);
    const session = request.headers['mcp-session-id'] as string | undefined;
    const callKey = (id: Id) => JSON.stringify([scope, session, idKey(id)]);
    const cancelled = cancelledId(message);
    // The call may have been sent already: it goes on, and its outcome is recorded.
    if (cancelled !== undefined && activeCalls.has(callKey(cancelled)))
      return void response.writeHead(202).end();
    if (isListRequest(message)) return passToolList(message, request, response, body);
    if (!isToolCall(message)) return passThrough(request, response, body, held);
    if (answering.size >= limits.openCalls)
      return refuse(503, `${limits.openCalls} calls are unanswered. Nothing ran: try again later.`);
    const guard = await calls.guardFor(message.params.name, () => findTool(message, request, scope));
    const context = request.headers[contextHeader];
    const caller = { scope, caller: scope, identity: typeof context === 'string' ? context : identity };
    if (guard === undefined) return passThrough(request, response, body, held);
    const exchange = createExchange(
      message.id,
      response,
      createUpstream(request, body, shutdown.signal),
      'call',
    );
    activeCalls.add(callKey(message.id));
    const work = guard
      .answer(message, caller, (key, signal) =>
        exchange.forward(key, AbortSignal.any([signal, shutdown.signal])),
      )
      .catch((error: unknown) => brokenReply(message.id, error))
      .then(exchange.finish)
      .finally(() => activeCalls.delete(callKey(message.id)));
    await track(work);
  }

  /** Passes the server's tool list on, with the tool that semel adds. */
  async function passToolList(
    message: { readonly id: Id },
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
  ): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, shutdown.signal]);
    const exchange = createExchange(message.id, response, createUpstream(request, body, signal), 'list');
    const reply = await exchange.forward(undefined, signal).then(
      (came) => calls.listed(message, came),
      (error: unknown) => brokenReply(message.id, error),
    );
    exchange.finish(reply);
  }

  function createUpstream(request: IncomingMessage, body: Buffer, signal: AbortSignal): Upstream {
    const headers = withoutCompression(request.headers);
    return {
      send: (key) =>
        sendUpstream(request, {
          method: 'POST',
          headers,
          body: key === undefined ? body : withKey(body, key, metaNames.key),
          signal,
        }).then(decompress),
      resume: (lastEventId) =>
        sendUpstream(request, {
          method: 'GET',
          headers: { ...headers, 'last-event-id': toLatin1(lastEventId), ...eventStreamHeaders },
          signal,
        }).then(decompress),
    };
  }

  /** Counts a connection's unanswered requests. Each could open another connection to the server. */
  function isWithinPipelineLimit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const before = unanswered.get(socket) ?? 0;
    unanswered.set(socket, before + 1);
    void untilClosed(response).then(() => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    return before < limits.pipelined;
  }

  function track(work: Promise<void>): Promise<void> {
    answering.add(work);
    return work.finally(() => answering.delete(work));
  }

  /** The tool as the server lists it to this caller. */
  function findTool(
    call: ToolCall,
    request: IncomingMessage,
    scope: string,
  ): Promise<ListedTool | undefined> {
    const { name, _meta } = call.params;
    const { progressToken: _, ...meta } = asRecord(_meta);
    return lists.find(scope, name, async (page) => {
      const params = { ...page, ...(_meta === undefined ? {} : { _meta: meta }) };
      const message = { jsonrpc: '2.0', id: `semel-${randomUUID()}`, method: 'tools/list', params };
      const own = Object.entries(request.headers).filter(([header]) => !header.startsWith('mcp-param-'));
      const answer = await send(targetFor(request), {
        method: 'POST',
        headers: withoutCompression(Object.fromEntries(own), {
          'mcp-method': 'tools/list',
          'mcp-name': undefined,
        }),
        body: Buffer.from(JSON.stringify(message)),
        // By then the call has gone on without the list. A reply that never ends would hold its connection.
        signal: AbortSignal.any([shutdown.signal, AbortSignal.timeout(listAgeMs)]),
      });
      return readReply(decompress(answer));
    });
  }

  async function passThrough(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer | undefined,
    held: Reservation,
  ): Promise<void> {
    // The client hung up: its `close` event has passed, so nothing would abort the server's answer.
    if (response.destroyed) return;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const { method, headers } = request;
    const answer = await sendUpstream(request, { method, headers, body, signal: gone.signal });
    // The server has the message. A stream that lasts for hours must not keep it reserved.
    held.end();
    response.writeHead(answer.statusCode ?? 502, forwardedHeaders(answer.headers));
    response.flushHeaders();
    answer.on('error', () => response.destroy());
    answer.pipe(response);
  }

  /** Never passes a redirect on: a client that followed it would bypass the ledger. */
  async function sendUpstream(request: IncomingMessage, sending: Sending): Promise<IncomingMessage> {
    const target = targetFor(request);
    const answer = await send(target, sending);
    const place = redirectTarget(answer, target);
    if (place === undefined) return answer;
    answer.resume();
    if (!hasWarnedOfMove)
      process.stderr.write(`semel: The server has moved. Start the proxy with --http ${shellWord(place)}\n`);
    hasWarnedOfMove = true;
    // 307 and 308 ask for the same request elsewhere, so nothing was done. Any other redirect may follow an effect.
    const isUndone = answer.statusCode === 307 || answer.statusCode === 308;
    throw isUndone ? new NotLanded(movedMessage) : new MaybeLanded(movedMessage);
  }

  /** The server never verifies the caller of a replay, so only facts that a stranger cannot make up count. */
  function callerScope({ headers, url = '' }: IncomingMessage): string {
    const { search: query } = new URL(url, upstream);
    const token = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    return digestCaller({ headers, query, ...(verifiedTokens ? { verified: { token } } : {}) });
  }

  function targetFor({ url = '' }: IncomingMessage): URL {
    const target = new URL(upstream);
    if (target.search === '') target.search = new URL(url, upstream).search;
    return target;
  }
}

/** Also resolves if it is closed already. */
function untilClosed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.closed) resolve();
    else response.once('close', resolve);
  });
}
