// The proxy between a client and a server over standard input and output. A tools/call goes through the ledger; everything
// else passes byte for byte. A client that leaves does not cancel its calls.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { isTooDeep } from '../../core/key/json-shape.ts';
import { limits } from '../../core/limits.ts';
import { createReservation } from '../../core/reservations.ts';
import { NotLanded } from '../../core/signals.ts';
import { escapeInvisible } from '../../core/visible.ts';
import { createLineReader, isBlank, isOneLine, withEnd } from '../protocol/lines.ts';
import {
  asRecord,
  brokenReply,
  cancelledId,
  errorReply,
  type Id,
  idKey,
  isId,
  isListRequest,
  isReply,
  isToolCall,
  type ListedTool,
  type Reply,
  readMessage,
  refusedBatch,
  refusedCall,
  type ToolCall,
  unreadableReply,
} from '../protocol/messages.ts';
import { parseReply } from '../protocol/numbers.ts';
import { type Caller, metaNames } from './call-input.ts';
import { withKey } from './sent-key.ts';
import type { ToolCalls } from './tool-calls.ts';
import { createToolList } from './tool-list.ts';

export interface StdioOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly calls: ToolCalls;
  readonly caller: Caller;
  readonly input: Readable;
  readonly output: Writable;
  /** After the client has left: how long to wait for calls that have begun, and then for the server to exit. */
  readonly graceMs: number;
}

type Server = ChildProcess & { readonly stdin: Writable; readonly stdout: Readable };

/** With two requests under one id, an answer could belong to either. */
const duplicateId = 'A request with this id is still unanswered. Nothing ran: use another id.';

const forwardedSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs until the server exits and returns its exit code. Throws if the server cannot be started. */
export async function proxyStdio(options: StdioOptions): Promise<number> {
  const { command, args, env } = options;
  const server = spawn(command, [...args], { env, stdio: ['pipe', 'pipe', 'inherit'] }) as Server;
  const stopForwarding = forwardedSignals.map((signal) => {
    const pass = () => void server.kill(signal);
    process.on(signal, pass);
    return () => process.off(signal, pass);
  });
  try {
    return await runProxy(server, options);
  } finally {
    for (const stop of stopForwarding) stop();
  }
}

