// JSON-RPC as MCP speaks it, as far as the proxy reads it.

import { isUtf8 } from 'node:buffer';
import { isTooDeep, shapeProblem } from '../../core/key/json-shape.ts';
import { repeatedName } from '../../core/key/repeated-name.ts';
import { limits } from '../../core/limits.ts';
import { markedNumbers } from './numbers.ts';

export type Id = string | number;

export interface ToolCallParams {
  readonly name: string;
  readonly arguments?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** Of a proposal that was not taken up (SEP-3182); some clients send it. */
  readonly idempotencyKey?: unknown;
  /** The caller wants a task for it, and asks for its result later. */
  readonly task?: unknown;
  /** A further round of a call that asked its caller something. */
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

/** Undefined: it is not JSON, or nested too deep to be read. */
export function parsed(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a client sent, or why it is not passed on: it cannot be read, or not in one way, so that it might be a call. */
export type Read = { readonly message: unknown } | { readonly refused: string };

export function read(bytes: Buffer): Read {
  if (!isUtf8(bytes)) return { refused: 'It is not UTF-8.' };
  const problem = shapeProblem(bytes);
  if (problem !== undefined) return { refused: problem };
  const text = bytes.toString();
  const message = parsed(text);
  if (message === undefined) return { refused: 'It is not JSON.' };
  if (!isMessage(message)) return { refused: 'It is not a message of JSON-RPC.' };
  const near = nearName(message);
  if (near !== undefined)
    return { refused: `${near} is not a name of the protocol, but some readers take it for one.` };
  const isAsking = Array.isArray(message) || 'method' in fieldsOf(message);
  const twice = isAsking && mayBeCall(text) ? repeatedName(text) : undefined;
  if (twice !== undefined) return { refused: 'A name is there twice in one object.' };
  const exact = isToolCall(message) ? (markedNumbers(text) as ToolCall | undefined) : undefined;
  if (!isToolCall(message) || exact === undefined) return { message };
  const { arguments: args, inputResponses, requestState } = exact.params;
  return {
    message: { ...message, params: { ...message.params, arguments: args, inputResponses, requestState } },
  };
}

/** A list in a batch, or a method that is not a text: some readers would find a call in it. */
function isMessage(message: unknown): boolean {
  if (Array.isArray(message)) return message.every((each) => !Array.isArray(each) && isMessage(each));
  const { method = '' } = fieldsOf(message);
  return method === null || typeof method === 'string';
}

type Names = ReadonlyMap<string, string>;

/** By what they look like to a reader that is not exact. */
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

/** Readers in some languages take names for the same that differ in case, or in letters like ſ. Then it is another message. */
function nearName(message: unknown): string | undefined {
  if (Array.isArray(message)) {
    for (const each of message) {
      const found = nearName(each);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const { method, params } = fieldsOf(message);
  return (
    nearIn(Object.keys(fieldsOf(message)), messageNames) ??
    (typeof method === 'string' ? nearIn([method], methodNames) : undefined) ??
    (method === 'tools/call' ? nearIn(Object.keys(fieldsOf(params)), callNames) : undefined) ??
    (method === 'notifications/cancelled' ? nearIn(Object.keys(fieldsOf(params)), cancelNames) : undefined)
  );
}

function nearIn(names: readonly string[], known: Names): string | undefined {
  const near = names.find((name) => name.length < 100 && (known.get(foldCase(name)) ?? name) !== name);
  return near && JSON.stringify(near);
}

/** ſ and the Kelvin sign become s and k, ı and İ become i, as some servers read them; invisible characters, and space around it, are left out. */
export function foldCase(name: string): string {
  return name
    .normalize('NFKC')
    .replaceAll('\u0130', 'i')
    .replace(/[\p{Cc}\p{Cf}]/gu, '')
    .trim()
    .toUpperCase()
    .toLowerCase();
}

/** To some reader: the words are there, or something is written in another way. */
function mayBeCall(text: string): boolean {
  return text.includes('tools/call') || text.includes('\\');
}

export function isToolCall(message: unknown): message is ToolCall {
  const { method, id, params } = fieldsOf(message);
  return method === 'tools/call' && isId(id) && typeof fieldsOf(params).name === 'string';
}

export function isListRequest(message: unknown): message is { readonly id: Id } {
  const { method, id } = fieldsOf(message);
  return method === 'tools/list' && isId(id);
}

/** Some servers write both, and leave one of them empty. */
export function errorIn(reply: Reply): RpcError | undefined {
  return 'error' in reply && reply.error !== null ? reply.error : undefined;
}

/** A reply that says how a call ended: by a result, or by an error, each an object. */
export function isAnswer(reply: Reply): boolean {
  const { result, error } = reply as Partial<Record<'result' | 'error', unknown>>;
  const said = error ?? result;
  return typeof said === 'object' && said !== null && !Array.isArray(said);
}

export function isReply(message: unknown): message is Reply {
  const { id, method, result, error } = fieldsOf(message);
  return isId(id) && method === undefined && (result !== undefined || error !== undefined);
}

/** The request that is no longer wanted, if this says so. */
export function cancelledBy(message: unknown): Id | undefined {
  const { method, params } = fieldsOf(message);
  const { requestId } = fieldsOf(params);
  return method === 'notifications/cancelled' && isId(requestId) ? requestId : undefined;
}

export function toolsIn(message: unknown): { tools: readonly ListedTool[]; next: string | undefined } {
  const { tools, nextCursor } = fieldsOf(fieldsOf(message).result);
  return {
    tools: Array.isArray(tools) ? tools.filter(isListed) : [],
    next: typeof nextCursor === 'string' ? nextCursor : undefined,
  };
}

/** 1 and "1" are two ids. */
export function idKey(id: Id): string {
  return JSON.stringify(id);
}

export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** One that would be rounded names another request. */
export function isId(id: unknown): id is Id {
  return (
    typeof id === 'string' ||
    (typeof id === 'number' && Number.isFinite(id) && (Number.isSafeInteger(id) || !Number.isInteger(id)))
  );
}

/** One whose name is too long to be called is not kept. */
function isListed(tool: unknown): tool is ListedTool {
  const { name } = fieldsOf(tool);
  return typeof name === 'string' && name.length <= limits.nameCharacters;
}

/** A tools/call whose answer could not be told from others, or that names no tool, would run without a guard. */
export function refusedCall(message: unknown): Reply | undefined {
  const { method, id } = fieldsOf(message);
  if (method !== 'tools/call') return undefined;
  if (isToolCall(message)) {
    const isTooLong = message.params.name.length > limits.nameCharacters;
    const why = `The name of the tool is longer than ${limits.nameCharacters} characters.`;
    return isTooLong ? refusal(message.id, -32602, why) : undefined;
  }
  return isId(id)
    ? refusal(id, -32602, 'A tools/call that names no tool is not passed on.')
    : refusal(null, -32600, 'A tools/call without an id that can be answered is not passed on.');
}

/** What one version of the protocol had: what is guarded is guarded one by one. Undefined: there is no call in it. */
export function refusedBatch(message: unknown): readonly Reply[] | undefined {
  if (!Array.isArray(message)) return undefined;
  if (!message.some((each) => fieldsOf(each).method === 'tools/call')) return undefined;
  const requests = message.filter((each) => isId(fieldsOf(each).id) && fieldsOf(each).method !== undefined);
  const why = 'A batch with a tools/call in it is not passed on: nothing was run. Send its calls one by one.';
  return requests.map(({ id }) => refusal(id, -32600, why));
}

export function refusal(id: Id | null, code: number, message: string): Reply {
  return { jsonrpc: '2.0', id: id as Id, error: { code, message } };
}

export function unreadable(why: string): Reply {
  return refusal(null, -32700, `The message was not passed on, because it might be a call. ${why}`);
}

export function broken(id: Id, cause: unknown): Reply {
  const why = cause instanceof Error ? cause.message : String(cause);
  return refusal(id, -32603, `The proxy could not answer: ${why}`);
}
