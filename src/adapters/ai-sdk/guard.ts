// Guards a tool set of the AI SDK, where a tool's name is its key. `execute` goes through the ledger, `toModelOutput` adds the
// note for the model, and all other fields stay.

import { SemelError } from '../../core/errors.ts';
import {
  type Answer,
  createGuard,
  createPolicyLookup,
  type Guard,
  guardSemelTool,
  guessIdentity,
  isSemelTool,
  type Policy,
} from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { refuseErrorResult } from './error-result.ts';
import { createModelNotes, type ModelNotes, toModelOutput } from './model-output.ts';
import { lastPart, wrapExecute } from './streamed.ts';
import type {
  AiTool,
  AnyFunction,
  AnyTool,
  ExecuteOptions,
  Guarded,
  KnownNames,
  Policies,
} from './tool-set.ts';

export function guard<
  const Tools extends Readonly<Record<string, AnyTool>>,
  const Given extends Policies<Tools>,
>(
  semel: Semel,
  tools: Tools,
  ...[policies]: Policies<Tools> extends Record<string, never>
    ? [policies?: Given]
    : [policies: Given & KnownNames<Tools, Given>]
): Guarded<Tools, Given> {
  const policyOf = createPolicyLookup(tools, policies ?? {});
  const notes = createModelNotes();
  const guarded = Object.entries(tools).map(([name, tool]) => [
    name,
    isSemelTool(tool)
      ? wrapTool(name, ownTool(tool), guardSemelTool(semel, tool), itself, notes)
      : guardedTool(semel, name, tool as AiTool, policyOf(name), notes),
  ]);
  return Object.fromEntries(guarded) as Guarded<Tools, Given>;
}

function guardedTool(
  semel: Semel,
  name: string,
  tool: AiTool,
  policy: Policy | undefined,
  notes: ModelNotes,
): AiTool {
  const { execute, inputSchema, description } = tool;
  // The client or the provider runs it.
  if (execute === undefined) return tool;
  const guarding = createGuard(semel, name, policy, { schema: inputSchema, description });
  return guarding === undefined ? tool : wrapTool(name, tool, guarding, execute.bind(tool), notes);
}

function wrapTool(
  name: string,
  tool: AiTool,
  guarding: Guard,
  execute: AnyFunction,
  notes: ModelNotes,
): AiTool {
  const call = async (
    input: unknown,
    options: ExecuteOptions,
    run: (args: unknown) => unknown,
  ): Promise<unknown> => {
    const { toolCallId, abortSignal: signal, messages } = options;
    const identity = () =>
      guessIdentity(withoutSystem(messages), { isUser, callsIn, first: firstCall(messages, toolCallId) });
    const checked = async (args: unknown) => refuseErrorResult(name, await run(args));
    const answer: Answer = await guarding.call({ args: input, toolCallId, signal, identity }, checked);
    if (!answer.ok) return answer.error;
    const { value: output, note } = answer;
    if (toolCallId !== undefined) notes.set({ toolCallId, input, output }, note);
    return output;
  };
  const guarded = {
    ...tool,
    execute: wrapExecute(execute, call),
    toModelOutput: (asked: never) => toModelOutput(tool.toModelOutput?.bind(tool), notes, asked),
  };
  return guarding.makeTestable(guarded, async (args) =>
    refuseErrorResult(name, await lastPart(await execute(args, { messages: [] }))),
  );
}

function ownTool(tool: { readonly input: unknown; readonly description: unknown }): AiTool {
  const { description, input } = tool;
  if (input === undefined)
    throw new SemelError('CONTRACT_INVALID', 'A tool without `input` has no schema for a model.', {
      path: 'input',
      next: 'Give the tool an `input`, a zod object for example.',
    });
  return { description, inputSchema: input };
}

/** Its guard runs it. */
const itself: AnyFunction = () => undefined;

function isUser(message: unknown): boolean {
  return roleOf(message) === 'user';
}

function roleOf(message: unknown): unknown {
  return (message as { role?: unknown } | null)?.role;
}

/** Instructions are the program's words, and may change with each step: the time, or what is left to do. */
function withoutSystem(messages: unknown): unknown {
  return Array.isArray(messages) ? messages.filter((message) => roleOf(message) !== 'system') : messages;
}

function callsIn(message: unknown): readonly unknown[] {
  const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown };
  if (role !== 'assistant' || !Array.isArray(content)) return [];
  return content.filter(({ type }) => type === 'tool-call').map(({ toolCallId }) => toolCallId);
}

const firstCalls = new WeakMap<object, unknown>();

/** The calls of one step start together and get the same list object. A program may reuse a list for later runs. */
function firstCall(messages: unknown, toolCallId: unknown): unknown {
  if (typeof messages !== 'object' || messages === null) return toolCallId;
  if (!firstCalls.has(messages)) {
    firstCalls.set(messages, toolCallId);
    setImmediate(() => firstCalls.delete(messages));
  }
  return firstCalls.get(messages);
}
