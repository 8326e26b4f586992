// The ledger over HTTP: limits, who may call, and the way of a request to its endpoint and back.

import {
  createServer as createPlain,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTls } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { isSemelError, SemelError } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import { createReservation, type Reservation } from '../core/reservations.ts';
import { isJsonInUtf8, isUncompressed, LimitExceeded, readBody } from '../mcp/index.ts';
import type { Context, Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import { readJson, writeJson } from './json.ts';
import type { Stream } from './live.ts';
import type { Logins } from './logins.ts';
import { describeApi } from './openapi.ts';
import type { PageFile, Pages } from './pages.ts';
import { failureText, forClient, type Problem, toProblem } from './problem.ts';
import { object, text } from './schema.ts';
import type { Spaces } from './space.ts';
import { type Credential, mayAct, type TokenEntry, type Tokens } from './tokens.ts';
import { createUnread, type Unread } from './unread.ts';

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

interface Reply {
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent after the headers, instead of the body. */
  readonly stream?: Stream['stream'];
}

/** What a request has shown. */
interface Seen {
  credential?: Credential;
  /** When its session ends. */
  leftMs?: number | undefined;
}

const loginBody = object({ code: text({ max: 200 }) });

const namespaceHeader = 'semel-namespace';

const safeHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
} as const;

export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { spaces, logins, pages, listen, tls, version } = options;
  const { tokens } = logins;
  const byPath = new Map<string, Endpoint[]>();
  for (const endpoint of endpoints)
    byPath.set(endpoint.path, [...(byPath.get(endpoint.path) ?? []), endpoint]);
  const unanswered = new WeakMap<Socket, number>();
  const unread = createUnread();
  const answering = new Set<Promise<void>>();
  let streams = 0;
  const closing = new AbortController();
  const api = JSON.stringify(describeApi(endpoints, version));
  const times = { requestTimeout: limits.requestMs, connectionsCheckingInterval: limits.requestMs / 4 };
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const work = answer(request, response)
      // Nothing that a request leads to may end the server.
      .catch(() => void request.socket.destroy())
      .finally(() => answering.delete(work));
    answering.add(work);
  };
  const server: Server =
    tls === undefined ? createPlain(times, handle) : createTls({ ...times, ...tls }, handle);
  server.maxConnections = limits.connections;
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
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      await Promise.race([Promise.allSettled(answering), patience]);
      clearTimeout(timer);
      server.closeAllConnections();
      await ended;
    },
  };

  function refuse(error: unknown): Reply {
    const failure = isClientsMistake(error) ? undefined : failureText(error);
    if (failure !== undefined) options.onFailure(failure);
    return toReply(error);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const held = createReservation();
    const gone = new AbortController();
    response.on('error', () => undefined);
    response.once('close', () => {
      // Nobody waits for an answer that was sent, and an abort makes an error with its stack.
      if (!response.writableFinished) gone.abort();
    });
    if (!server.listening) response.shouldKeepAlive = false;
    const seen: Seen = {};
    const { socket } = request;
    const before = unanswered.get(socket) ?? 0;
    unanswered.set(socket, before + 1);
    const path = pathOf(request);
    let reply: Written;
    try {
      if (before >= limits.pipelined)
        throw new Refusal(503, `This connection has ${before} unanswered requests.`);
      reply = write(await route(request, path, held, gone.signal, seen));
      // Each holds a connection for as long as it likes: without a limit, readers would keep workers out.
      if (reply.stream !== undefined && streams >= limits.eventStreams)
        throw new Refusal(503, `${streams} clients listen for events already.`, 'Ask again later.');
    } catch (error) {
      reply = write(refuse(error));
    } finally {
      held.end();
      unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1);
    }
    if (reply.stream === undefined) send(request, response, reply, unread);
    else if (!response.destroyed) {
      response.writeHead(reply.status, { ...safeHeaders, ...reply.headers });
      streams += 1;
      await reply
        .stream(writerOf(response), AbortSignal.any([gone.signal, closing.signal, ...endOf(seen.leftMs)]))
        .catch(() => undefined)
        .finally(() => {
          streams -= 1;
          response.end();
        });
    }
    options.onRequest?.({
      method: request.method ?? '',
      // A path that does not exist may hold anything.
      path: byPath.has(path) || path === '/metrics' ? path : 'other',
      status: reply.status,
      tookMs: performance.now() - startedAt,
      token: seen.credential?.name,
    });
  }

  async function route(
    request: IncomingMessage,
    path: string,
    held: Reservation,
    signal: AbortSignal,
    seen: Seen,
  ): Promise<Reply> {
    refuseOtherHosts(request, names);
    const page = request.method === 'GET' ? pages.find(path) : undefined;
    // A link from another page leads here: the files hold no data.
    if (page !== undefined) return pageReply(request, page);
    refuseStrangers(request, options.origins ?? []);
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
        return {
          status: isReady ? 200 : 503,
          body: { status: isReady ? 'ok' : 'the store does not answer' },
        };
      }
      if (path === '/openapi.json') return { status: 200, body: api };
    }
    const found = authenticate(request, tokens);
    // Any token may read them: they name no key, but they name tools and namespaces, which are nobody else's business.
    if (request.method === 'GET' && path === '/metrics') {
      seen.credential = { ...found, mayChoose: found.namespace === '*' };
      const text = await options.metrics.text(found.namespace === '*' ? undefined : found.namespace);
      return { status: 200, body: text, headers: { 'content-type': options.metrics.contentType } };
    }
    const credential = {
      name: found.name,
      role: found.role,
      namespace: chooseNamespace(request, found),
      mayChoose: found.namespace === '*',
    };
    seen.credential = credential;
    seen.leftMs = logins.leftMs(found);
    const choices = byPath.get(path);
    if (choices === undefined)
      throw new Refusal(404, `There is no ${path.slice(0, 200)}.`, 'See /openapi.json.');
    const endpoint = choices.find(({ method }) => method === request.method);
    if (endpoint === undefined)
      throw new Refusal(405, `Use ${choices.map(({ method }) => method).join(' or ')}.`);
    if (!mayAct(credential.role, endpoint.role))
      throw new SemelError('NOT_PERMITTED', `The token ${credential.name} has the role ${credential.role}.`, {
        next: `Use a token with the role ${endpoint.role}.`,
      });
    const context: Context = {
      space: spaces.of(credential.namespace),
      spaces,
      credential,
      signal,
      logins: { createCode: () => logins.createCode(found) },
    };
    if (endpoint.method === 'GET') return run(endpoint, queryOf(request), context);
    const body = readJson(await bodyOf(request, held));
    if (endpoint.isBatch === true && isBatch(body)) return runBatch(endpoint, body, context, refuse);
    return run(endpoint, body, context);
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

