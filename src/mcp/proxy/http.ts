// The proxy in front of a server that talks streamable HTTP. A POST with a tools/call goes through the ledger; everything
// else is passed on as it is. A client that hangs up does not end what it has begun.

import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { digestCaller } from '../../core/caller.ts';
import { handoffHeader } from '../../core/handoff-places.ts';
import { limits } from '../../core/limits.ts';
import { MaybeLanded, NotLanded } from '../../core/signals.ts';
import { shellWord } from '../../core/visible.ts';
import type { Ambient } from '../../semel/index.ts';
import { type Holding, holding } from '../protocol/held.ts';
import {
  broken,
  cancelledBy,
  fieldsOf,
  type Id,
  idKey,
  isListRequest,
  isToolCall,
  type ListedTool,
  read,
  refusal,
  refusedBatch,
  refusedCall,
  type ToolCall,
  unreadable,
} from '../protocol/messages.ts';
import { metaNames } from './asked.ts';
import { exchangeFor, type Upstream } from './exchange.ts';
import { replyIn } from './reply-in.ts';
import { withKey } from './sent-key.ts';
import type { ToolCalls } from './tool-calls.ts';
import { listAgeMs, toolLists } from './tool-lists.ts';
import { disconnectIfUnread } from './unread.ts';
import {
  BeyondLimit,
  bodyOf,
  elsewhere,
  type Headers,
  isJsonInUtf8,
  isKnown,
  isPlain,
  isWelcome,
  passed,
  readable,
  type Sending,
  send,
  sendJson,
  tokenHeader,
  unpacked,
} from './wire.ts';

export interface HttpOptions {
  readonly upstream: URL;
  readonly host: string;
  readonly port: number;
  readonly calls: ToolCalls;
  readonly identity: Ambient;
  /** Callers have to show it; undefined: whoever reaches the port may call. */
  readonly token: string | undefined;
  /** Something in front has verified them, so the subject of a JWT is believed. */
  readonly verifiedTokens: boolean;
  /** Pages of these origins may call, besides those of this machine. */
  readonly origins: readonly string[];
  /** How long begun calls are waited for at the end. */
  readonly graceMs: number;
}

export interface HttpProxy {
  readonly url: string;
  /** Waits for what was begun. */
  close(): Promise<void>;
}

/** The hand-off of who asks, where the client can set a header and no `_meta`; as Node.js spells headers. */
const contextHeader = handoffHeader.toLowerCase();

/** Of a request that is no POST. */
const asEvents = { accept: 'text/event-stream', 'content-type': undefined, 'mcp-method': undefined };
const moved = 'The server is at another address than the proxy was told.';

/** Node.js takes each character of a header for one byte; an id is UTF-8. */
const inBytes = (text: string) => Buffer.from(text).toString('latin1');

