// One tool through the ledger: `execute` of what `tool({…})` takes, `invoke` of what it made. All other fields stay:
// approvals, guardrails, timeouts.

import { SemelError } from '../../core/errors.ts';
import { createGuard, guardSemelTool, type Policy, toJsonSchema } from '../../guard/index.ts';
import type { Semel, ToolFunction } from '../../semel/index.ts';
import { NotStarted, runFinished } from './finished.ts';
import type { AnyFunction, CallDetails, FunctionTool, OwnTool, ToolOptions } from './function-tool.ts';
import { outputOf } from './output.ts';

export function guardedOptions(semel: Semel, options: ToolOptions, policy: Policy | undefined): ToolOptions {
  const { execute, parameters: schema, description, outputSchema, name = execute.name } = options;
  const guarding = createGuard(semel, name, policy, { schema, description });
  if (guarding === undefined) return options;
  const call: AnyFunction = async (args: unknown, context: unknown, details?: CallDetails) => {
    const run = (given: unknown) => execute.call(options, given, context, details);
    return outputOf(await guarding.call({ args, ...known(details) }, run), outputSchema);
  };
  return { ...options, name, execute: call };
}

export function guardedTool(semel: Semel, tool: FunctionTool, policy: Policy | undefined): FunctionTool {
  const { name, parameters: schema, description, outputSchema, errorFunction } = tool;
  const isControlFlow = (error: unknown) => error instanceof NotStarted;
  const guarding = createGuard(semel, name, policy, { schema, description, isControlFlow });
  if (guarding === undefined) return tool;
  if ('on' in tool) throw agentTool(name);
  const invoke = async (context: unknown, input: string, details?: CallDetails): Promise<unknown> => {
    const args = parsed(input);
    // The SDK has its own words for what is no JSON.
    if (args === undefined) return tool.invoke(context, input, details);
    try {
      const run = (given: unknown) => {
        // In the words that a provider may have seen.
        const words = given === args ? input : JSON.stringify(given);
        return runFinished(tool, context, words, details, guarding.warn);
      };
      return outputOf(await guarding.call({ args, ...known(details) }, run), outputSchema);
    } catch (error) {
      if (error instanceof NotStarted) return error.said;
      if (typeof errorFunction === 'function') return errorFunction(context, error, details);
      throw error;
    }
  };
  return { ...tool, invoke };
}

export function ownTool<Value>(semel: Semel, tool: ToolFunction<never, Value>): OwnTool<Value> {
  const guarding = guardSemelTool(semel, tool);
  return {
    type: 'function',
    name: guarding.name,
    description: tool.description ?? '',
    parameters: toJsonSchema(tool),
    strict: false,
    needsApproval: async () => false,
    isEnabled: async () => true,
    async invoke(_context, input, details?: CallDetails) {
      const answer = await guarding.call({ args: parsed(input), ...known(details) }, itself);
      return outputOf(answer, undefined) as Value;
    },
  };
}

/** Its guard runs it. */
const itself = () => undefined;

function known(details: CallDetails | undefined) {
  return { toolCallId: details?.toolCall?.callId, signal: details?.signal };
}

/** Undefined: it is no JSON. */
function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

/** Its run may stop for an approval, and what it returned until then is no result. */
function agentTool(name: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `${name} is an agent: what it does, its own tools do.`, {
    path: name,
    next: "Guard the tools of that agent, and give it the policy 'read'.",
  });
}
