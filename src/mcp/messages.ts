// JSON-RPC as MCP speaks it, as far as the proxy reads it. What it does not understand it passes on.

export type Id = string | number;

export interface ToolCallParams {
  readonly name: string;
  readonly arguments?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** Of a proposal that was not taken up (SEP-3182); some clients send it. */
  readonly idempotencyKey?: unknown;
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

function isId(id: unknown): id is Id {
  return typeof id === 'string' || typeof id === 'number';
}

function isListed(tool: unknown): tool is ListedTool {
  return typeof fieldsOf(tool).name === 'string';
}

/** Of a batch, which one version of the protocol had: what is guarded is guarded one by one. */
export function callsIn(message: unknown): readonly ToolCall[] {
  return Array.isArray(message) ? message.filter(isToolCall) : [];
}

export function unbatched(id: Id): Reply {
  const message =
    'A batch with a tools/call in it is not passed on: nothing was run. Send its calls one by one.';
  return { jsonrpc: '2.0', id, error: { code: -32600, message } };
}

export function broken(id: Id, cause: unknown): Reply {
  const why = cause instanceof Error ? cause.message : String(cause);
  return { jsonrpc: '2.0', id, error: { code: -32603, message: `The proxy could not answer: ${why}` } };
}
