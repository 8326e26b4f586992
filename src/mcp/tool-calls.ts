// One tools/call through the ledger. The server runs it at most once for its intent; what it answered is kept, and told
// again to whoever asks for the same.

import { type ErrorValue, isSemelError } from '../core/errors.ts';
import { shortDigest } from '../core/key.ts';
import { MaybeLanded, NotLanded, Rejected } from '../core/signals.ts';
import { type Answer, type Guard, guardOf } from '../guard/index.ts';
import type { Ambient, Semel } from '../semel/index.ts';
import {
  fieldsOf,
  type ListedTool,
  type Reply,
  type RpcError,
  type ToolCall,
  type ToolResult,
} from './messages.ts';
import { contractName, type ErrorMeaning, type PolicyFile, policyFor } from './policies.ts';

/** Our words in `_meta`, under a name that is ours. */
export const metaNames = {
  /** A hand-off, as `semel.handoff()` gives it. */
  context: 'dev.semel/context',
  conversation: 'dev.semel/conversation',
  turn: 'dev.semel/turn',
  key: 'dev.semel/idempotency-key',
  replayed: 'dev.semel/replayed',
  error: 'dev.semel/error',
} as const;

/** Where a call comes from, besides what it says itself. */
export interface Caller {
  /** Keys of one caller mean nothing to another. */
  readonly scope: string;
  readonly identity: Ambient;
}

export interface ToolCallsOptions {
  readonly semel: Semel;
  /** Which server this is: tools of two servers may have one name. */
  readonly server: string;
  readonly policies: PolicyFile;
}

export interface ToolCalls {
  /** Undefined: it runs freely, and is passed on as it is. */
  guardFor(tool: ListedTool): ToolGuard | undefined;
}

export interface ToolGuard {
  /** `forward` hands the call to the server and brings its answer; it is called at most once. */
  answer(call: ToolCall, caller: Caller, forward: () => Promise<Reply>): Promise<Reply>;
}

export function toolCalls({ semel, server, policies }: ToolCallsOptions): ToolCalls {
  const guards = new Map<string, ToolGuard | undefined>();
  return {
    guardFor(tool) {
      if (!guards.has(tool.name)) {
        const { policy, errors } = policyFor(tool, policies);
        const guard = guardOf(semel, contractName(server, tool.name), policy, { passes: isUnfinished });
        guards.set(tool.name, guard && toolGuard(semel, guard, errors));
      }
      return guards.get(tool.name);
    },
  };
}

export function toolGuard(semel: Semel, guard: Guard, errors: ErrorMeaning): ToolGuard {
  return {
    async answer(call, caller, forward) {
      /** What the server said to this very call. */
      let said: Reply | undefined;
      const execute = async () => {
        said = await forward();
        return resultOf(said, errors);
      };
      const asked = { args: argsOf(call), key: keyOf(call, caller), toolCallId: toolCallIdOf(call) };
      try {
        const answer = await semel.within(identityOf(call, caller), () => guard.call(asked, execute));
        return told(call, answer, said);
      } catch (error) {
        if (isUnfinished(error)) return { ...error.reply, id: call.id };
        if (isSemelError(error)) return told(call, { ok: false, error: error.toJSON() }, undefined);
        throw error;
      }
    },
  };
}

/** The tool has not run yet, or not to its end: it asks its caller, or goes on as a task. That is no result to keep. */
class Unfinished extends Error {
  readonly reply: Reply;
  constructor(reply: Reply) {
    super('The call goes on in another round.');
    this.reply = reply;
  }
}

export function isUnfinished(error: unknown): error is Unfinished {
  return error instanceof Unfinished;
}

/** Bad request, unknown method, bad params: the server did not get as far as the tool. */
const refusedCodes: readonly number[] = [-32600, -32601, -32602];

function resultOf(reply: Reply, errors: ErrorMeaning): ToolResult {
  if ('error' in reply) {
    const { code, message } = reply.error;
    throw refusedCodes.includes(code) ? new NotLanded(message) : new MaybeLanded(message);
  }
  const { result } = reply;
  const isComplete = result.resultType === undefined || result.resultType === 'complete';
  if (!isComplete || result.task !== undefined) throw new Unfinished(reply);
  if (result.isError !== true) return result;
  const words = textOf(result);
  if (errors === 'refused') throw new Rejected(words);
  throw errors === 'not-landed' ? new NotLanded(words) : new MaybeLanded(words);
}