async function run({ input, run: act }: Endpoint, given: unknown, context: Context): Promise<Reply> {
  const body = await act(input.read(given, '') as never, context);
  if (!isStream(body)) return { status: 200, body };
  return { status: 200, body: '', headers: { 'content-type': 'text/event-stream' }, stream: body.stream };
}

function isStream(body: object): body is Stream {
  return typeof (body as Partial<Stream>).stream === 'function';
}

/** A session that is over listens no longer. */
function endOf(leftMs: number | undefined): readonly AbortSignal[] {
  return leftMs === undefined ? [] : [AbortSignal.timeout(Math.ceil(leftMs))];
}

/** Ends the stream of a client that does not read: it must not fill the memory. */
function writerOf(response: ServerResponse): (text: string) => void {
  return (text) => {
    // Ending it would keep what it has not read, for as long as it stays.
    if (response.writableLength > limits.unreadBytes / 64) response.destroy();
    else if (!response.destroyed) response.write(text);
  };
}

function pageReply(
  { headers: { 'accept-encoding': accepted = '' } }: IncomingMessage,
  page: PageFile,
): Reply {
  if (!/\bgzip\b/.test(String(accepted))) return { status: 200, body: page.bytes, headers: page.headers };
  return {
    status: 200,
    body: page.zipped,
    headers: { ...page.headers, 'content-encoding': 'gzip', vary: 'accept-encoding' },
  };
}

/** Each item succeeds or fails by itself. */
async function runBatch(
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
    return bytes <= limits.answerBytes
      ? reply
      : toReply(new Refusal(503, tooLong, 'Send this item by itself.'));
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

function isBatch(body: unknown): body is { readonly items: readonly unknown[] } {
  return typeof body === 'object' && body !== null && Array.isArray((body as { items?: unknown }).items);
}

/** Before anything is looked up: neither a code of semel's nor a record. */
class Refusal extends Error {
  readonly status: number;
  readonly next: string;
  constructor(status: number, message: string, next = 'Correct the request.') {
    super(message);
    this.status = status;
    this.next = next;
  }
}

function isClientsMistake(error: unknown): error is Refusal | LimitExceeded {
  return error instanceof Refusal || error instanceof LimitExceeded;
}

function toReply(error: unknown): Reply {
  if (isSemelError(error)) {
    const problem = toProblem(forClient(error));
    return problemReply(problem, problem.retryAfterMs);
  }
  if (isClientsMistake(error)) {
    const next = error instanceof Refusal ? error.next : 'Send less, or try again later.';
    const refused = new SemelError('INVALID_ARGS', error.message, { next, retriable: error.status === 503 });
    return problemReply(toProblem(refused, error.status), error.status === 503 ? 1_000 : undefined);
  }
  // A mistake of the server: its words may hold anything.
  const unknown = new SemelError('STORE_UNAVAILABLE', 'The server failed.', {
    next: 'Ask its operator to look into its log.',
    retriable: false,
  });
  return { ...problemReply(toProblem(unknown, 500)), headers: { ...problemHeaders } };
}

const problemHeaders = { 'content-type': 'application/problem+json' } as const;

function problemReply(problem: Problem, retryAfterMs?: number): Reply {
  const delay = problem.retriable || problem.status === 503 ? retryAfterMs : undefined;
  return {
    status: problem.status,
    body: problem,
    headers: {
      ...problemHeaders,
      ...(delay === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(delay / 1_000))) }),
      ...(problem.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    },
  };
}

