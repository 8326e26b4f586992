// Sends a tools/call through the ledger. The server runs each intent at most once; equal calls get the stored answer, or a
// question if the repeat may be a new action.

import { describeThrown } from '../../core/contract/classify.ts';
import { isSemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { MaybeLanded, NotLanded } from '../../core/signals.ts';
import {
  type Answer,
  createGuard,
  type Execute,
  errorForModel,
  type FrameworkCall,
  type Guard,
  isUniqueCallId,
} from '../../guard/index.ts';
import { type Ambient, ambient, type Semel } from '../../semel/index.ts';
import {
  contractName,
  type ErrorMeaning,
  type KeyPlace,
  type PolicyFile,
  policyFor,
  type ToolPolicy,
} from '../policy/policies.ts';
import { createSimilarArgumentFinder } from '../policy/similar-arguments.ts';
import { findUnknownNames } from '../policy/unknown-names.ts';
import { errorReply, isAnswer, type ListedTool, type Reply, type ToolCall } from '../protocol/messages.ts';
import { writable } from '../protocol/numbers.ts';
import { type Caller, originalArgs, readCall, readIdentity } from './call-input.ts';
import { isUnfinished, readResult, toolErrorPrefix } from './outcome.ts';
import { buildReply } from './replies.ts';
import {
  addRunAgainTool,
  createRunAgain,
  type Held,
  type Question,
  type RunAgain,
  runAgainName,
  unknownRefResult,
} from './run-again.ts';
import type { SentKey } from './sent-key.ts';

export interface ToolCallsOptions {
  readonly semel: Semel;
  /** The server's name: two servers may have tools of the same name. */
  readonly server: string;
  readonly policies: PolicyFile;
  /** Called once for each name in the policy file that the server does not have. */
  readonly onUnknownName?: (sentence: string) => void;
}

export interface ToolCalls {
  /**
   * Undefined if the tool may be repeated: its calls pass through. `listed` is called only if the policy file does not name
   * the tool. An unlisted tool counts as a non-idempotent write.
   */
  guardFor(name: string, listed: () => Promise<ListedTool | undefined>): Promise<ToolGuard | undefined>;
  /** Adds semel's own tool to the server's answer to a `tools/list`, if needed. */
  listed(request: unknown, reply: Reply): Reply;
  /** Compares the server's complete tool list with the policy file. */
  check(tools: readonly ListedTool[]): void;
}

export interface ToolGuard {
  /** Calls `forward` at most once. */
  answer(call: ToolCall, caller: Caller, forward: Forward): Promise<Reply>;
}

/**
 * Sends the call to the server, with the key if the server takes one, and returns its answer. After `signal` aborts nobody
 * waits for it. `firstArgs`: what may have landed was sent with these args and is sent again with them.
 */
export type Forward = (key: SentKey | undefined, signal: AbortSignal, firstArgs?: unknown) => Promise<Reply>;

export function createToolCalls({ semel, server, policies, onUnknownName }: ToolCallsOptions): ToolCalls {
  /** Least recently used first. */
  const guards = new Map<string, ToolGuard & Pick<Guard, 'forget'>>();
  const reported = new Set<string>();
  const runAgain = createRunAgain(semel);
  return {
    listed: (request, reply) =>
      addRunAgainTool(request, reply, (tool) => isRemembered(policyFor(tool, policies).policy)),
    check(tools) {
      for (const sentence of findUnknownNames(policies, tools)) {
        // A server may list different fields every time.
        if (reported.has(sentence) || reported.size >= limits.kept) continue;
        reported.add(sentence);
        onUnknownName?.(sentence);
      }
    },
    async guardFor(name, listed) {
      if (name === runAgainName) return runAgainGuard(runAgain, listed);
      const isNamed = policies.tools !== undefined && Object.hasOwn(policies.tools, name);
      const tool = isNamed ? { name } : await listed();
      const { policy, errors, key } = policyFor(tool ?? { name }, policies);
      // Checked on every call: the server's hints can change.
      if (!isRemembered(policy)) return undefined;
      const known = guards.get(name);
      if (known !== undefined) {
        guards.delete(name);
        guards.set(name, known);
        return known;
      }
      const guarding = createGuard(semel, contractName(server, name), policy, {
        isControlFlow: isUnfinished,
      }) as Guard;
      const { answer } = createToolGuard(semel, guarding, { errors, keyPlace: key, runAgain });
      const findSimilar = createSimilarArgumentFinder(policy);
      const guard = {
        forget: guarding.forget,
        async answer(call: ToolCall, caller: Caller, forward: Forward) {
          const similar = findSimilar(call.params.arguments);
          if (similar === undefined) return answer(call, caller, forward);
          const [found, meant] = similar.map((each) => JSON.stringify(each));
          const why = `${found} is not ${meant}, but some servers read it as ${meant}. Nothing ran: write ${meant}.`;
          return errorReply(call.id, -32602, why);
        },
      };
      guards.set(name, guard);
      if (guards.size > limits.guardedTools) forgetOldest();
      return guard;
    },
  };

  /** Bounds memory: a client can make up tool names without end. Calls in progress continue. */
  function forgetOldest(): void {
    const [name, { forget }] = guards.entries().next().value as [string, Pick<Guard, 'forget'>];
    guards.delete(name);
    forget();
  }
}

/** Calls of other tools may be repeated and pass through. */
function isRemembered(policy: ToolPolicy['policy']): boolean {
  const effect = typeof policy === 'string' ? policy : policy.effect;
  return effect !== 'read' && effect !== 'write-idempotent';
}

/** Answers calls of the tool that semel adds. An unknown ref may belong to another proxy behind this one. */
function runAgainGuard(runAgain: RunAgain, listed: () => Promise<ListedTool | undefined>): ToolGuard {
  return {
    async answer({ id, params }, { scope }, forward) {
      const result = await runAgain.allow(scope, params.arguments);
      if (result === undefined && (await listed()) !== undefined)
        return forward(undefined, new AbortController().signal);
      return { jsonrpc: '2.0', id, result: result ?? unknownRefResult() };
    },
  };
}

export interface GuardTerms {
  readonly errors: ErrorMeaning;
  readonly keyPlace?: KeyPlace | undefined;
  readonly runAgain: RunAgain;
}

export function createToolGuard(
  semel: Semel,
  guard: Guard,
  { errors, keyPlace, runAgain }: GuardTerms,
): ToolGuard {
  return {
    async answer(call, caller, forward) {
      const { scope } = caller;
      const { name } = call.params;
      const input = readCall(call, caller);
      /** Set if this call itself reached the server. */
      let serverReply: Reply | undefined;

      async function answerCall(): Promise<Reply> {
        // A call that cannot have a key is refused below.
        const key = await guard.keyOf(input).catch(() => undefined);
        const before = key === undefined ? undefined : await semel.records.get(key);
        const execute: Execute = async (args, ctx) => {
          // If the ledger was slow, the call's time or lease may be over.
          if (guard.dispatchesAtClaim) await ctx.dispatch().catch(throwNotSent);
          const { key: sentKey, signal } = ctx;
          const firstArgs = args === input.args ? undefined : originalArgs(args);
          const reply = await forward(
            keyPlace && { ...keyPlace, key: sentKey, firstArgs },
            signal,
            firstArgs,
          );
          if (!isAnswer(reply)) throw new MaybeLanded('The server answered with no result and no error.');
          serverReply = reply;
          return readResult(call, reply, errors);
        };
        const answer = await guard.call(input, execute);
        const held = serverReply === undefined ? await findHeld(answer, input) : undefined;
        // The record was released or expired in between: run the call.
        if (held === 'gone') return answerCall();
        // An execution that ended after this call came is its answer: the caller cannot have seen that result before.
        if (held === undefined || held.record.ref !== before?.ref) return toReply(answer);
        return writable(questionReply(call, runAgain.ask(scope, held))) as Reply;
      }

      function toReply(answer: Answer): Reply {
        const reply = buildReply(call, answer, serverReply, {
          errors,
          howToRepeat: ({ key, id, fence }) => runAgain.offer(scope, name, { key, ref: `${id}@${fence}` }),
        });
        return reply === serverReply ? reply : (writable(reply) as Reply);
      }

      /** The record that must not answer this call without asking the model. */
      async function findHeld(
        answer: Answer,
        { key: ownKey, toolCallId }: FrameworkCall,
      ): Promise<Held | 'gone' | undefined> {
        const { receipt } = answer;
        if (receipt === undefined) return undefined;
        const held = { tool: name, drift: receipt.drift, error: answer.ok ? undefined : answer.error };
        if (answer.ok || answer.error.code === 'RESULT_OMITTED') {
          // With its own key the client says that this is the same call.
          if (!receipt.replayed || !receipt.weak || ownKey !== undefined) return undefined;
          const record = await semel.records.get(receipt.key);
          if (record === undefined || record.expired) return 'gone';
          // So does the tool call id of the first call.
          const isSameCall = toolCallId !== undefined && toolCallId === record.toolCallId;
          return isSameCall && isUniqueCallId(toolCallId, name) ? undefined : { ...held, record };
        }
        if (answer.error.code !== 'IN_DOUBT' || errors !== 'ask') return undefined;
        const record = await semel.records.get(receipt.key);
        const hasToolError =
          record?.status === 'unknown' && record.error?.message.startsWith(toolErrorPrefix) === true;
        return hasToolError ? { ...held, record } : undefined;
      }

      try {
        const owner = caller.caller === undefined ? {} : { caller: caller.caller };
        return await semel.within(owner, () =>
          semel.within(readIdentity(call, caller), () => semel.within(withAccount(caller), answerCall)),
        );
      } catch (error) {
        if (isUnfinished(error)) return error.reply;
        if (isSemelError(error)) return toReply({ ok: false, error: errorForModel(error) });
        throw error;
      }
    },
  };
}

/** The server uses its own account for every caller; with another account, an equal call is a different one. */
function withAccount({ account }: Caller): Ambient {
  return account === undefined ? {} : { caller: JSON.stringify([ambient().caller ?? '', account]) };
}

/** A client that requested a task can only read a task or an error. */
function questionReply({ id, params }: ToolCall, question: Question): Reply {
  if (params.task === undefined) return { jsonrpc: '2.0', id, result: question };
  const { content, _meta } = question;
  return { jsonrpc: '2.0', id, error: { code: -32600, message: content[0].text, data: _meta } };
}

function throwNotSent(error: unknown): never {
  throw new NotLanded(`It was not sent: ${describeThrown(error)}`);
}
