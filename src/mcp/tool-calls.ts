// One tools/call through the ledger. The server runs it at most once for its intent; what it answered is kept, and told
// again to whoever asks for the same.

import { type ErrorValue, isSemelError } from '../core/errors.ts';
import { MaybeLanded, NotLanded, Rejected } from '../core/signals.ts';
import { isRepeatable } from '../core/words.ts';
import { type Answer, type Execute, type Guard, guardOf, toldError } from '../guard/index.ts';
import type { Semel } from '../semel/index.ts';
import { askedBy, type Caller, identityOf, metaNames } from './asked.ts';
import {
  errorIn,
  fieldsOf,
  isAnswer,
  type ListedTool,
  type Reply,
  type RpcError,
  type ToolCall,
  type ToolResult,
} from './messages.ts';
import { writable } from './numbers.ts';
import { contractName, type ErrorMeaning, type KeyPlace, type PolicyFile, policyFor } from './policies.ts';
import { strangersIn } from './policy-strangers.ts';
import type { SentKey } from './sent-key.ts';

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
  answer(call: ToolCall, caller: Caller, forward: Forward): Promise<Reply>;
}

/** With the key, where the server takes one. Nobody waits for the answer any more when `signal` aborts. */
export type Forward = (key: SentKey | undefined, signal: AbortSignal) => Promise<Reply>;

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
      const { policy, errors, key } = policyFor(
        isNamed ? { name } : ((await listed()) ?? { name }),
        policies,
      );
      // Of what may be repeated nothing would be remembered. A hint of the server can change while we run.
      if (isRepeatable(typeof policy === 'string' ? policy : policy.effect)) return undefined;
      const known = guards.get(name);
      if (known !== undefined) return known;
      const guarding = guardOf(semel, contractName(server, name), policy, { passes: isUnfinished }) as Guard;
      const guard = toolGuard(semel, guarding, errors, key);
      guards.set(name, guard);
      return guard;
    },
  };
}

export function toolGuard(semel: Semel, guard: Guard, errors: ErrorMeaning, place?: KeyPlace): ToolGuard {
  return {
    async answer(call, caller, forward) {
      /** What the server said to this very call. */
      let said: Reply | undefined;
      const execute: Execute = async (_args, { key, signal }) => {
        const reply = await forward(place && { ...place, key }, signal);
        if (!isAnswer(reply)) throw new MaybeLanded('The server answered with no result and no error.');
        said = reply;
        return resultOf(call, reply, errors);
      };
      try {
        const whose = caller.caller === undefined ? {} : { caller: caller.caller };
        const answer = await semel.within(whose, () =>
          semel.within(identityOf(call, caller), () => guard.call(askedBy(call, caller), execute)),
        );
        const reply = told(call, answer, said);
        return reply === said ? reply : (writable(reply) as Reply);
      } catch (error) {
        if (isUnfinished(error)) return error.reply;
        if (isSemelError(error)) return told(call, { ok: false, error: toldError(error) }, undefined);
        throw error;
      }
    },
  };
}

/** The tool has not run yet: it asks its caller. That is no result to keep. */
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

/** A reply without an error. */
type Finished = Extract<Reply, { readonly result: unknown }>;

/** Bad request, unknown method, bad params, first visit a page: the server did not get as far as the tool. */
const badParams = -32602;
const refusedCodes: readonly number[] = [-32600, -32601, badParams, -32042];

function resultOf({ params }: ToolCall, reply: Reply, errors: ErrorMeaning): ToolResult {
  const error = errorIn(reply);
  if (error !== undefined) {
    const { code, message } = error;
    throw refusedCodes.includes(code) ? new NotLanded(message) : new MaybeLanded(message);
  }
  const { result } = reply as Finished;
  // What was begun as a task is not begun again: its handle is the answer, also to whoever asks for the same.
  if (isTask(result)) return result;
  if ((result.resultType ?? 'complete') !== 'complete') throw new Unfinished(reply);
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

/** Some servers write each field that there is, and leave it empty. */
function isTask({ resultType, task, isError }: ToolResult): boolean {
  return resultType === 'task' || (typeof task === 'object' && task !== null && isError !== true);
}

/** To whoever had it run, the server's own answer, unchanged where it landed; to others what is known. */
function told(call: ToolCall, answer: Answer, said: Reply | undefined): Reply {
  const { id, params } = call;
  if (answer.ok) {
    if (answer.line === undefined && said !== undefined) return said;
    const result = answer.value as ToolResult;
    const isReplayed = said === undefined;
    // Whoever knows of tasks asks for this one's end, and reads nothing else.
    const isHandle = isTask(result) && (params.task !== undefined || result.resultType === 'task');
    return { jsonrpc: '2.0', id, result: withLine(result, isHandle ? undefined : answer.line, isReplayed) };
  }
  const own = said === undefined ? undefined : errorIn(said);
  const error = said !== undefined && isOfArgs(call, said) ? { ...answer.error, ...ofArgs } : answer.error;
  if (own !== undefined) return { jsonrpc: '2.0', id, error: withData(own, error) };
  if (said !== undefined)
    return {
      jsonrpc: '2.0',
      id,
      result: marked(
        (said as Finished).result,
        error,
        error.code === 'IN_DOUBT' ? inDoubtLine(error) : undefined,
      ),
    };
  if (error.code === 'KEY_CONFLICT') return { jsonrpc: '2.0', id, error: conflict(error) };
  const text = JSON.stringify(error);
  return {
    jsonrpc: '2.0',
    id,
    result: marked({ content: [{ type: 'text', text }], isError: true, resultType: 'complete' }, error),
  };
}

const ofArgs = { correctiveAction: 'Nothing was done. Correct the arguments.' };

/** The server did not take the args: the same call would be turned away again. */
function isOfArgs({ params }: ToolCall, said: Reply): boolean {
  const error = errorIn(said);
  return error === undefined
    ? isTurnedAway(params.name, textOf((said as Finished).result))
    : error.code === badParams;
}

function withLine(result: ToolResult, line: string | undefined, isReplayed: boolean): ToolResult {
  return {
    ...result,
    ...(line === undefined ? {} : { content: [...(result.content ?? []), { type: 'text', text: line }] }),
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
