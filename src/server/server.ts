// The ledger over HTTP: limits, who may call, and the way of a request to its endpoint and back.

import {
  createServer as createPlain,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTls } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { SemelError } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import { createReservation, type Reservation } from '../core/reservations.ts';
import { isTraceparent } from '../signals/index.ts';
import {
  authenticate,
  checkOrigins,
  chooseNamespace,
  crossOriginHeaders,
  hostNames,
  isPreflight,
  preflightHeaders,
  refuseOtherHosts,
  refuseStrangers,
} from './access/admission.ts';
import type { Logins } from './access/logins.ts';
import { type Proxies, refuseUnencrypted } from './access/proxy.ts';
import { type Credential, mayAct } from './access/tokens.ts';
import type { Context, Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import { readJson } from './exchange/json.ts';
import type { PageFile, Pages } from './exchange/pages.ts';
import { failureText } from './exchange/problem.ts';
import {
  isClientsMistake,
  pageReply,
  Refusal,
  type Reply,
  safeHeaders,
  send,
  toReply,
  type Written,
  write,
  writerOf,
} from './exchange/reply.ts';
import { bodyOf, pathOf, queryOf } from './exchange/request.ts';
import { object, text } from './exchange/schema.ts';
import { createUnread } from './exchange/unread.ts';
import { describeApi } from './openapi.ts';
import { describeApiPage } from './openapi-page.ts';
import { createPlaces } from './places.ts';
import { isBatch, run, runBatch } from './run.ts';
import type { Spaces } from './space.ts';
import type { Stream } from './views/live.ts';

export interface ServeOptions {
  readonly spaces: Spaces;
  readonly logins: Logins;
  readonly pages: Pages;
  readonly version: string;
  /** A unix socket, or a host and a port. */
  readonly listen: { readonly socket: string } | { readonly host: string; readonly port: number };
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Further names by which clients reach it, as in the header Host. */
  readonly hosts?: readonly string[];
  /** Only these may connect, and they do TLS. */
  readonly proxies?: Proxies;
  /** Web pages of these origins may call. */
  readonly origins?: readonly string[];
  /** Called after each request: for logs. Neither path parameters nor bodies. */
  readonly onRequest?: (request: Served) => void;
  /** The server or its store failed: for the operator, since clients are not told more. */
  readonly onFailure: (message: string) => void;
  /** True if the store can be written. */
  readonly isReady: () => Promise<boolean>;
  /** For Prometheus: of one namespace, or of all. */
  readonly metrics: { readonly contentType: string; text(namespace?: string): Promise<string> };
}

export interface Served {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly tookMs: number;
  readonly token: string | undefined;
}

export interface RunningServer {
  readonly url: string;
  /** Lets requests end that have begun. */
  close(graceMs: number): Promise<void>;
}

const loginBody = object({ code: text({ max: 200 }) });

export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { spaces, logins, pages, listen, tls, version, proxies, origins = [] } = options;
  checkOrigins(origins);
  const { tokens } = logins;
  const byPath = new Map<string, Endpoint[]>();
  for (const endpoint of endpoints)
    byPath.set(endpoint.path, [...(byPath.get(endpoint.path) ?? []), endpoint]);
  const unanswered = new WeakMap<Socket, number>();
  const unread = createUnread();
  let answering = 0;
  let onAnswered: () => void = () => undefined;
  const streams = createPlaces(limits.eventStreams);
  const closing = new AbortController();
  const description = describeApi(endpoints, version);
  const api = JSON.stringify(description);
  const apiPage = describeApiPage(description);
  const times = { requestTimeout: limits.requestMs, connectionsCheckingInterval: limits.requestMs / 4 };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    answering += 1;
    try {
      await answer(request, response);
    } catch {
      // Nothing that a request leads to may end the server.
      request.socket.destroy();
    } finally {
      answering -= 1;
      if (answering === 0) onAnswered();
    }
  };
  const server: Server =
    tls === undefined ? createPlain(times, handle) : createTls({ ...times, ...tls }, handle);
  server.maxConnections = limits.connections;
  if (proxies !== undefined) {
    let refused = 0;
    let toldAt = Number.NEGATIVE_INFINITY;
    server.prependListener('connection', (socket: Socket) => {
      if (proxies.mayConnect(socket)) return;
      const { remoteAddress = 'a client that left' } = socket;
      socket.destroy();
      refused += 1;
      // Strangers must not fill the log.
      if (performance.now() - toldAt < 60_000) return;
      options.onFailure(
        `${refused} connections were refused: only the proxy may connect, and the last one was ${remoteAddress}.`,
      );
      refused = 0;
      toldAt = performance.now();
    });
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if ('socket' in listen) listenPrivately(server, listen.socket, resolve);
    else server.listen(listen.port, listen.host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' ? (address as AddressInfo).port : 0;
  const names = 'socket' in listen ? ['localhost'] : hostNames(listen.host, port, options.hosts ?? []);
  return {
    url:
      'socket' in listen ? `unix:${listen.socket}` : `${tls === undefined ? 'http' : 'https'}://${names[0]}`,
    async close(graceMs) {
      closing.abort();
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        onAnswered = resolve;
        if (answering === 0) resolve();
        timer = setTimeout(resolve, graceMs);
      });
      clearTimeout(timer);
      server.closeAllConnections();
      await ended;
    },
  };

  function findPage(path: string): PageFile | undefined {
    return path === '/docs' ? apiPage : pages.find(path);
  }

  function refuse(error: unknown): Reply {
    const failure = isClientsMistake(error) ? undefined : failureText(error);
    if (failure !== undefined) options.onFailure(failure);
    return toReply(error);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const held = createReservation();
    const client = new Client(response);
    response.on('error', ignore);
    if (!server.listening) response.shouldKeepAlive = false;
    const { socket } = request;
    const before = unanswered.get(socket) ?? 0;
    unanswered.set(socket, before + 1);
    const path = pathOf(request);
    let reply: Written;
    try {
      if (before >= limits.pipelined)
        throw new Refusal(503, `This connection has ${before} unanswered requests.`);
      reply = write(await route(request, path, held, client));
      // Each holds a connection for as long as it likes: without a limit, readers would keep workers out.
      if (reply.stream !== undefined && !streams.take(client.namespace))
        throw new Refusal(503, 'Too many clients listen for events already.', 'Ask again later.');
    } catch (error) {
      reply = write(refuse(error));
    } finally {
      held.end();
      unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1);
    }
    reply = { ...reply, headers: withVary({ ...reply.headers }, crossOriginHeaders(request, origins)) };
    if (reply.stream === undefined) send(request, response, reply, unread);
    else await stream(response, reply, reply.stream, client);
    options.onRequest?.({
      method: request.method ?? '',
      // A path that does not exist may hold anything.
      path: byPath.has(path) || path === '/metrics' ? path : 'other',
      status: reply.status,
      tookMs: performance.now() - startedAt,
      token: client.credential?.name,
    });
  }

  async function stream(
    response: ServerResponse,
    { status, headers }: Written,
    to: Stream['stream'],
    client: Client,
  ): Promise<void> {
    try {
      if (response.destroyed) return;
      response.writeHead(status, { ...safeHeaders, ...headers });
      await to(writerOf(response), AbortSignal.any([client.signal, closing.signal, ...endOf(client.leftMs)]));
    } catch {
      // It ends, and the client asks again.
    } finally {
      streams.leave(client.namespace);
      response.end();
    }
  }

  async function route(
    request: IncomingMessage,
    path: string,
    held: Reservation,
    client: Client,
  ): Promise<Reply> {
    refuseOtherHosts(request, names);
    if (proxies !== undefined) refuseUnencrypted(request);
    const page = request.method === 'GET' ? findPage(path) : undefined;
    // A link from another page leads here: the files hold no data.
    if (page !== undefined) return pageReply(request, page);
    refuseStrangers(request, origins);
    if (isPreflight(request)) return { status: 200, body: '', headers: preflightHeaders };
    if (path === '/login' && request.method === 'POST') {
      // Anybody may send one: halves of long ones would take the room of those who have a token.
      const { code } = loginBody.read(readJson(await bodyOf(request, held, limits.loginBytes)), '');
      const session = logins.redeem(code);
      if (session !== undefined) return { status: 200, body: session };
      throw new Refusal(
        401,
        'This link was used already, or is older than five minutes.',
        'Run `semel ui` again.',
      );
    }
    if (request.method === 'GET') {
      if (path === '/livez') return { status: 200, body: { status: 'ok' } };
      if (path === '/readyz') {
        const isReady = await options.isReady();
        const later: Readonly<Record<string, string>> = isReady ? {} : { 'retry-after': '1' };
        return {
          status: isReady ? 200 : 503,
          body: { status: isReady ? 'ok' : 'the store does not answer' },
          headers: later,
        };
      }
      if (path === '/openapi.json') return { status: 200, body: api };
    }
    const found = authenticate(request, tokens);
    // Any token may read them: they name no key, but they name tools and namespaces, which are nobody else's business.
    if (request.method === 'GET' && path === '/metrics') {
      client.credential = { ...found, mayChoose: found.namespace === '*' };
      const text = await options.metrics.text(found.namespace === '*' ? undefined : found.namespace);
      return { status: 200, body: text, headers: { 'content-type': options.metrics.contentType } };
    }
    const credential = {
      name: found.name,
      role: found.role,
      namespace: chooseNamespace(request, found),
      mayChoose: found.namespace === '*',
    };
    client.credential = credential;
    client.leftMs = logins.leftMs(found);
    const choices = byPath.get(path);
    if (choices === undefined)
      throw new Refusal(404, `There is no ${path.slice(0, 200)}.`, 'See /docs, or /openapi.json.');
    const endpoint = choices.find(({ method }) => method === request.method);
    if (endpoint === undefined)
      throw new Refusal(405, `Use ${choices.map(({ method }) => method).join(' or ')}.`);
    if (!mayAct(credential.role, endpoint.role))
      throw new SemelError('NOT_PERMITTED', `The token ${credential.name} has the role ${credential.role}.`, {
        next: `Use a token with the role ${endpoint.role}.`,
      });
    const own = { createCode: () => logins.createCode(found) };
    const context = new Asked(client, credential, spaces, own, request.headers.traceparent);
    if (endpoint.method === 'GET') return run(endpoint, queryOf(request), context);
    const body = readJson(await bodyOf(request, held));
    if (endpoint.isBatch === true && isBatch(body)) return runBatch(endpoint, body, context, refuse);
    return run(endpoint, body, context);
  }
}