async function runProxy(
  server: Server,
  { calls, caller, input, output, graceMs }: StdioOptions,
): Promise<number> {
  const tools = createToolList(calls.check);
  /** Our own requests, and calls that are claimed. */
  const pendingRequests = new Map<string, { resolve(reply: Reply): void; reject(error: Error): void }>();
  /** The client's tools/list requests. */
  const pendingLists = new Map<string, unknown>();
  /** Unanswered requests that passed through: their answer must not be taken for a call's. */
  const passedRequests = new Set<string>();
  /** Unanswered calls, sent to the server or not. */
  const activeCalls = new Map<string, { isCancelled: boolean }>();
  const pendingAnswers = new Set<Promise<void>>();
  /** An unchanged answer is passed on byte for byte. */
  const receivedBytes = new WeakMap<Reply, Buffer>();
  const ownIds = `semel-${randomUUID()}`;
  let requestCount = 0;
  let hasServerEnded = false;
  let hasClientLeft = false;

  const rejectAll = (error: Error) => {
    for (const { reject } of pendingRequests.values()) reject(error);
    pendingRequests.clear();
  };
  const ended = new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.once('close', (code, signal) => {
      hasServerEnded = true;
      rejectAll(new Error('The server ended before it answered.'));
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
  server.stdin.on('error', rejectAll);
  output.on('error', () => void onClientGone());

  const fromServer = createLineReader((line) => {
    if (line.includes('list_changed')) tools.forget();
    const isAwaiting = pendingRequests.size > 0 || pendingLists.size > 0;
    if (!isAwaiting && passedRequests.size === 0) return write(output, server.stdout, line);
    // It may be the answer to a pending request, which would then wait forever.
    if (isAwaiting && isTooDeep(line))
      throw new Error(`A message is nested deeper than ${limits.jsonDepth} levels.`);
    let message: unknown;
    try {
      message = parseReply(line.toString());
    } catch (error) {
      if (isAwaiting) throw error;
    }
    if (!isReply(message)) return write(output, server.stdout, line);
    const key = idKey(message.id);
    passedRequests.delete(key);
    const request = pendingLists.get(key);
    if (request !== undefined) {
      pendingLists.delete(key);
      tools.addPage(message);
      const reply = calls.listed(request, message);
      if (reply !== message) return write(output, server.stdout, `${JSON.stringify(reply)}\n`);
    }
    const waiting = pendingRequests.get(key);
    if (waiting === undefined) return write(output, server.stdout, line);
    pendingRequests.delete(key);
    receivedBytes.set(message, line);
    waiting.resolve(message);
  });
  const fromClient = createLineReader((bytes) => {
    const line = withEnd(bytes);
    if (isBlank(line)) return write(server.stdin, input, line);
    const parsed = isOneLine(line) ? readMessage(line) : { refused: 'It has more than one line.' };
    if ('refused' in parsed) return sendReply(unreadableReply(parsed.refused));
    const { message } = parsed;
    const batch = refusedBatch(message);
    if (batch !== undefined) return write(output, input, Buffer.from(`${JSON.stringify(batch)}\n`));
    const refused = refusedCall(message);
    if (refused !== undefined) return sendReply(refused);
    if (isToolCall(message)) return track(answer(message, line));
    const { method, id } = asRecord(message);
    if (method !== undefined && isId(id)) {
      if (activeCalls.has(idKey(id))) return sendReply(errorReply(id, -32600, duplicateId));
      trackPassed(idKey(id));
    }
    if (isListRequest(message)) pendingLists.set(idKey(message.id), message);
    if (pendingLists.size > limits.openCalls) pendingLists.delete(pendingLists.keys().next().value as string);
    const cancelled = cancelledId(message);
    const call = cancelled === undefined ? undefined : activeCalls.get(idKey(cancelled));
    if (call === undefined) return write(server.stdin, input, line);
    // The call may have been sent already: it goes on, and its outcome is recorded.
    call.isCancelled = true;
  });
  server.stdout.on('data', readSafely(fromServer.read, output));
  server.stdout.once('end', fromServer.end);
  input.on('data', readSafely(fromClient.read, server.stdin));
  input.once('end', () => void onClientGone());
  input.once('error', () => void onClientGone());

  const code = await ended;
  await Promise.allSettled(pendingAnswers);
  return code;

  /** After a message that is too long nothing can be read, so the server is stopped. One chunk in is one write out. */
  function readSafely(read: (chunk: Buffer) => void, sink: Writable): (chunk: Buffer) => void {
    return (chunk) => {
      sink.cork();
      try {
        read(chunk);
      } catch (error) {
        process.stderr.write(`semel: ${escapeInvisible((error as Error).message)} Stopping the server.\n`);
        server.kill();
      } finally {
        sink.uncork();
      }
    };
  }

  function track(work: Promise<void>): void {
    pendingAnswers.add(work);
    void work.finally(() => pendingAnswers.delete(work));
  }

  async function answer(call: ToolCall, line: Buffer): Promise<void> {
    const key = idKey(call.id);
    if (activeCalls.has(key)) return sendReply(errorReply(call.id, -32600, duplicateId));
    const held = createReservation();
    if (activeCalls.size >= limits.openCalls || !held.take(line.length)) {
      const full = `${limits.openCalls} calls, or ${limits.unfinishedBytes} bytes of calls, are unanswered`;
      return sendReply(errorReply(call.id, -32600, `${full}. Nothing ran: try again later.`));
    }
    const active = { isCancelled: false };
    activeCalls.set(key, active);
    try {
      const guard = await calls.guardFor(call.params.name, () => findTool(call));
      if (guard === undefined) {
        if (active.isCancelled) return;
        trackPassed(key);
        return write(server.stdin, input, line);
      }
      if (passedRequests.has(key)) return sendReply(errorReply(call.id, -32600, duplicateId));
      const reply = await guard.answer(call, caller, async (key) => {
        if (active.isCancelled) throw new NotLanded('It was cancelled before it was sent.');
        return ask(call.id, key === undefined ? line : withKey(line, key, metaNames.key));
      });
      if (!active.isCancelled) sendReply(reply);
    } catch (error) {
      sendReply(brokenReply(call.id, error));
    } finally {
      activeCalls.delete(key);
      held.end();
    }
  }

  function trackPassed(key: string): void {
    passedRequests.add(key);
    if (passedRequests.size > limits.openCalls)
      passedRequests.delete(passedRequests.keys().next().value as string);
  }

  function sendReply(reply: Reply): void {
    // If the client does not read, pause its requests, and leave further answers at the server.
    write(output, input, receivedBytes.get(reply) ?? `${JSON.stringify(reply)}\n`);
    if (output.writableNeedDrain) pauseUntilDrained(output, server.stdout);
  }

  function ask(id: Id, line: Buffer | string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (hasServerEnded || server.stdin.destroyed) return reject(new NotLanded('The server has ended.'));
      pendingRequests.set(idKey(id), { resolve, reject });
      write(server.stdin, input, line);
    });
  }

  /** Asks the server if needed: a client that already knows the list does not request it again. */
  function findTool({ params }: ToolCall): Promise<ListedTool | undefined> {
    const { progressToken: _, ...meta } = asRecord(params._meta);
    return tools.find(params.name, (page) => {
      requestCount += 1;
      const id = `${ownIds}-${requestCount}`;
      const body = { ...page, ...(params._meta === undefined ? {} : { _meta: meta }) };
      return ask(id, `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list', params: body })}\n`);
    });
  }

  /** Waits for calls that have begun, then closes the server's input, and kills a server that does not exit. */
  async function onClientGone(): Promise<void> {
    if (hasClientLeft) return;
    hasClientLeft = true;
    fromClient.end();
    const later = (work: () => void) => void setTimeout(work, graceMs).unref();
    const { promise: patience, resolve } = Promise.withResolvers<void>();
    later(resolve);
    await Promise.race([Promise.allSettled(pendingAnswers), patience]);
    server.stdin.end();
    later(() => {
      server.kill('SIGTERM');
      later(() => server.kill('SIGKILL'));
    });
  }
}

/** Applies backpressure: nothing piles up here for a slow reader. */
function write(sink: Writable, source: Readable, line: Buffer | string): void {
  if (!sink.destroyed && !sink.write(line)) pauseUntilDrained(sink, source);
}

function pauseUntilDrained(sink: Writable, source: Readable): void {
  if (source.isPaused()) return;
  source.pause();
  const go = () => {
    sink.off('drain', go).off('close', go);
    source.resume();
  };
  sink.on('drain', go).on('close', go);
}
