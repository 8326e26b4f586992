// The proxy between a client and a server that talk over standard input and output. A tools/call goes through the
// ledger; everything else is passed on byte for byte. A client that leaves does not end what it has begun.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { isTooDeep } from '../../core/key/json-shape.ts';
import { limits } from '../../core/limits.ts';
import { NotLanded } from '../../core/signals.ts';
import { escapeInvisible } from '../../core/visible.ts';
import { holding } from '../protocol/held.ts';
import { isBlank, isOneLine, lineReader, withEnd } from '../protocol/lines.ts';
import {
  broken,
  cancelledBy,
  fieldsOf,
  type Id,
  idKey,
  isId,
  isListRequest,
  isReply,
  isToolCall,
  type ListedTool,
  type Reply,
  read,
  refusal,
  refusedBatch,
  refusedCall,
  type ToolCall,
  unreadable,
} from '../protocol/messages.ts';
import { answerIn } from '../protocol/numbers.ts';
import { type Caller, metaNames } from './asked.ts';
import { withKey } from './sent-key.ts';
import type { ToolCalls } from './tool-calls.ts';
import { toolList } from './tool-list.ts';

export interface StdioOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly calls: ToolCalls;
  readonly caller: Caller;
  readonly input: Readable;
  readonly output: Writable;
  /** How long begun calls are waited for after the client has left, and then how long the server may take to end. */
  readonly graceMs: number;
}

type Server = ChildProcess & { readonly stdin: Writable; readonly stdout: Readable };

/** Two requests under one id: nobody could tell which of them an answer is for. */
const unanswered = 'A request with this id is not answered yet. Nothing was run.';

const forwardedSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs until the server has ended; answers its exit code. Throws where it cannot be started. */
export async function proxyStdio(options: StdioOptions): Promise<number> {
  const { command, args, env } = options;
  const server = spawn(command, [...args], { env, stdio: ['pipe', 'pipe', 'inherit'] }) as Server;
  const signals = forwardedSignals.map((signal) => {
    const pass = () => void server.kill(signal);
    process.on(signal, pass);
    return () => process.off(signal, pass);
  });
  try {
    return await conversation(server, options);
  } finally {
    for (const stop of signals) stop();
  }
}

