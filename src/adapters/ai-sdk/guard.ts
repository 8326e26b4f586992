// Wraps a tool set of the AI SDK: the name of a tool is its key there. `execute` goes through the ledger; all other
// fields stay, and `toModelOutput` tells the model what the code need not know.

import { SemelError } from '../../core/errors.ts';
import {
  type Answer,
  type Guard,
  guardOf,
  guardOfTool,
  guessFrom,
  isSemelTool,
  type Policy,
  policyReader,
} from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { type ModelLines, modelLines, toModelOutput } from './model-output.ts';
import { streamed } from './streamed.ts';
import type { AiTool, AnyFunction, AnyTool, ExecuteOptions, Guarded, Policies } from './tool-set.ts';

export function guard<const Tools extends Readonly<Record<string, AnyTool>>>(
  semel: Semel,
  tools: Tools,
  ...[policies]: Policies<Tools> extends Record<string, never>
    ? [policies?: Policies<Tools>]
    : [policies: Policies<Tools>]
): Guarded<Tools> {
  const policyOf = policyReader(tools, policies ?? {});
  const lines = modelLines();
  const guarded = Object.entries(tools).map(([name, tool]) => [
    name,
    isSemelTool(tool)
      ? { ...ownTool(tool), ...wrapped({}, guardOfTool(semel, tool), itself, lines) }
      : guardedTool(semel, name, tool as AiTool, policyOf(name), lines),
  ]);
  return Object.fromEntries(guarded);
}

function guardedTool(
  semel: Semel,
  name: string,
  tool: AiTool,
  policy: Policy | undefined,
  lines: ModelLines,
): AiTool {
  const { execute, inputSchema, description } = tool;
  // The client or the provider runs it.
  if (execute === undefined) return tool;
  const guarding = guardOf(semel, name, policy, { schema: inputSchema, description });
  return guarding === undefined ? tool : { ...tool, ...wrapped(tool, guarding, execute.bind(tool), lines) };
}

function wrapped(tool: AiTool, guarding: Guard, execute: AnyFunction, lines: ModelLines): AiTool {
  const call = async (
    input: unknown,
    options: ExecuteOptions,
    run: (args: unknown) => unknown,
  ): Promise<unknown> => {
    const { toolCallId, abortSignal: signal, messages } = options;
    const identity = () => guessFrom(messages, { isUser, callsIn, first: firstOf(messages, toolCallId) });
    const answer: Answer = await guarding.call({ args: input, toolCallId, signal, identity }, run);
    if (!answer.ok) return answer.error;
    const { value: output, line } = answer;
    if (toolCallId !== undefined) lines.set({ toolCallId, input, output }, line);
    return output;
  };
  return {
    execute: streamed(execute, call),
    toModelOutput: (asked: never) => toModelOutput(tool.toModelOutput?.bind(tool), lines, asked),
  };
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
  return (message as { role?: unknown } | null)?.role === 'user';
}

function callsIn(message: unknown): readonly unknown[] {
  const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown };
  if (role !== 'assistant' || !Array.isArray(content)) return [];
  return content.filter(({ type }) => type === 'tool-call').map(({ toolCallId }) => toolCallId);
}

const firsts = new WeakMap<object, unknown>();

/** The calls of one step start together, and are shown the very same list. A program may keep a list for many runs. */
function firstOf(messages: unknown, toolCallId: unknown): unknown {
  if (typeof messages !== 'object' || messages === null) return toolCallId;
  if (!firsts.has(messages)) {
    firsts.set(messages, toolCallId);
    setImmediate(() => firsts.delete(messages));
  }
  return firsts.get(messages);
}
