// JSON-RPC as MCP speaks it, as far as the proxy reads it.

import { isUtf8 } from 'node:buffer';

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
  readonly resultType?: string;
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
  readonly annotations?: { readonly readOnlyHint?: unknown; readonly idempotentHint?: unknown };
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a client sent; undefined: it cannot be read, so nobody can say that it is no call. */
export function read(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString();
  const message = parsed(text);
  if (!isToolCall(message) || !/[\d.eE]{16}|\d[eE]/.test(text)) return message;
  // Numbers that JavaScript rounds are told apart by their digits: two ids must not become one call.
  const { params } = JSON.parse(text, unrounded) as ToolCall;
  return { ...message, params: { ...message.params, arguments: params.arguments } };
}

function unrounded(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isExact =
    typeof value !== 'number' ||
    Number.isSafeInteger(value) ||
    (Number.isFinite(value) && !Number.isInteger(value));
  return isExact ? value : `«${context?.source}»`;
}

/** A key that goes to the server with a call. */
export interface SentKey {
  readonly key: string;
  /** The argument that takes it; undefined: `_meta`. */
  readonly argument: string | undefined;
}

/** The same call with the key in it; its numbers keep their digits. */
export function withKey(call: Buffer, { key, argument }: SentKey, metaName: string): Buffer {
  const { params, ...message } = JSON.parse(call.toString(), asWritten) as Record<string, unknown>;
  const field = argument === undefined ? '_meta' : 'arguments';
  const sent = { ...fieldsOf(fieldsOf(params)[field]), [argument ?? metaName]: key };
  return Buffer.from(`${JSON.stringify({ ...message, params: { ...fieldsOf(params), [field]: sent } })}\n`);
}

function asWritten(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' ? rawJson(context?.source ?? String(value)) : value;
}

/** Newer than the compiler's own list of what JSON can do. */
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };

export function isToolCall(message: unknown): message is ToolCall {
  const { method, id, params } = fieldsOf(message);
  return method === 'tools/call' && isId(id) && typeof fieldsOf(params).name === 'string';
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
function isId(id: unknown): id is Id {
  return (
    typeof id === 'string' || (typeof id === 'number' && (Number.isSafeInteger(id) || !Number.isInteger(id)))
  );
}

function isListed(tool: unknown): tool is ListedTool {
  return typeof fieldsOf(tool).name === 'string';
}

/** A tools/call whose answer could not be told from others is not passed on: it would run without a guard. */
export function isUnanswerable(message: unknown): boolean {
  const { method, id } = fieldsOf(message);
  return method === 'tools/call' && !isId(id);
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

export function unreadable(): Reply {
  return refusal(null, -32700, 'This is no JSON, so it was not passed on: it might be a call.');
}

export function unanswerable(): Reply {
  return refusal(null, -32600, 'A tools/call without an id that can be answered is not passed on.');
}

export function broken(id: Id, cause: unknown): Reply {
  const why = cause instanceof Error ? cause.message : String(cause);
  return refusal(id, -32603, `The proxy could not answer: ${why}`);
}
