// Lists a server's tools as a client would, from a started process or over HTTP.

import { spawn } from 'node:child_process';
import { limits } from '../../core/limits.ts';
import { createLineReader } from '../protocol/lines.ts';
import { asRecord, isReply, type ListedTool, parseJson, readToolPage } from '../protocol/messages.ts';
import { readReply, send } from './wire.ts';

/** Sends a message to the server and returns its reply, if the message has an id. */
type Ask = (message: {
  readonly id?: number;
  readonly method: string;
  readonly params?: object;
}) => Promise<unknown>;

/** Starts the server, lists its tools and stops it. */
export async function listCommandTools(
  command: string,
  args: readonly string[],
  timeoutMs: number,
  env: NodeJS.ProcessEnv = process.env,
): Promise<readonly ListedTool[]> {
  const server = spawn(command, [...args], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<unknown, (message: unknown) => void>();
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  const timer = setTimeout(() => fail(timeoutError(timeoutMs)), timeoutMs);
  server.once('error', (error) => fail(error));
  server.once('close', (code) =>
    fail(new Error(`The server ended with ${code} before it listed its tools.`)),
  );
  server.stdin.on('error', () => undefined);
  const lines = createLineReader((line) => {
    const message = parseJson(line.toString());
    if (isReply(message)) waiting.get(message.id)?.(message);
  });
  server.stdout.on('data', (chunk: Buffer) => {
    try {
      lines.read(chunk);
    } catch (error) {
      fail(error as Error);
      server.kill();
    }
  });
  try {
    return await listTools((message) => {
      server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
      if (message.id === undefined) return Promise.resolve();
      return Promise.race([new Promise((resolve) => waiting.set(message.id, resolve)), failed]);
    });
  } finally {
    clearTimeout(timer);
    server.stdin.end();
    server.kill();
  }
}

export async function listHttpTools(
  url: URL,
  authorization: string | undefined,
  timeoutMs: number,
): Promise<readonly ListedTool[]> {
  const signal = AbortSignal.timeout(timeoutMs);
  let session: object = {};
  const own = authorization === undefined ? {} : { authorization };
  return listTools(async (message) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
      ...own,
      ...session,
    };
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
    const answer = await send(url, { method: 'POST', headers, body, signal }).catch((error: Error) => {
      throw signal.aborted ? timeoutError(timeoutMs) : error;
    });
    const { statusCode = 502, headers: given } = answer;
    // Not read: it may never end.
    if (statusCode >= 300 || message.id === undefined) answer.destroy();
    if (statusCode === 401 || statusCode === 403) throw new Unauthorized(statusCode);
    if (statusCode >= 300) throw new Error(`The server answered ${statusCode}.`);
    const id = given['mcp-session-id'];
    if (typeof id === 'string') session = { 'mcp-session-id': id, 'mcp-protocol-version': protocol };
    return message.id === undefined ? undefined : readReply(answer);
  });
}

/** The server requires authorization. */
export class Unauthorized extends Error {
  constructor(status: number) {
    super(`The server answered ${status}.`);
  }
}

const protocol = '2025-06-18';

async function listTools(ask: Ask): Promise<readonly ListedTool[]> {
  const clientInfo = { name: 'semel', version: '1' };
  const greeting = { protocolVersion: protocol, capabilities: {}, clientInfo };
  const { error } = asRecord(await ask({ id: 1, method: 'initialize', params: greeting }));
  if (error !== undefined) throw new Error(`The server refused: ${asRecord(error).message}`);
  await ask({ method: 'notifications/initialized' });
  const tools: ListedTool[] = [];
  let cursor: string | undefined;
  for (let id = 2; id < limits.listPages + 2; id += 1) {
    const page = await ask({ id, method: 'tools/list', params: cursor === undefined ? {} : { cursor } });
    const { tools: some, next } = readToolPage(page);
    for (const tool of some) tools.push(tool);
    if (tools.length > limits.listEntries)
      throw new Error(`The server lists more than ${limits.listEntries} tools.`);
    if (next === undefined) return tools;
    cursor = next;
  }
  throw new Error(`The server lists its tools on more than ${limits.listPages} pages.`);
}

function timeoutError(timeoutMs: number): Error {
  return new Error(`The server did not answer in ${timeoutMs / 1000} s.`);
}
