// The parts of JSON-RPC and MCP that the proxy reads. Refuses what two readers could understand differently.

import { isUtf8 } from 'node:buffer';
import { isTooDeep, shapeProblem } from '../../core/key/json-shape.ts';
import { repeatedName } from '../../core/key/repeated-name.ts';
import { limits } from '../../core/limits.ts';
import { parseMarked } from './numbers.ts';

export type Id = string | number;

export interface ToolCallParams {
  readonly name: string;
  readonly arguments?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** From a proposal that was not accepted (SEP-3182); some clients send it. */
  readonly idempotencyKey?: unknown;
  /** The caller wants a task and polls for its result. */
  readonly task?: unknown;
  /** A further round of a call that asked its caller for input. */
  readonly inputResponses?: unknown;
  readonly requestState?: unknown;
}

export interface ToolCall {
  readonly jsonrpc: '2.0';
  readonly id: Id;
  readonly method: 'tools/call';
  readonly params: ToolCallParams;
}

export interface ToolResult {
  readonly content?: readonly unknown[];
  readonly isError?: boolean;
  readonly resultType?: string | null;
  readonly task?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
  readonly [other: string]: unknown;
}

export type Reply =
  | { readonly jsonrpc: '2.0'; readonly id: Id; readonly result: ToolResult }
  | { readonly jsonrpc: '2.0'; readonly id: Id; readonly error: RpcError };

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A tool as its server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** Undefined if it is not JSON or nested too deeply. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A client's message, or why it is refused: unreadable or ambiguous, so it might be a call. */
export type ReadResult = { readonly message: unknown } | { readonly refused: string };

export function readMessage(bytes: Buffer): ReadResult {
  if (!isUtf8(bytes)) return { refused: 'It is not UTF-8.' };
  const problem = shapeProblem(bytes);
  if (problem !== undefined) return { refused: problem };
  const text = bytes.toString();
  const message = parseJson(text);
  if (message === undefined) return { refused: 'It is not JSON.' };
  if (!isMessage(message)) return { refused: 'It is not a JSON-RPC message.' };
  const near = nearName(message);
  if (near !== undefined)
    return { refused: `${near} is not a name of the protocol, but some readers take it for one.` };
  const isAsking = Array.isArray(message) || 'method' in asRecord(message);
  const twice = isAsking && mayBeCall(text) ? repeatedName(text) : undefined;
  if (twice !== undefined) return { refused: 'An object has the same name twice.' };
  const exact = isToolCall(message) ? (parseMarked(text) as ToolCall | undefined) : undefined;
  if (!isToolCall(message) || exact === undefined) return { message };
  const { arguments: args, inputResponses, requestState } = exact.params;
  return {
    message: { ...message, params: { ...message.params, arguments: args, inputResponses, requestState } },
  };
}

/** Some readers would find a call in a nested batch, or behind a method that is not a string. */
function isMessage(message: unknown): boolean {
  if (Array.isArray(message)) return message.every((each) => !Array.isArray(each) && isMessage(each));
  const { method = '' } = asRecord(message);
  return method === null || typeof method === 'string';
}

type Names = ReadonlyMap<string, string>;

const longest = 100;
const dropped = /[\p{Cc}\p{Cf}]/gu;

/** By their folded form. */
const named = (...names: readonly string[]): Names => new Map(names.map((name) => [foldCase(name), name]));

const messageNames = named('jsonrpc', 'id', 'method', 'params', 'result', 'error');
const methodNames = named('tools/call', 'notifications/cancelled');
const callNames = named(
  'name',
  'arguments',
  '_meta',
  'idempotencyKey',
  'task',
  'inputResponses',
  'requestState',
);
const cancelNames = named('requestId');

