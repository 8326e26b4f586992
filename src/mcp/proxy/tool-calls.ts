// One tools/call through the ledger. The server runs it at most once for its intent; what it answered is kept, and told
// again to whoever asks for the same.

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
import type { Semel } from '../../semel/index.ts';
import { nearArguments } from '../policy/near-arguments.ts';
import {
  contractName,
  type ErrorMeaning,
  type KeyPlace,
  type PolicyFile,
  policyFor,
  type ToolPolicy,
} from '../policy/policies.ts';
import { unknownNames } from '../policy/unknown-names.ts';
import { isAnswer, type ListedTool, type Reply, refusal, type ToolCall } from '../protocol/messages.ts';
import { writable } from '../protocol/numbers.ts';
import { type Caller, identityOf, readCall, withoutRound } from './asked.ts';
import { endedWords, isUnfinished, resultOf } from './outcome.ts';
import { told } from './replies.ts';
import {
  createRunAgain,
  type Held,
  type Question,
  type RunAgain,
  runAgainName,
  unknownRef,
  withRunAgain,
} from './run-again.ts';
import type { SentKey } from './sent-key.ts';

export interface ToolCallsOptions {
  readonly semel: Semel;
  /** Which server this is: tools of two servers may have one name. */
  readonly server: string;
  readonly policies: PolicyFile;
  /** Is told, once each, what the policy file names and the server does not have. */
  readonly onUnknownName?: (sentence: string) => void;
}

export interface ToolCalls {
  /**
   * Undefined: it changes nothing, and is passed on as it is. `listed` is asked only where the policy file does not name
   * the tool; one that is not listed is treated with care.
   */
  guardFor(name: string, listed: () => Promise<ListedTool | undefined>): Promise<ToolGuard | undefined>;
  /** The server's answer to a `tools/list`, with the tool that semel adds where it is needed. */
  listed(request: unknown, reply: Reply): Reply;
  /** The server has listed all its tools. */
  check(tools: readonly ListedTool[]): void;
}

export interface ToolGuard {
  /** `forward` hands the call to the server and brings its answer; it is called at most once. */
  answer(call: ToolCall, caller: Caller, forward: Forward): Promise<Reply>;
}

/**
 * With the key, where the server takes one. Nobody waits for the answer any more when `signal` aborts. `firstArgs`: what may
 * have landed was asked for in these words, and is sent again in them.
 */
export type Forward = (key: SentKey | undefined, signal: AbortSignal, firstArgs?: unknown) => Promise<Reply>;

export function toolCalls({ semel, server, policies, onUnknownName }: ToolCallsOptions): ToolCalls {
  /** The one that was used last is the last. */
  const guards = new Map<string, ToolGuard & Pick<Guard, 'forget'>>();
  const told = new Set<string>();
  const runAgain = createRunAgain(semel);
  return {
    listed: (request, reply) =>
      withRunAgain(request, reply, (tool) => isRemembered(policyFor(tool, policies).policy)),
    check(tools) {
      for (const sentence of unknownNames(policies, tools)) {
        // A server that lists other fields each time is told of for a while.
        if (told.has(sentence) || told.size >= limits.kept) continue;
        told.add(sentence);
        onUnknownName?.(sentence);
      }
    },
    async guardFor(name, listed) {
      if (name === runAgainName) return answering(runAgain, listed);
      const isNamed = policies.tools !== undefined && Object.hasOwn(policies.tools, name);
      const tool = isNamed ? { name } : await listed();
      const { policy, errors, key } = policyFor(tool ?? { name }, policies);
      // A hint of the server can change while we run.
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
      const { answer } = toolGuard(semel, guarding, { errors, place: key, runAgain });
      const nearIn = nearArguments(policy);
      const guard = {
        forget: guarding.forget,
        async answer(call: ToolCall, caller: Caller, forward: Forward) {
          const near = nearIn(call.params.arguments);
          if (near === undefined) return answer(call, caller, forward);
          const [given, meant] = near.map((each) => JSON.stringify(each));
          const why = `${given} is not ${meant}, but some servers take it for that. Nothing was run: write ${meant}.`;
          return refusal(call.id, -32602, why);
        },
      };
      guards.set(name, guard);
      if (guards.size > limits.guardedTools) forgetOldest();
      return guard;
    },
  };

  /** Its calls go on. Names that a client makes up must not fill the memory. */
  function forgetOldest(): void {
    const [name, { forget }] = guards.entries().next().value as [string, Pick<Guard, 'forget'>];
    guards.delete(name);
    forget();
  }
}

/** All others may be repeated, and pass. */
function isRemembered(policy: ToolPolicy['policy']): boolean {
  const effect = typeof policy === 'string' ? policy : policy.effect;
  return effect !== 'read' && effect !== 'write-idempotent';
}

