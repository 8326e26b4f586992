// The proxy in front of a server that talks streamable HTTP. A POST with a tools/call goes through the ledger; everything
// else is passed on as it is. A client that hangs up does not end what it has begun.

import { createServer, type IncomingMessage, request as plainRequest, type ServerResponse } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { fateOfError } from '../core/classify.ts';
import { shortDigest } from '../core/key.ts';
import { MaybeLanded, NotLanded } from '../core/signals.ts';
import type { Ambient } from '../semel/index.ts';
import { eventReader } from './events.ts';
import { longestLine } from './lines.ts';
import {
  broken,
  callsIn,
  fieldsOf,
  idKey,
  isReply,
  isToolCall,
  type ListedTool,
  parsed,
  type Reply,
  type ToolCall,
  toolsIn,
  unbatched,
} from './messages.ts';
import type { ToolCalls } from './tool-calls.ts';

export interface HttpOptions {
  readonly upstream: URL;
  readonly host: string;
  readonly port: number;
  readonly calls: ToolCalls;
  readonly identity: Ambient;
  /** Pages of these origins may call, besides those of this machine. */
  readonly origins: readonly string[];
}

export interface HttpProxy {
  readonly url: string;
  /** Waits for what was begun. */
  close(): Promise<void>;
}

type Headers = IncomingMessage['headers'];

