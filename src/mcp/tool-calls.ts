// One tools/call through the ledger. The server runs it at most once for its intent; what it answered is kept, and told
// again to whoever asks for the same.

import { type ErrorValue, isSemelError } from '../core/errors.ts';
import { MaybeLanded, NotLanded, Rejected } from '../core/signals.ts';
import { isRepeatable } from '../core/words.ts';
import { type Answer, type Guard, guardOf, toldError } from '../guard/index.ts';
import type { Semel } from '../semel/index.ts';
import { askedBy, type Caller, identityOf, metaNames } from './asked.ts';
import {
  fieldsOf,
  type ListedTool,
  type Reply,
  type RpcError,
  type ToolCall,
  type ToolResult,
} from './messages.ts';
import { contractName, type ErrorMeaning, type PolicyFile, policyFor, strangersIn } from './policies.ts';

export interface ToolCallsOptions {
  readonly semel: Semel;
  /** Which server this is: tools of two servers may have one name. */
  readonly server: string;
  readonly policies: PolicyFile;
  /** Is told, once each, what the policy file names and the server does not have. */
  readonly onStranger?: (sentence: string) => void;
}

export interface ToolCalls {
  /**
   * Undefined: it may be repeated, and is passed on as it is. `listed` is asked only where the policy file does not name
   * the tool; one that is not listed is treated with care.
   */
  guardFor(name: string, listed: () => Promise<ListedTool | undefined>): Promise<ToolGuard | undefined>;
  /** The server has listed all its tools. */
  check(tools: readonly ListedTool[]): void;
}

export interface ToolGuard {
  /** `forward` hands the call to the server and brings its answer; it is called at most once. */
  answer(call: ToolCall, caller: Caller, forward: () => Promise<Reply>): Promise<Reply>;
}

export function toolCalls({ semel, server, policies, onStranger }: ToolCallsOptions): ToolCalls {
  const guards = new Map<string, ToolGuard>();
  const told = new Set<string>();
  return {
    check(tools) {
      for (const sentence of strangersIn(policies, tools)) {
        if (told.has(sentence)) continue;
        told.add(sentence);
        onStranger?.(sentence);
      }
    },
    async guardFor(name, listed) {
      const isNamed = policies.tools !== undefined && Object.hasOwn(policies.tools, name);
      const { policy, errors } = policyFor(isNamed ? { name } : ((await listed()) ?? { name }), policies);
      // Of what may be repeated nothing would be remembered. A hint of the server can change while we run.
      if (isRepeatable(typeof policy === 'string' ? policy : policy.effect)) return undefined;
      const known = guards.get(name);
      if (known !== undefined) return known;
      const guarding = guardOf(semel, contractName(server, name), policy, { passes: isUnfinished }) as Guard;
      const guard = toolGuard(semel, guarding, errors);
      guards.set(name, guard);
      return guard;
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
        return resultOf(call, said, errors);
      };
      try {
        const answer = await semel.within(identityOf(call, caller), () =>
          guard.call(askedBy(call, caller), execute),
        );
        return told(call, answer, said);
      } catch (error) {
        if (isUnfinished(error)) return error.reply;
        if (isSemelError(error)) return told(call, { ok: false, error: toldError(error) }, undefined);
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

/** Bad request, unknown method, bad params, first visit a page: the server did not get as far as the tool. */
const refusedCodes: readonly number[] = [-32600, -32601, -32602, -32042];

function resultOf({ params }: ToolCall, reply: Reply, errors: ErrorMeaning): ToolResult {
  if ('error' in reply) {
    const { code, message } = reply.error;
    throw refusedCodes.includes(code) ? new NotLanded(message) : new MaybeLanded(message);
  }
  const { result } = reply;
  const isComplete = result.resultType === undefined || result.resultType === 'complete';
  if (!isComplete || result.task !== undefined) throw new Unfinished(reply);
  if (result.isError !== true) return result;
  const words = textOf(result);
  if (errors === 'not-landed' || isTurnedAway(params.name, words)) throw new NotLanded(words);
  throw errors === 'refused' ? new Rejected(words) : new MaybeLanded(words);
}

/** Servers of the SDK say so in a result, where others answer with an error: no handler has run. */
function isTurnedAway(tool: string, words: string): boolean {
  return (
    /^(MCP error -32602: )?Input validation error: Invalid arguments for tool /.test(words) &&
    words.includes(` for tool ${tool}: `)
  );
}

/** To whoever had it run, the server's own answer, unchanged where it landed; to others what is known. */
function told({ id }: ToolCall, answer: Answer, said: Reply | undefined): Reply {
  if (answer.ok) {
    if (answer.line === undefined && said !== undefined) return said;
    const result = answer.value as ToolResult;
    const isReplayed = said === undefined;
    return { jsonrpc: '2.0', id, result: withLine(result, answer.line, isReplayed) };
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
  if (error.code === 'KEY_CONFLICT') return { jsonrpc: '2.0', id, error: conflict(error) };
  const text = JSON.stringify(error);
  return {
    jsonrpc: '2.0',
    id,
    result: marked({ content: [{ type: 'text', text }], isError: true, resultType: 'complete' }, error),
  };
}

function withLine(result: ToolResult, line: string | undefined, isReplayed: boolean): ToolResult {
  const content = result.content ?? [];
  return {
    ...result,
    content: line === undefined ? content : [...content, { type: 'text', text: line }],
    ...(isReplayed ? { _meta: { ...result._meta, [metaNames.replayed]: true } } : {}),
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

function textOf({ content = [] }: ToolResult): string {
  const texts = content.map((block) => fieldsOf(block).text).filter((text) => typeof text === 'string');
  return texts.join('\n').slice(0, 2_000) || 'The tool answered with an error.';
}