/** The tool that semel adds. A ref that is not ours may be that of another proxy behind this one. */
function answering(runAgain: RunAgain, listed: () => Promise<ListedTool | undefined>): ToolGuard {
  return {
    async answer({ id, params }, { scope }, forward) {
      const result = await runAgain.allow(scope, params.arguments);
      if (result === undefined && (await listed()) !== undefined)
        return forward(undefined, new AbortController().signal);
      return { jsonrpc: '2.0', id, result: result ?? unknownRef() };
    },
  };
}

export interface GuardTerms {
  readonly errors: ErrorMeaning;
  readonly place?: KeyPlace | undefined;
  readonly runAgain: RunAgain;
}

export function toolGuard(semel: Semel, guard: Guard, { errors, place, runAgain }: GuardTerms): ToolGuard {
  return {
    async answer(call, caller, forward) {
      const { scope } = caller;
      const { name } = call.params;
      const asked = readCall(call, caller);
      /** What the server said to this very call. */
      let said: Reply | undefined;

      async function answered(): Promise<Reply> {
        // A call that can have no key is refused below.
        const key = await guard.keyOf(asked).catch(() => undefined);
        const before = key === undefined ? undefined : await semel.records.get(key);
        const execute: Execute = async (args, ctx) => {
          // The ledger may have been slow: then its time, or its lease, is over.
          if (guard.dispatchesAtClaim) await ctx.dispatch().catch(notSent);
          const { key: sentKey, signal } = ctx;
          const firstArgs = args === asked.args ? undefined : withoutRound(args);
          const reply = await forward(place && { ...place, key: sentKey, firstArgs }, signal, firstArgs);
          if (!isAnswer(reply)) throw new MaybeLanded('The server answered with no result and no error.');
          said = reply;
          return resultOf(call, reply, errors);
        };
        const answer = await guard.call(asked, execute);
        const held = said === undefined ? await heldBack(answer, asked) : undefined;
        // It was let go between the two looks: then it runs.
        if (held === 'gone') return answered();
        // What ended only after this call had come is its answer: the caller cannot have known it, and means the same.
        if (held === undefined || held.record.ref !== before?.ref) return spoken(answer);
        return writable(questionTo(call, runAgain.ask(scope, held))) as Reply;
      }

      function spoken(answer: Answer): Reply {
        const reply = told(call, answer, said, {
          errors,
          howToRepeat: ({ key, id, fence }) => runAgain.offer(scope, name, { key, ref: `${id}@${fence}` }),
        });
        return reply === said ? reply : (writable(reply) as Reply);
      }

      /** What may not stand for this call without a question, though it is the same call by all that is known. */
      async function heldBack(
        answer: Answer,
        { key: ownKey, toolCallId }: FrameworkCall,
      ): Promise<Held | 'gone' | undefined> {
        const { receipt } = answer;
        if (receipt === undefined) return undefined;
        const held = { tool: name, drift: receipt.drift, error: answer.ok ? undefined : answer.error };
        if (answer.ok || answer.error.code === 'RESULT_OMITTED') {
          // A key of the client's own is its word that this is the same call.
          if (!receipt.replayed || !receipt.weak || ownKey !== undefined) return undefined;
          const record = await semel.records.get(receipt.key);
          if (record === undefined || record.expired) return 'gone';
          // So is the id that the model's call had the first time.
          const isSameCall = toolCallId !== undefined && toolCallId === record.toolCallId;
          return isSameCall && isUniqueCallId(toolCallId, name) ? undefined : { ...held, record };
        }
        if (answer.error.code !== 'IN_DOUBT' || errors !== 'ask') return undefined;
        const record = await semel.records.get(receipt.key);
        const hasEnded =
          record?.status === 'unknown' && record.error?.message.startsWith(endedWords) === true;
        return hasEnded ? { ...held, record } : undefined;
      }

      try {
        const whose = caller.caller === undefined ? {} : { caller: caller.caller };
        return await semel.within(whose, () => semel.within(identityOf(call, caller), answered));
      } catch (error) {
        if (isUnfinished(error)) return error.reply;
        if (isSemelError(error)) return spoken({ ok: false, error: errorForModel(error) });
        throw error;
      }
    },
  };
}

/** A client that wants a task cannot read another result. */
function questionTo({ id, params }: ToolCall, question: Question): Reply {
  if (params.task === undefined) return { jsonrpc: '2.0', id, result: question };
  const { content, _meta } = question;
  return { jsonrpc: '2.0', id, error: { code: -32600, message: content[0].text, data: _meta } };
}

function notSent(error: unknown): never {
  throw new NotLanded(`It was not sent: ${describeThrown(error)}`);
}
