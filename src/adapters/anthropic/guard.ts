// Guards tools of the Anthropic SDK: `run` goes through the ledger, all other fields stay. It works the same for the tool
// runner (even while the reply still streams), a session, or your own loop.

import {
  createGuard,
  createPolicyLookup,
  type Guard,
  guardSemelTool,
  guessIdentity,
  isSemelTool,
  type Policy,
  toJsonSchema,
} from '../../guard/index.ts';
import type { Semel, ToolFunction } from '../../semel/index.ts';
import { toOutcome } from './content.ts';
import {
  type AnyTool,
  type Guarded,
  type GuardedTool,
  type InputOf,
  type OwnTool,
  outcome,
  type Policies,
  type RunContext,
  type RunnableTool,
} from './runnable-tool.ts';

/** What `betaZodTool` or `betaTool` made. */
export function guard<Tool extends RunnableTool>(
  semel: Semel,
  tool: Tool,
  policy: Policy<InputOf<Tool>>,
): Tool;
/** What `semel.tool` made. */
export function guard<Input>(semel: Semel, tool: ToolFunction<Input, unknown>): OwnTool<Input>;
/** Several, by name: what a request takes as its `tools`. */
export function guard<const Tools extends Readonly<Record<string, AnyTool>>>(
  semel: Semel,
  tools: Tools,
  policies: Policies<Tools>,
): Guarded<Tools[keyof Tools]>[];
export function guard(semel: Semel, tool: object, policy?: unknown): unknown {
  if (isSemelTool(tool) || isRunnable(tool)) return guarded(semel, tool, policy as Policy);
  const policyOf = createPolicyLookup(tool, policy ?? {});
  return Object.entries(tool).map(([name, each]) => guarded(semel, each, policyOf(name)));
}

function guarded(semel: Semel, tool: AnyTool, policy: Policy | undefined): object {
  if (isSemelTool(tool)) return ownTool(semel, tool);
  // A definition alone: the provider of the model runs it, or nobody.
  if (!isRunnable(tool)) return tool;
  const { name, input_schema: schema, description } = tool;
  const guarding = createGuard(semel, name, policy, { schema, description });
  return guarding === undefined ? tool : throughLedger(tool, guarding);
}

function ownTool(semel: Semel, tool: ToolFunction<never, unknown>): GuardedTool {
  const guarding = guardSemelTool(semel, tool);
  const shape = {
    type: 'custom',
    name: guarding.name,
    description: tool.description ?? '',
    input_schema: toJsonSchema(tool),
    parse: (content: unknown) => content,
    // Its guard runs it.
    run: () => undefined,
  };
  return throughLedger(shape, guarding);
}

function throughLedger(tool: RunnableTool, guarding: Guard): GuardedTool {
  const callGuard: GuardedTool[typeof outcome] = async (args, context = {}) => {
    const { toolUse, signal, messages, first = toolUse?.id } = context;
    const answer = await guarding.call(
      {
        args,
        toolCallId: toolUse?.id,
        signal: signal ?? undefined,
        identity: () => guessIdentity(messages, { isUser, callsIn, first }),
      },
      (given) => tool.run(given, context),
    );
    return toOutcome(answer);
  };
  const run = async (args: unknown, context?: RunContext) => (await callGuard(args, context)).content;
  return guarding.makeTestable({ ...tool, run, [outcome]: callGuard }, (args) => tool.run(args, {}));
}

function isRunnable(tool: object): tool is RunnableTool {
  const { name, run } = tool as Partial<RunnableTool>;
  return typeof name === 'string' && typeof run === 'function';
}

/** Tool results have the same role, but are not the user's words. */
function isUser(message: unknown): boolean {
  const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown };
  const isAnswer = Array.isArray(content) && content.some((block) => block?.type === 'tool_result');
  return role === 'user' && !isAnswer;
}

function callsIn(message: unknown): readonly unknown[] {
  const { content } = (message ?? {}) as { content?: unknown };
  return Array.isArray(content) ? content.filter(({ type }) => type === 'tool_use').map(({ id }) => id) : [];
}