export async function proxyHttp(options: HttpOptions): Promise<HttpProxy> {
  const { upstream, calls, identity } = options;
  const tools = new Map<string, ListedTool>();
  const answering = new Set<Promise<void>>();
  const server = createServer((request, response) => {
    const work = serve(request, response).catch((error: unknown) => fail(response, 502, String(error)));
    answering.add(work);
    void work.finally(() => answering.delete(work));
  });
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${upstream.pathname}`,
    async close() {
      server.close();
      await Promise.allSettled(answering);
      server.closeAllConnections();
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isWelcome(request, options.origins)) return fail(response, 403, 'This origin may not call.');
    if (request.method !== 'POST') return passOn(request, response, undefined);
    const body = await bodyOf(request);
    if (body === undefined) return fail(response, 413, 'The message is too long.');
    const message = parsed(body.toString());
    const batched = callsIn(message);
    if (batched.length > 0)
      return send(
        response,
        batched.map(({ id }) => unbatched(id)),
      );
    if (!isToolCall(message)) return passOn(request, response, body);
    const scope = shortDigest('caller', request.headers.authorization ?? '');
    const guard = calls.guardFor(await toolOf(message, request, scope));
    if (guard === undefined) return passOn(request, response, body);
    const exchange = forwarding(request, response, body, message);
    const reply = await guard
      .answer(message, { scope, identity }, exchange.forward)
      .catch((error: unknown) => broken(message.id, error));
    exchange.finish(reply);
  }

  /** One call at the server: its other messages are passed on as they come, its answer is held back. */
  function forwarding(request: IncomingMessage, response: ServerResponse, body: Buffer, call: ToolCall) {
    let isStreaming = false;
    let refused: (() => void) | undefined;
    const forward = async (): Promise<Reply> => {
      const answer = await ask(request, body, {}).catch((error: unknown) => {
        throw fateOfError(error) === 'not sent' ? new NotLanded(String(error)) : error;
      });
      const { statusCode: status = 502, headers } = answer;
      if (status < 200 || status > 299) {
        const words = await bytesOf(answer);
        refused = () => void response.writeHead(status, cleaned(headers)).end(words);
        const happened = `The server answered ${status}.`;
        throw isRefusal(status) ? new NotLanded(happened) : new MaybeLanded(happened);
      }
      if (!isEventStream(headers)) {
        const reply = parsed((await bytesOf(answer)).toString());
        if (!isReply(reply)) throw new MaybeLanded('The server did not answer the call.');
        for (const [name, value] of Object.entries(kept(headers))) response.setHeader(name, value);
        return reply;
      }
      isStreaming = true;
      response.writeHead(200, cleaned(headers));
      let reply: Reply | undefined;
      const events = eventReader((event, data) => {
        const message = data === undefined ? undefined : parsed(data);
        if (isReply(message) && idKey(message.id) === idKey(call.id)) reply = message;
        else response.write(event);
      });
      for await (const chunk of answer) events.read(chunk as Buffer);
      if (reply === undefined) throw new MaybeLanded('The server ended its answer before the result.');
      return reply;
    };
    const finish = (reply: Reply): void => {
      if (refused !== undefined) refused();
      else if (isStreaming) response.end(`event: message\ndata: ${JSON.stringify(reply)}\n\n`);
      else send(response, reply);
    };
    return { forward, finish };
  }

  /** As the server lists it to this caller. */
  async function toolOf(call: ToolCall, request: IncomingMessage, scope: string): Promise<ListedTool> {
    const { name, _meta } = call.params;
    const { progressToken: _, ...meta } = fieldsOf(_meta);
    const at = (tool: string) => `${scope}\0${tool}`;
    for (let cursor: string | undefined; !tools.has(at(name)); ) {
      const params = {
        ...(cursor === undefined ? {} : { cursor }),
        ...(_meta === undefined ? {} : { _meta: meta }),
      };
      const id = `semel-${Math.random().toString(36).slice(2)}`;
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list', params }));
      const listed = await list(request, body).catch(() => undefined);
      const { tools: some, next } = toolsIn(listed);
      for (const tool of some) tools.set(at(tool.name), tool);
      if (next === undefined) break;
      cursor = next;
    }
    return tools.get(at(name)) ?? { name };
  }

  async function list(request: IncomingMessage, body: Buffer): Promise<unknown> {
    const answer = await ask(request, body, { 'mcp-method': 'tools/list', 'mcp-name': undefined });
    const bytes = await bytesOf(answer);
    if (!isEventStream(answer.headers)) return parsed(bytes.toString());
    let found: unknown;
    const events = eventReader((_event, data) => {
      const message = data === undefined ? undefined : parsed(data);
      if (isReply(message)) found = message;
    });
    events.read(bytes);
    return found;
  }

  async function passOn(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer | undefined,
  ): Promise<void> {
    const asking = ask(request, body, undefined, (upstreamRequest) =>
      response.once('close', () => upstreamRequest.destroy()),
    );
    const answer = await asking;
    response.writeHead(answer.statusCode ?? 502, cleaned(answer.headers, true));
    response.flushHeaders();
    answer.pipe(response);
    await new Promise<void>((resolve) => response.once('close', resolve));
  }

  function ask(
    { method, headers, url = '' }: IncomingMessage,
    body: Buffer | undefined,
    over: Headers | undefined,
    onStart: (request: { destroy(): void }) => void = () => undefined,
  ): Promise<IncomingMessage> {
    const start = upstream.protocol === 'https:' ? tlsRequest : plainRequest;
    const { search } = new URL(url, upstream);
    const target = new URL(`${upstream.pathname}${upstream.search || search}`, upstream);
    const { host: _, connection: _c, 'content-length': _l, 'transfer-encoding': _t, ...passed } = headers;
    const sent: Headers = {
      ...passed,
      ...(over === undefined ? {} : { 'accept-encoding': 'identity', ...over }),
    };
    if (body !== undefined) sent['content-length'] = String(body.length);
    for (const name of Object.keys(sent)) if (sent[name] === undefined) delete sent[name];
    return new Promise((resolve, reject) => {
      const outgoing = start(target, { method, headers: sent }, resolve);
      outgoing.once('error', reject);
      onStart(outgoing);
      outgoing.end(body);
    });
  }
}

/** It was turned away before any tool was asked. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 409;
}

/** A page in a browser must not reach what is meant for this machine. */
function isWelcome({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin } = headers;
  if (origin === undefined || origins.includes(origin)) return true;
  const host = URL.canParse(origin) ? new URL(origin).hostname : '';
  return host === 'localhost' || host === '127.0.0.1' || host === '[::1]';
}

function isEventStream(headers: Headers): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true;
}

const hopByHop = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'proxy-authenticate',
  'te',
  'trailer',
]);

function cleaned(headers: Headers, isWhole = false): Record<string, string | string[]> {
  const passed = Object.entries(headers).filter(
    ([name]) => !hopByHop.has(name) && (isWhole || name !== 'content-length'),
  );
  return Object.fromEntries(passed) as Record<string, string | string[]>;
}

/** Of an answer whose body is written anew. */
function kept(headers: Headers): Record<string, string | string[]> {
  const { 'content-type': _, 'content-encoding': _e, etag: _t, ...others } = cleaned(headers);
  return others;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size > longestLine) return undefined;
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts);
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function send(response: ServerResponse, body: unknown): void {
  if (response.headersSent) return void response.end();
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}

function fail(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32603, message }, id: null }));
}