async function conversation(
  server: Server,
  { calls, caller, input, output, graceMs }: StdioOptions,
): Promise<number> {
  const tools = toolList(calls.check);
  /** Asked of the server by us, or for a call that is claimed. */
  const awaited = new Map<string, { tell(reply: Reply): void; lose(error: Error): void }>();
  /** The client's requests for the list of tools. */
  const listing = new Map<string, unknown>();
  /** Requests that were passed on as they are and are not answered yet: their answer must not be taken for that of a call. */
  const passedOn = new Set<string>();
  /** The calls that are not answered yet, whether or not they have reached the server. */
  const inHand = new Map<string, { isUnwanted: boolean }>();
  const answering = new Set<Promise<void>>();
  /** Answers as they came: what is not changed is passed on byte for byte. */
  const asTheyCame = new WeakMap<Reply, Buffer>();
  const ownIds = `semel-${randomUUID()}`;
  let asked = 0;
  let isOver = false;
  let isLeft = false;

  const loseAll = (error: Error) => {
    for (const { lose } of awaited.values()) lose(error);
    awaited.clear();
  };
  const ended = new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.once('close', (code, signal) => {
      isOver = true;
      loseAll(new Error('The server ended before it answered.'));
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
  server.stdin.on('error', loseAll);
  output.on('error', () => void leave());

  const fromServer = lineReader((line) => {
    if (line.includes('list_changed')) tools.forget();
    const isAwaiting = awaited.size > 0 || listing.size > 0;
    if (!isAwaiting && passedOn.size === 0) return passTo(output, server.stdout, line);
    // It may be the answer that is waited for, and would be waited for without end.
    if (isAwaiting && isTooDeep(line))
      throw new Error(`A message is nested deeper than ${limits.jsonDepth} levels.`);
    const message = answerIn(line.toString());
    if (!isReply(message)) return passTo(output, server.stdout, line);
    const key = idKey(message.id);
    passedOn.delete(key);
    const request = listing.get(key);
    if (request !== undefined) {
      listing.delete(key);
      tools.see(message);
      const reply = calls.listed(request, message);
      if (reply !== message) return passTo(output, server.stdout, `${JSON.stringify(reply)}\n`);
    }
    const waiting = awaited.get(key);
    if (waiting === undefined) return passTo(output, server.stdout, line);
    awaited.delete(key);
    asTheyCame.set(message, line);
    waiting.tell(message);
  });
  const fromClient = lineReader((bytes) => {
    const line = withEnd(bytes);
    if (isBlank(line)) return passTo(server.stdin, input, line);
    const taken = isOneLine(line) ? read(line) : { refused: 'It has more than one line.' };
    if ('refused' in taken) return say(unreadable(taken.refused));
    const { message } = taken;
    const batch = refusedBatch(message);
    if (batch !== undefined) return passTo(output, input, Buffer.from(`${JSON.stringify(batch)}\n`));
    const refused = refusedCall(message);
    if (refused !== undefined) return say(refused);
    if (isToolCall(message)) return track(answer(message, line));
    const { method, id } = fieldsOf(message);
    if (method !== undefined && isId(id)) {
      if (inHand.has(idKey(id))) return say(refusal(id, -32600, unanswered));
      notePassed(idKey(id));
    }
    if (isListRequest(message)) listing.set(idKey(message.id), message);
    if (listing.size > limits.openCalls) listing.delete(listing.keys().next().value as string);
    const cancelled = cancelledBy(message);
    const call = cancelled === undefined ? undefined : inHand.get(idKey(cancelled));
    if (call === undefined) return passTo(server.stdin, input, line);
    // What may have been sent is not unsent by losing interest: it goes on, and its end is recorded.
    call.isUnwanted = true;
  });
  server.stdout.on('data', guarded(fromServer.read, output));
  server.stdout.once('end', fromServer.end);
  input.on('data', guarded(fromClient.read, server.stdin));
  input.once('end', () => void leave());
  input.once('error', () => void leave());

  const code = await ended;
  await Promise.allSettled(answering);
  return code;

  /** A message without end cannot be judged, and what follows it neither. What came at once is passed on at once. */
  function guarded(see: (chunk: Buffer) => void, sink: Writable): (chunk: Buffer) => void {
    return (chunk) => {
      sink.cork();
      try {
        see(chunk);
      } catch (error) {
        process.stderr.write(`semel: ${escapeInvisible((error as Error).message)} The server is ended.\n`);
        server.kill();
      } finally {
        sink.uncork();
      }
    };
  }

  function track(work: Promise<void>): void {
    answering.add(work);
    void work.finally(() => answering.delete(work));
  }

  async function answer(call: ToolCall, line: Buffer): Promise<void> {
    const key = idKey(call.id);
    if (inHand.has(key)) return say(refusal(call.id, -32600, unanswered));
    const held = holding();
    if (inHand.size >= limits.openCalls || !held.take(line.length)) {
      const most = `${limits.openCalls} calls are not answered yet, or ${limits.unfinishedBytes} bytes of them`;
      return say(refusal(call.id, -32600, `${most}. Nothing was run.`));
    }
    const hand = { isUnwanted: false };
    inHand.set(key, hand);
    try {
      const guard = await calls.guardFor(call.params.name, () => listed(call));
      if (guard === undefined) {
        if (hand.isUnwanted) return;
        notePassed(key);
        return passTo(server.stdin, input, line);
      }
      if (passedOn.has(key)) return say(refusal(call.id, -32600, unanswered));
      const reply = await guard.answer(call, caller, async (key) => {
        if (hand.isUnwanted) throw new NotLanded('It was cancelled before it was sent.');
        return ask(call.id, key === undefined ? line : withKey(line, key, metaNames.key));
      });
      if (!hand.isUnwanted) say(reply);
    } catch (error) {
      say(broken(call.id, error));
    } finally {
      inHand.delete(key);
      held.end();
    }
  }

  function notePassed(key: string): void {
    passedOn.add(key);
    if (passedOn.size > limits.openCalls) passedOn.delete(passedOn.keys().next().value as string);
  }

  function say(reply: Reply): void {
    // A client that does not read is not asked for more, and the answers to what it has asked already wait at the server.
    passTo(output, input, asTheyCame.get(reply) ?? `${JSON.stringify(reply)}\n`);
    if (output.writableNeedDrain) pauseFor(output, server.stdout);
  }

  function ask(id: Id, line: Buffer | string): Promise<Reply> {
    return new Promise((tell, lose) => {
      if (isOver || server.stdin.destroyed) return lose(new NotLanded('The server has ended.'));
      awaited.set(idKey(id), { tell, lose });
      passTo(server.stdin, input, line);
    });
  }

  /** As the server lists it: a client that knows the list from before does not ask for it again. */
  function listed({ params }: ToolCall): Promise<ListedTool | undefined> {
    const { progressToken: _, ...meta } = fieldsOf(params._meta);
    return tools.find(params.name, (page) => {
      asked += 1;
      const id = `${ownIds}-${asked}`;
      const body = { ...page, ...(params._meta === undefined ? {} : { _meta: meta }) };
      return ask(id, `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list', params: body })}\n`);
    });
  }

  /** The client is gone. What it has begun is heard out, then the server is told; one that stays is ended. */
  async function leave(): Promise<void> {
    if (isLeft) return;
    isLeft = true;
    fromClient.end();
    const later = (work: () => void) => void setTimeout(work, graceMs).unref();
    const { promise: patience, resolve } = Promise.withResolvers<void>();
    later(resolve);
    await Promise.race([Promise.allSettled(answering), patience]);
    server.stdin.end();
    later(() => {
      server.kill('SIGTERM');
      later(() => server.kill('SIGKILL'));
    });
  }
}

/** A peer that reads slowly is waited for, so that nothing piles up here. */
function passTo(sink: Writable, source: Readable, line: Buffer | string): void {
  if (!sink.destroyed && !sink.write(line)) pauseFor(sink, source);
}

function pauseFor(sink: Writable, source: Readable): void {
  if (source.isPaused()) return;
  source.pause();
  const go = () => {
    sink.off('drain', go).off('close', go);
    source.resume();
  };
  sink.on('drain', go).on('close', go);
}