export async function proxyHttp(options: HttpOptions): Promise<HttpProxy> {
  const { upstream, calls, identity, token, origins, graceMs, verifiedTokens } = options;
  /** A server may list other tools to another caller. */
  const lists = toolLists();
  const answering = new Set<Promise<void>>();
  const inHand = new Set<string>();
  /** Requests of a connection that are not answered yet. */
  const unanswered = new WeakMap<Socket, number>();
  /** Nothing is waited for any more: a server that never ends its answer would keep this process. */
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let isMoved = false;
  // Node.js looks for late requests so often only.
  const times = { requestTimeout: limits.requestMs, connectionsCheckingInterval: limits.requestMs / 4 };
  const server = createServer(times, (request, response) => {
    response.on('error', () => undefined);
    disconnectIfUnread(response);
    // A client that keeps its connection busy would be served for as long as begun calls are waited for.
    if (!server.listening) response.shouldKeepAlive = false;
    const held = holding();
    const served = serve(request, response, held).catch(() => {
      sendJson(response, refusal(null, -32603, 'The server could not be reached.'), 502);
    });
    // A call goes on without its client, and keeps its message until it has ended.
    void Promise.all([served, closed(response)]).then(held.end);
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
      over.abort();
      server.closeAllConnections();
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse, held: Holding): Promise<void> {
    const { pathname } = new URL(request.url ?? '', upstream);
    const refuse = (status: number, message: string) =>
      sendJson(response, refusal(null, -32600, message), status);
    if (!isNext(request, response))
      return refuse(503, `${limits.pipelined} requests of this connection are not answered yet.`);
    if (!isWelcome(request, origins)) return refuse(403, 'This origin or host may not call.');
    if (token !== undefined && !isKnown(request, token))
      return refuse(401, `Send the token of the proxy as the header ${tokenHeader}.`);
    if (pathname !== upstream.pathname) return refuse(404, 'Only the server is here.');
    if (request.method !== 'POST') return passOn(request, response, undefined, held);
    if (!isPlain(request.headers)) return refuse(415, 'Send the message as it is, not compressed.');
    if (!isJsonInUtf8(request.headers)) return refuse(415, 'Send the message as application/json in UTF-8.');
    const body = await bodyOf(request, held).catch((error: unknown) => {
      if (error instanceof BeyondLimit) refuse(error.status, error.message);
      else throw error;
    });
    if (body === undefined) return;
    const taken = read(body);
    if ('refused' in taken) return sendJson(response, unreadable(taken.refused), 400);
    const { message } = taken;
    const batch = refusedBatch(message);
    if (batch !== undefined) return sendJson(response, batch);
    const refused = refusedCall(message);
    if (refused !== undefined) return sendJson(response, refused, 400);
    const scope = scopeOf(request);
    const session = request.headers['mcp-session-id'] as string | undefined;
    const handOf = (id: Id) => JSON.stringify([scope, session, idKey(id)]);
    const cancelled = cancelledBy(message);
    // What may have been sent is not unsent by losing interest: it goes on, and its end is recorded.
    if (cancelled !== undefined && inHand.has(handOf(cancelled))) return void response.writeHead(202).end();
    if (isListRequest(message)) return list(message, request, response, body);
    if (!isToolCall(message)) return passOn(request, response, body, held);
    if (answering.size >= limits.openCalls)
      return refuse(503, `${limits.openCalls} calls are not answered yet. Nothing was run.`);
    const guard = await calls.guardFor(message.params.name, () => listed(message, request.headers, scope));
    const context = request.headers[contextHeader];
    const said = typeof context === 'string' ? context : identity;
    const caller = { scope, caller: scope, identity: said };
    if (guard === undefined) return passOn(request, response, body, held);
    const exchange = exchangeFor(message.id, response, upstreamOf(request, body, over.signal));
    inHand.add(handOf(message.id));
    const work = guard
      .answer(message, caller, (key, signal) => exchange.forward(key, AbortSignal.any([signal, over.signal])))
      .catch((error: unknown) => broken(message.id, error))
      .then(exchange.finish)
      .finally(() => inHand.delete(handOf(message.id)));
    await track(work);
  }

  /** The server's list of tools, with the one that semel adds. */
  async function list(
    message: { readonly id: Id },
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
  ): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, over.signal]);
    const exchange = exchangeFor(message.id, response, upstreamOf(request, body, signal));
    const reply = await exchange.forward(undefined, signal).then(
      (came) => calls.listed(message, came),
      (error: unknown) => broken(message.id, error),
    );
    exchange.finish(reply);
  }

  /** The server of a message, with what its client said of itself. */
  function upstreamOf(request: IncomingMessage, body: Buffer, signal: AbortSignal): Upstream {
    const headers = readable(request.headers);
    return {
      send: (key) =>
        ask(request, {
          method: 'POST',
          headers,
          body: key === undefined ? body : withKey(body, key, metaNames.key),
          signal,
        }).then(unpacked),
      resume: (lastEventId) =>
        ask(request, {
          method: 'GET',
          headers: { ...headers, 'last-event-id': inBytes(lastEventId), ...asEvents },
          signal,
        }).then(unpacked),
    };
  }

  /** False: its connection has sent too many before the first was answered. Each could open another one to the server. */
  function isNext({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const before = unanswered.get(socket) ?? 0;
    unanswered.set(socket, before + 1);
    void closed(response).then(() => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    return before < limits.pipelined;
  }

  function track(work: Promise<void>): Promise<void> {
    answering.add(work);
    return work.finally(() => answering.delete(work));
  }

  /** As the server lists it to this caller. */
  function listed(call: ToolCall, headers: Headers, scope: string): Promise<ListedTool | undefined> {
    const { name, _meta } = call.params;
    const { progressToken: _, ...meta } = fieldsOf(_meta);
    return lists.find(scope, name, async (page) => {
      const params = { ...page, ...(_meta === undefined ? {} : { _meta: meta }) };
      const message = { jsonrpc: '2.0', id: `semel-${randomUUID()}`, method: 'tools/list', params };
      const own = Object.entries(headers).filter(([header]) => !header.startsWith('mcp-param-'));
      const answer = await send(upstream, {
        method: 'POST',
        headers: readable(Object.fromEntries(own), { 'mcp-method': 'tools/list', 'mcp-name': undefined }),
        body: Buffer.from(JSON.stringify(message)),
        // The call has gone on without the list by then; one that never ends would keep its connection.
        signal: AbortSignal.any([over.signal, AbortSignal.timeout(listAgeMs)]),
      });
      return replyIn(unpacked(answer));
    });
  }

  async function passOn(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer | undefined,
    held: Holding,
  ): Promise<void> {
    // Its client has hung up meanwhile: nothing would ever end what the server answers.
    if (response.destroyed) return;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const { method, headers } = request;
    const answer = await ask(request, { method, headers, body, signal: gone.signal });
    // The server has the message: an answer that goes on for hours must not count it.
    held.end();
    response.writeHead(answer.statusCode ?? 502, passed(answer.headers));
    response.flushHeaders();
    answer.on('error', () => response.destroy());
    answer.pipe(response);
  }

  /** A redirect is not passed on: a client that followed it would talk to the server itself, past the ledger. */
  async function ask(request: IncomingMessage, sending: Sending): Promise<IncomingMessage> {
    const target = targetOf(request);
    const answer = await send(target, sending);
    const place = elsewhere(answer, target);
    if (place === undefined) return answer;
    answer.resume();
    if (!isMoved)
      process.stderr.write(
        `semel: The server is at another address: start with --http ${shellWord(place)}\n`,
      );
    isMoved = true;
    // The same message is wanted there, so nothing was done with it here; any other redirect may follow a deed.
    const isUndone = answer.statusCode === 307 || answer.statusCode === 308;
    throw isUndone ? new NotLanded(moved) : new MaybeLanded(moved);
  }

  /** The server is not asked whose a call is that the ledger answers, so nothing that could be made up counts. */
  function scopeOf({ headers, url = '' }: IncomingMessage): string {
    const { search: query } = new URL(url, upstream);
    const token = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    return digestCaller({ headers, query, ...(verifiedTokens ? { verified: { token } } : {}) });
  }

  function targetOf({ url = '' }: IncomingMessage): URL {
    const target = new URL(upstream);
    if (target.search === '') target.search = new URL(url, upstream).search;
    return target;
  }
}

/** Resolves too where it was closed before anybody asked. */
function closed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.closed) resolve();
    else response.once('close', resolve);
  });
}