/** Some JSON readers ignore case, or equate letters such as ſ and s. They would read a different message. */
function nearName(message: unknown): string | undefined {
  if (Array.isArray(message)) {
    for (const each of message) {
      const found = nearName(each);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const { method, params } = asRecord(message);
  return (
    nearIn(Object.keys(asRecord(message)), messageNames) ??
    (typeof method === 'string' ? nearIn([method], methodNames) : undefined) ??
    (method === 'tools/call' ? nearIn(Object.keys(asRecord(params)), callNames) : undefined) ??
    (method === 'notifications/cancelled' ? nearIn(Object.keys(asRecord(params)), cancelNames) : undefined)
  );
}

function nearIn(names: readonly string[], known: Names): string | undefined {
  const near = names.find((name) => {
    // No long text folds to a short one, but for what is dropped. Folding a long one takes too long.
    const kept = name.length < longest ? name : name.replace(dropped, '').trim();
    return kept.length < longest && (known.get(foldCase(kept)) ?? name) !== name;
  });
  return near && JSON.stringify(near.slice(0, longest));
}

/** As lenient servers read it: ſ and the Kelvin sign become s and k, ı and İ become i; invisible characters and outer spaces are dropped. */
export function foldCase(name: string): string {
  return name
    .normalize('NFKC')
    .replaceAll('\u0130', 'i')
    .replace(dropped, '')
    .trim()
    .toUpperCase()
    .toLowerCase();
}

/** It contains the method, perhaps behind an escape. */
function mayBeCall(text: string): boolean {
  return text.includes('tools/call') || text.includes('\\');
}

export function isToolCall(message: unknown): message is ToolCall {
  const { method, id, params } = asRecord(message);
  return method === 'tools/call' && isId(id) && typeof asRecord(params).name === 'string';
}

export function isListRequest(message: unknown): message is { readonly id: Id } {
  const { method, id } = asRecord(message);
  return method === 'tools/list' && isId(id);
}

/** Some servers write both fields and set one to null. */
export function rpcErrorIn(reply: Reply): RpcError | undefined {
  return 'error' in reply && reply.error !== null ? reply.error : undefined;
}

/** Whether the result or the error is an object. */
export function isAnswer(reply: Reply): boolean {
  const { result, error } = reply as Partial<Record<'result' | 'error', unknown>>;
  const outcome = error ?? result;
  return typeof outcome === 'object' && outcome !== null && !Array.isArray(outcome);
}

export function isReply(message: unknown): message is Reply {
  const { id, method, result, error } = asRecord(message);
  return isId(id) && method === undefined && (result !== undefined || error !== undefined);
}

/** The id of the request that this message cancels. */
export function cancelledId(message: unknown): Id | undefined {
  const { method, params } = asRecord(message);
  const { requestId } = asRecord(params);
  return method === 'notifications/cancelled' && isId(requestId) ? requestId : undefined;
}

export function readToolPage(message: unknown): { tools: readonly ListedTool[]; next: string | undefined } {
  const { tools, nextCursor } = asRecord(asRecord(message).result);
  return {
    tools: Array.isArray(tools) ? tools.filter(isListed) : [],
    next: typeof nextCursor === 'string' ? nextCursor : undefined,
  };
}

/** Keeps 1 and "1" apart. */
export function idKey(id: Id): string {
  return JSON.stringify(id);
}

export function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Refuses integers that JavaScript rounds: they would name another request. */
export function isId(id: unknown): id is Id {
  return (
    typeof id === 'string' ||
    (typeof id === 'number' && Number.isFinite(id) && (Number.isSafeInteger(id) || !Number.isInteger(id)))
  );
}

/** Drops tools whose names are too long to be called. */
function isListed(tool: unknown): tool is ListedTool {
  const { name } = asRecord(tool);
  return typeof name === 'string' && name.length <= limits.nameCharacters;
}

/** Refuses a tools/call without a usable id or tool name: it would run unguarded. */
export function refusedCall(message: unknown): Reply | undefined {
  const { method, id } = asRecord(message);
  if (method !== 'tools/call') return undefined;
  if (isToolCall(message)) {
    const isTooLong = message.params.name.length > limits.nameCharacters;
    const why = `The tool's name is longer than ${limits.nameCharacters} characters.`;
    return isTooLong ? errorReply(message.id, -32602, why) : undefined;
  }
  return isId(id)
    ? errorReply(id, -32602, 'The proxy does not pass on a tools/call without a tool name.')
    : errorReply(null, -32600, 'The proxy does not pass on a tools/call without a valid id.');
}

/** One protocol version had batches; calls are guarded one by one. Undefined if the batch has no call. */
export function refusedBatch(message: unknown): readonly Reply[] | undefined {
  if (!Array.isArray(message)) return undefined;
  if (!message.some((each) => asRecord(each).method === 'tools/call')) return undefined;
  const requests = message.filter((each) => isId(asRecord(each).id) && asRecord(each).method !== undefined);
  const why = 'The proxy does not pass on a batch with a tools/call. Nothing ran: send its calls one by one.';
  return requests.map(({ id }) => errorReply(id, -32600, why));
}

export function errorReply(id: Id | null, code: number, message: string): Reply {
  return { jsonrpc: '2.0', id: id as Id, error: { code, message } };
}

export function unreadableReply(why: string): Reply {
  return errorReply(null, -32700, `The message was not passed on, because it might be a call. ${why}`);
}

export function brokenReply(id: Id, cause: unknown): Reply {
  const why = cause instanceof Error ? cause.message : String(cause);
  return errorReply(id, -32603, `The proxy could not answer: ${why}`);
}