/** Who waits for an answer, and what the request has shown. */
class Client {
  readonly #response: ServerResponse;
  #gone: AbortController | undefined;
  credential: Credential | undefined;
  /** When its session ends. */
  leftMs: number | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get namespace(): string {
    return this.credential?.namespace ?? '';
  }

  /** Nobody waits for an answer that was sent, and an abort makes an error with its stack. */
  get hasLeft(): boolean {
    return this.#response.destroyed && !this.#response.writableFinished;
  }

  get signal(): AbortSignal {
    if (this.#gone === undefined) {
      const gone = new AbortController();
      this.#gone = gone;
      if (this.hasLeft) gone.abort();
      this.#response.once('close', () => {
        if (this.hasLeft) gone.abort();
      });
    }
    return this.#gone.signal;
  }
}

const ignore = () => undefined;

/** A class, since getters of an object literal would make a dictionary for each request. */
class Asked implements Context {
  readonly #client: Client;
  readonly credential: Credential;
  readonly space: Context['space'];
  readonly spaces: Context['spaces'];
  readonly logins: Context['logins'];
  readonly traceparent: string | undefined;

  constructor(
    client: Client,
    credential: Credential,
    spaces: Spaces,
    logins: Context['logins'],
    traceparent: unknown,
  ) {
    this.traceparent = isTraceparent(traceparent) ? traceparent : undefined;
    this.#client = client;
    this.credential = credential;
    this.space = spaces.of(credential.namespace);
    this.spaces = spaces;
    this.logins = logins;
  }

  get hasLeft(): boolean {
    return this.#client.hasLeft;
  }

  get signal(): AbortSignal {
    return this.#client.signal;
  }
}

/** Nobody else can open the socket, not even between its creation and a change of its mode. */
function listenPrivately(server: Server, path: string, onListening: () => void): void {
  const mask = process.umask(0o177);
  try {
    server.listen({ path }, onListening);
  } finally {
    process.umask(mask);
  }
}

function withVary(
  own: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return own.vary === undefined || more.vary === undefined
    ? { ...own, ...more }
    : { ...own, ...more, vary: `${own.vary}, ${more.vary}` };
}

/** A session that is over listens no longer. */
function endOf(leftMs: number | undefined): readonly AbortSignal[] {
  return leftMs === undefined ? [] : [AbortSignal.timeout(Math.ceil(leftMs))];
}
