// The proxy between a client and a server that talk over standard input and output. A tools/call goes through the
// ledger; everything else is passed on byte for byte. A client that leaves does not end what it has begun.

import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { lineReader } from './lines.ts';
import {
  broken,
  callsIn,
  cancelledBy,
  fieldsOf,
  type Id,
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
import type { Caller, ToolCalls } from './tool-calls.ts';

export interface StdioOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly calls: ToolCalls;
  readonly caller: Caller;
  readonly input: Readable;
  readonly output: Writable;
  readonly env?: NodeJS.ProcessEnv;
  /** How long begun calls are waited for after the client has left. */
  readonly graceMs: number;
}

const forwardedSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs until the server has ended; answers its exit code. */
export async function proxyStdio(options: StdioOptions): Promise<number> {
  const { command, args, env = process.env } = options;
  const child = spawn(command, [...args], { stdio: ['pipe', 'pipe', 'inherit'], env });
  const signals = forwardedSignals.map((signal) => {
    const pass = () => void child.kill(signal);
    process.on(signal, pass);
    return () => process.off(signal, pass);
  });
  try {
    return await conversation(child as ChildProcess & { stdin: Writable; stdout: Readable }, options);
  } finally {
    for (const stop of signals) stop();
  }
}

async function conversation(
  server: ChildProcess & { stdin: Writable; stdout: Readable },
  { calls, caller, input, output, graceMs }: StdioOptions,
): Promise<number> {
  const tools = new Map<string, ListedTool>();
  /** Asked of the server by us, or for a call that is claimed. */
  const awaited = new Map<string, (reply: Reply) => void>();
  const lost = new Set<(error: Error) => void>();
  const listing = new Set<string>();
  const answering = new Set<Promise<void>>();
  const unwanted = new Set<string>();
  let asked = 0;
  let isOver = false;

  const ended = new Promise<number>((resolve, reject) => {
    server.once('error', (error) => reject(error));
    server.once('close', (code, signal) => {
      isOver = true;
      for (const tell of lost) tell(new Error('The server ended before it answered.'));
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
  server.stdin.on('error', () => undefined);
  output.on('error', () => undefined);

  const fromServer = lineReader((line) => {
    if (line.includes('tools/list_changed')) tools.clear();
    if (awaited.size === 0 && listing.size === 0) return void output.write(line);
    const message = parsed(line.toString());
    if (!isReply(message)) return void output.write(line);
    const key = idKey(message.id);
    if (listing.delete(key)) for (const tool of toolsIn(message).tools) tools.set(tool.name, tool);
    const tell = awaited.get(key);
    if (tell === undefined) return void output.write(line);
    awaited.delete(key);
    tell(message);
  });
  const fromClient = lineReader((line) => {
    const message = line.includes('"method"') ? parsed(line.toString()) : undefined;
    if (isToolCall(message))
      return void track(answer(message, line).catch((error) => say(broken(message.id, error))));
    const batched = callsIn(message);
    for (const { id } of batched) say(unbatched(id));
    if (batched.length > 0) return;
    const { method, id } = fieldsOf(message);
    if (method === 'tools/list') listing.add(idKey(id as Id));
    const cancelled = cancelledBy(message);
    // What may have been sent is not unsent by losing interest: it goes on, and its end is recorded.
    if (cancelled !== undefined && awaited.has(idKey(cancelled))) return void unwanted.add(idKey(cancelled));
    server.stdin.write(line);
  });
  server.stdout.on('data', fromServer.read);
  server.stdout.once('end', fromServer.end);
  input.on('data', fromClient.read);
  input.once('end', () => void leave());
  input.once('error', () => void leave());

  const code = await ended;
  await Promise.allSettled(answering);
  return code;

  function track(work: Promise<void>): void {
    answering.add(work);
    void work.finally(() => answering.delete(work));
  }

  async function answer(call: ToolCall, line: Buffer): Promise<void> {
    const guard = calls.guardFor(await toolOf(call));
    if (guard === undefined) return void server.stdin.write(line);
    const reply = await guard.answer(call, caller, () => ask(call.id, line));
    if (!unwanted.delete(idKey(call.id))) say(reply);
  }

  function say(reply: Reply): void {
    output.write(`${JSON.stringify(reply)}\n`);
  }

  function ask(id: Id, line: Buffer | string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (isOver) return reject(new Error('The server has ended.'));
      const fail = (error: Error) => reject(error);
      lost.add(fail);
      awaited.set(idKey(id), (reply) => {
        lost.delete(fail);
        resolve(reply);
      });
      server.stdin.write(line);
    });
  }

  /** As the server lists it: a client that knows the list from before does not ask for it again. */
  async function toolOf({ params }: ToolCall): Promise<ListedTool> {
    const known = tools.get(params.name);
    if (known !== undefined) return known;
    const { progressToken: _, ...meta } = fieldsOf(params._meta);
    for (let cursor: string | undefined; ; ) {
      asked += 1;
      const id = `semel-${process.pid}-${asked}`;
      const body = {
        ...(cursor === undefined ? {} : { cursor }),
        ...(params._meta === undefined ? {} : { _meta: meta }),
      };
      const request = { jsonrpc: '2.0', id, method: 'tools/list', params: body };
      const reply = await ask(id, `${JSON.stringify(request)}\n`).catch(() => undefined);
      const { tools: listed, next } = toolsIn(reply);
      for (const tool of listed) tools.set(tool.name, tool);
      if (next === undefined || tools.has(params.name)) break;
      cursor = next;
    }
    // One that is not listed is treated with care, and not remembered.
    return tools.get(params.name) ?? { name: params.name };
  }

  /** The client is gone. What it has begun is heard out, then the server is told. */
  async function leave(): Promise<void> {
    fromClient.end();
    const patience = new Promise((resolve) => setTimeout(resolve, graceMs).unref());
    await Promise.race([Promise.allSettled(answering), patience]);
    server.stdin.end();
  }
}
