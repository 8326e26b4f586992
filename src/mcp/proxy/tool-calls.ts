// One tools/call through the ledger. The server runs it at most once for its intent; what it answered is kept, and told
// again to whoever asks for the same.

import { wordsOf } from '../../core/contract/classify.ts';
import { isSemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { MaybeLanded, NotLanded, Rejected } from '../../core/signals.ts';
import { type Answer, type Asked, type Execute, type Guard, guardOf, toldError } from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { nearArguments } from '../policy/near-arguments.ts';
import {
  contractName,
  type ErrorMeaning,
  type KeyPlace,
  type PolicyFile,
  policyFor,
} from '../policy/policies.ts';
import { strangersIn } from '../policy/unknown-names.ts';
import { isAnswer, type ListedTool, type Reply, refusal, type ToolCall } from '../protocol/messages.ts';
import { writable } from '../protocol/numbers.ts';
import { askedBy, type Caller, identityOf, withoutRound } from './asked.ts';
import { type Changes, createChanges, type EndOfChange } from './changes.ts';
import { endedWords, isUnfinished, resultOf } from './outcome.ts';
import { createQuestions, type Held, type Questions, releaseFor } from './questions.ts';
import { told } from './replies.ts';
import type { SentKey } from './sent-key.ts';

export interface ToolCallsOptions {
  readonly semel: Semel;
  /** Which server this is: tools of two servers may have one name. */
  readonly server: string;
  readonly policies: PolicyFile;
  /** Is told, once each, what the policy file names and the server does not have. */
  readonly onStranger?: (sentence: string) => void;
  /** How soon after a question a call can be its answer. @default 0 */
  readonly thinkMs?: number;
}

export interface ToolCalls {
  /**
   * Undefined: it changes nothing, and is passed on as it is. `listed` is asked only where the policy file does not name
   * the tool; one that is not listed is treated with care.
   */
  guardFor(
    name: string,
    listed: () => Promise<ListedTool | undefined>,
  ): Promise<ToolGuard | PassedTool | undefined>;
  /** This reply has reached its caller, as far as the proxy can know. */
  delivered(reply: Reply): void;
  /** The server has listed all its tools. */
  check(tools: readonly ListedTool[]): void;
}

export interface ToolGuard {
  /** `forward` hands the call to the server and brings its answer; it is called at most once. */
  answer(call: ToolCall, caller: Caller, forward: Forward): Promise<Reply>;
}

/** May be repeated, so it is passed on as it is; but it changes something, and that is noted before and after. */
export interface PassedTool {
  pass(caller: Caller): Promise<EndOfChange>;
}

/**
 * With the key, where the server takes one. Nobody waits for the answer any more when `signal` aborts. `firstArgs`: what may
 * have landed was asked for in these words, and is sent again in them.
 */
export type Forward = (key: SentKey | undefined, signal: AbortSignal, firstArgs?: unknown) => Promise<Reply>;

export function toolCalls({ semel, server, policies, onStranger, thinkMs }: ToolCallsOptions): ToolCalls {
  /** The one that was used last is the last. */
  const guards = new Map<string, ToolGuard & Pick<Guard, 'forget'>>();
  const told = new Set<string>();
  const changes = createChanges(semel, server);
  const questions = createQuestions(thinkMs);
  return {
    check(tools) {
      for (const sentence of strangersIn(policies, tools)) {
        // A server that lists other fields each time is told of for a while.
        if (told.has(sentence) || told.size >= limits.kept) continue;
        told.add(sentence);
        onStranger?.(sentence);
      }
    },
    delivered: questions.delivered,
    async guardFor(name, listed) {
      const isNamed = policies.tools !== undefined && Object.hasOwn(policies.tools, name);
      const tool = isNamed ? { name } : await listed();
      const { policy, errors, key } = policyFor(tool ?? { name }, policies);
      // A hint of the server can change while we run.
      const effect = typeof policy === 'string' ? policy : policy.effect;
      if (effect === 'read') return undefined;
      if (effect === 'write-idempotent')
        return {
          pass: ({ scope }) => changes.pass(scope, name),
        };
      const known = guards.get(name);
      if (known !== undefined) {
        guards.delete(name);
        guards.set(name, known);
        return known;
      }
      const guarding = guardOf(semel, contractName(server, name), policy, { passes: isUnfinished }) as Guard;
      const { answer } = toolGuard(semel, guarding, { errors, place: key, changes, questions });
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

export interface GuardTerms {
  readonly errors: ErrorMeaning;
  readonly place?: KeyPlace | undefined;
  readonly changes: Changes;
  readonly questions: Questions;
}

export function toolGuard(semel: Semel, guard: Guard, terms: GuardTerms): ToolGuard {
  const { errors, place, changes, questions } = terms;
  return {
    async answer(call, caller, forward) {
      const arrivedAt = questions.now();
      const { scope, session } = caller;
      const hearer = JSON.stringify([scope, session]);
      const asked = askedBy(call, caller);
      /** What the server said to this very call. */
      let said: Reply | undefined;

      async function answered(): Promise<Reply> {
        const key = await guard.keyOf(asked).catch(() => undefined);
        const execute: Execute = async (args, ctx) => {
          const end = await begun(key);
          let mayHaveChanged = true;
          try {
            // The ledger may have been slow: then its time, or its lease, is over.
            if (guard.crossesAtClaim) await ctx.dispatch().catch(notSent);
            const { key: sentKey, signal } = ctx;
            const firstArgs = args === asked.args ? undefined : withoutRound(args);
            const reply = await forward(place && { ...place, key: sentKey, firstArgs }, signal, firstArgs);
            if (!isAnswer(reply)) throw new MaybeLanded('The server answered with no result and no error.');
            said = reply;
            return resultOf(call, reply, errors);
          } catch (error) {
            mayHaveChanged = !isWithoutEffect(error);
            throw error;
          } finally {
            await end(mayHaveChanged);
            if (key !== undefined) questions.noteEnd(key);
          }
        };
        for (;;) {
          const answer = await guard.call(asked, execute);
          const held = said === undefined ? await heldBack(answer, asked) : undefined;
          if (held === undefined) return spoken(answer);
          if (!questions.takeAnswer(hearer, held, arrivedAt)) return questions.ask(call.id, hearer, held);
          await releaseFor(semel, held);
        }
      }

      function spoken(answer: Answer): Reply {
        const reply = told(call, answer, said, errors);
        return reply === said ? reply : (writable(reply) as Reply);
      }

      async function begun(key: string | undefined): Promise<EndOfChange> {
        if (key === undefined) return async () => undefined;
        return changes.begin(scope, { call: key, tool: call.params.name }).catch((error: unknown) => {
          // Where the ledger lies is for the operator, not for a model.
          guard.warn(`The call was not sent, because the ledger could not be written: ${error}`);
          throw new NotLanded('It was not sent, because the ledger could not be written.');
        });
      }

      /** What may not stand for this call without a question, though it is the same call by all that is known. */
      async function heldBack(answer: Answer, { key: ownKey }: Asked): Promise<Held | undefined> {
        const { receipt } = answer;
        if (receipt === undefined) return undefined;
        if (answer.ok || answer.error.code === 'RESULT_OMITTED') {
          // A key of the client's own is its word that this is the same call.
          if (!receipt.replayed || !receipt.weak || ownKey !== undefined) return undefined;
          if (questions.hasEndedSince(receipt.key, arrivedAt)) return undefined;
          const since = await changes.since(scope, receipt.key, receipt.settledAt);
          const record = since && (await semel.records.get(receipt.key));
          return record && { record, hasFailed: false, changedBy: since.tool };
        }
        if (answer.error.code !== 'IN_DOUBT' || errors !== 'ask') return undefined;
        const record = await semel.records.get(receipt.key);
        if (record?.status !== 'unknown' || record.error?.message.startsWith(endedWords) !== true)
          return undefined;
        // Without a sign that anything was corrected it is a blind retry, and stays in doubt.
        const since = await changes.since(scope, receipt.key, record.updatedAt);
        return since?.isDone === true ? { record, hasFailed: true, changedBy: since.tool } : undefined;
      }

      try {
        const whose = caller.caller === undefined ? {} : { caller: caller.caller };
        return await semel.within(whose, () => semel.within(identityOf(call, caller), answered));
      } catch (error) {
        if (isUnfinished(error)) return error.reply;
        if (isSemelError(error)) return spoken({ ok: false, error: toldError(error) });
        throw error;
      }
    },
  };
}

function notSent(error: unknown): never {
  throw new NotLanded(`It was not sent: ${wordsOf(error)}`);
}

/** Of what is known not to have landed. */
function isWithoutEffect(error: unknown): boolean {
  return error instanceof NotLanded || error instanceof Rejected || isUnfinished(error);
}