interface Written extends Omit<Reply, 'body'> {
  readonly text: string | Buffer;
}

/** Throws where the text would be too long for JavaScript. */
function write({ body, ...reply }: Reply): Written {
  return { ...reply, text: typeof body === 'string' || Buffer.isBuffer(body) ? body : writeJson(body) };
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, text, headers }: Written,
  unread: Unread,
): void {
  if (response.destroyed) return;
  const bytes = Buffer.byteLength(text);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes,
    ...safeHeaders,
    ...headers,
    // What was not read would be taken for the next request.
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
  unread.count(response, request.socket, bytes);
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

function queryOf({ url = '/' }: IncomingMessage): Record<string, string> {
  const at = url.indexOf('?');
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(at < 0 ? '' : url.slice(at))) {
    if (Object.hasOwn(query, name)) throw new Refusal(400, `\`${name.slice(0, 50)}\` appears twice.`);
    query[name] = value;
  }
  return { ...query };
}

async function bodyOf(
  request: IncomingMessage,
  held: Reservation,
  maxBytes: number = limits.requestBytes,
): Promise<Buffer> {
  const { headers } = request;
  if (!isUncompressed(headers)) throw new Refusal(415, 'The body is compressed.', 'Send it uncompressed.');
  if (!isJsonInUtf8(headers))
    throw new Refusal(415, 'The body is not JSON.', 'Send it as application/json in UTF-8.');
  return readBody(request, held, maxBytes).catch((error: unknown) => {
    // The client hung up. As a failure of the server, it would keep real ones out of the operator's log.
    throw error instanceof LimitExceeded ? error : new Refusal(400, 'The body broke off.');
  });
}

function authenticate({ headers }: IncomingMessage, tokens: Tokens): TokenEntry {
  const shown = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const found = tokens.find(shown);
  if (found !== undefined) return found;
  throw new Refusal(
    401,
    shown === undefined ? 'There is no token.' : 'The token is not valid.',
    shown === undefined
      ? 'Send the header `Authorization: Bearer <token>`.'
      : 'Use the token in the file that `semel serve` named when it started, or one that `semel serve token` made.',
  );
}

function chooseNamespace({ headers }: IncomingMessage, { namespace, name }: TokenEntry): string {
  const named = headers[namespaceHeader];
  if (namespace !== '*') {
    if (named === undefined || named === namespace) return namespace;
    throw new SemelError('NOT_PERMITTED', `The token ${name} is for another namespace.`, {
      next: 'Leave out the header Semel-Namespace, or use a token for that namespace.',
    });
  }
  const chosen = named ?? 'default';
  if (typeof chosen === 'string' && /^[!-~]{1,200}$/.test(chosen)) return chosen;
  throw new Refusal(400, 'Semel-Namespace is not a name.', 'Send 1 to 200 visible ASCII characters.');
}

/** Refuses host names that were rebound to this machine. */
function refuseOtherHosts({ headers: { host = '' } }: IncomingMessage, names: readonly string[]): void {
  if (!names.includes(host.toLowerCase()))
    throw new Refusal(
      421,
      'This server has another name.',
      'Use the address that it printed, or --allow-host.',
    );
}

/** Refuses web pages of other origins. Another port of the same host is another program's. */
function refuseStrangers({ headers }: IncomingMessage, origins: readonly string[]): void {
  const { host, origin, 'sec-fetch-site': site } = headers;
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  const isAsked = site === undefined || site === 'same-origin' || site === 'none';
  if ((!isOwn || !isAsked) && !origins.includes(origin ?? ''))
    throw new Refusal(403, 'Web pages of this origin may not call.', 'Allow it with --allow-origin.');
}

/** Only this machine can reach it. */
export function isLoopback(host: string): boolean {
  return /^(127(\.\d+){3}|localhost|::1)$/.test(host);
}

/** As browsers and clients write them in Host. */
function hostNames(host: string, port: number, more: readonly string[]): readonly string[] {
  const own = host.includes(':') ? `[${host}]` : host;
  const names = [own, ...(isLoopback(host) ? ['localhost', '127.0.0.1', '[::1]'] : []), ...more].map((name) =>
    name.toLowerCase(),
  );
  return [...new Set(names.flatMap((name) => (/:\d+$/.test(name) ? [name] : [`${name}:${port}`, name])))];
}