/** To whoever had it run, the server's own answer; to others what is known. */
function told(call: ToolCall, answer: Answer, said: Reply | undefined): Reply {
  const { id } = call;
  if (answer.ok) {
    const result = answer.value as ToolResult;
    return { jsonrpc: '2.0', id, result: answer.line === undefined ? result : withLine(result, answer.line) };
  }
  const { error } = answer;
  if (said !== undefined && 'error' in said)
    return { jsonrpc: '2.0', id, error: withData(said.error, error) };
  if (said !== undefined)
    return {
      jsonrpc: '2.0',
      id,
      result: marked(said.result, error, error.code === 'IN_DOUBT' ? inDoubtLine(error) : undefined),
    };
  if (error.code === 'KEY_CONFLICT' && call.params.idempotencyKey !== undefined)
    return { jsonrpc: '2.0', id, error: conflict(error) };
  const text = JSON.stringify(error);
  return {
    jsonrpc: '2.0',
    id,
    result: marked({ content: [{ type: 'text', text }], isError: true, resultType: 'complete' }, error),
  };
}

function withLine(result: ToolResult, line: string): ToolResult {
  return {
    ...result,
    content: [...(result.content ?? []), { type: 'text', text: line }],
    _meta: { ...result._meta, [metaNames.replayed]: true },
  };
}

function marked(result: ToolResult, error: ErrorValue, line?: string): ToolResult {
  const content = result.content ?? [];
  return {
    ...result,
    content: line === undefined ? content : [...content, { type: 'text', text: line }],
    _meta: { ...result._meta, [metaNames.error]: error },
  };
}

function inDoubtLine({ correctiveAction }: ErrorValue): string {
  return `Whether it landed is not known, so the same call is not run again. ${correctiveAction}`;
}

function withData(rpc: RpcError, error: ErrorValue): RpcError {
  const data = rpc.data === undefined ? {} : typeof rpc.data === 'object' ? rpc.data : { detail: rpc.data };
  return { ...rpc, data: { ...data, [metaNames.error]: error } };
}

/** As SEP-3182 has it. */
function conflict(error: ErrorValue): RpcError {
  return {
    code: -32602,
    message: error.message,
    data: { type: 'idempotency_key_conflict', [metaNames.error]: error },
  };
}

/** A further round brings answers: it is an intent of its own, and a retry of it is the same one. */
function argsOf({ params }: ToolCall): unknown {
  const { arguments: args = {}, inputResponses, requestState } = params;
  if (inputResponses === undefined && requestState === undefined) return args;
  return { ...fieldsOf(args), '«round»': { inputResponses, requestState } };
}

function keyOf({ params }: ToolCall, { scope }: Caller): string | undefined {
  const key = params.idempotencyKey ?? params._meta?.[metaNames.key];
  if (typeof key !== 'string' || key === '') return undefined;
  return `${scope}:${key.length <= 200 && !/\p{Cc}/u.test(key) ? key : shortDigest('key', key)}`;
}

/** Clients that tell which call of the model it is do so under names of their own. */
function toolCallIdOf({ params }: ToolCall): string | undefined {
  for (const [name, value] of Object.entries(params._meta ?? {}))
    if (/tool_?(use|call)_?id$/i.test(name) && typeof value === 'string' && value.length <= 500) return value;
  return undefined;
}

/** What the call says of itself, else what the proxy was told, else nothing: then it is like all others of its words. */
function identityOf({ params }: ToolCall, caller: Caller): Ambient | string {
  const {
    [metaNames.context]: context,
    [metaNames.conversation]: said,
    [metaNames.turn]: turn,
  } = params._meta ?? {};
  if (typeof context === 'string') return context;
  const { identity } = caller;
  const conversation = typeof said === 'string' ? said : identity.conversation;
  if (conversation === undefined)
    return { conversation: `${caller.scope}:unplaced`, turn: 'unplaced', weak: true };
  if (typeof turn === 'string') return { conversation, turn };
  const known = said === undefined ? identity.turn : undefined;
  return known === undefined ? { conversation, turn: 'unplaced', weak: true } : { conversation, turn: known };
}

function textOf({ content = [] }: ToolResult): string {
  const texts = content.map((block) => fieldsOf(block).text).filter((text) => typeof text === 'string');
  return texts.join('\n').slice(0, 2_000) || 'The tool answered with an error.';
}
