// Guards tools of the OpenAI Agents SDK: what `tool({…})` takes, what it made, what `semel.tool` made, or several.

import { createPolicyLookup, isSemelTool, type Policy } from '../../guard/index.ts';
import type { Semel, ToolFunction } from '../../semel/index.ts';
import type {
  AnyTool,
  FunctionTool,
  Guarded,
  GuardedOptions,
  GuardedTool,
  InputOf,
  OwnTool,
  Parsed,
  Policies,
  ToolOptions,
  TypedOptions,
} from './function-tool.ts';
import { guardedOptions, guardedTool, ownTool } from './guarded.ts';

/** What `tool({…})` made. Its `errorFunction` stands between the guard and an error: see docs/guides/openai-agents.md. */
export function guard<Tool extends FunctionTool>(
  semel: Semel,
  tool: Tool,
  policy: Policy<InputOf<Tool>>,
): GuardedTool<Tool>;
/** What `semel.tool` made. */
export function guard<Value>(semel: Semel, tool: ToolFunction<never, Value>): OwnTool<Value>;
/** Several, by name: what an agent takes as its `tools`. */
export function guard<const Tools extends Readonly<Record<string, AnyTool>>>(
  semel: Semel,
  tools: Tools,
  policies: Policies<Tools>,
): Guarded<Tools[keyof Tools]>[];
/** What `tool({…})` takes: `tool(guard(semel, {…}, policy))`. */
export function guard<Parameters, const Options>(
  semel: Semel,
  options: Options & TypedOptions<Parameters>,
  policy: Policy<Parsed<Parameters>>,
): GuardedOptions<Parameters, Options>;
export function guard(semel: Semel, tool: object, policy?: unknown): unknown {
  if (isTool(tool)) return guarded(semel, tool, policy as Policy);
  if (isOptions(tool)) return guardedOptions(semel, tool, policy as Policy);
  const policyOf = createPolicyLookup(tool, policy ?? {});
  return Object.entries(tool).map(([name, each]) => guarded(semel, each, policyOf(name)));
}

function guarded(semel: Semel, tool: AnyTool, policy: Policy | undefined): AnyTool {
  if (isSemelTool(tool)) return ownTool(semel, tool);
  // Without `invoke` the provider of the model runs it.
  return isFunctionTool(tool) ? guardedTool(semel, tool, policy) : tool;
}

function isTool(tool: object): tool is AnyTool {
  return isSemelTool(tool) || ('type' in tool && typeof tool.type === 'string');
}

function isFunctionTool(tool: object): tool is FunctionTool {
  return 'invoke' in tool && typeof tool.invoke === 'function';
}

function isOptions(tool: object): tool is ToolOptions {
  return 'execute' in tool && typeof tool.execute === 'function';
}
