// One tool through the ledger: `execute` of what `tool({…})` takes, `invoke` of what it made. All other fields stay:
// approvals, guardrails, timeouts.

import { SemelError } from '../../core/errors.ts';
import { createGuard, guardSemelTool, type Policy, toJsonSchema } from '../../guard/index.ts';
import type { Semel, ToolFunction } from '../../semel/index.ts';
import { NotStarted, runMadeTool } from './finished.ts';
import type { AnyFunction, CallDetails, FunctionTool, OwnTool, ToolOptions } from './function-tool.ts';
import { toOutput } from './output.ts';

export function guardedOptions(semel: Semel, options: ToolOptions, policy: Policy | undefined): ToolOptions {
  const { execute, parameters: schema, description, outputSchema, name = execute.name } = options;
  const guarding = createGuard(semel, name, policy, { schema, description });
  if (guarding === undefined) return options;
  const call: AnyFunction = async (args: unknown, context: unknown, details?: CallDetails) => {
    const run = (given: unknown) => execute.call(options, given, context, details);
    return toOutput(await guarding.call({ args, ...callFacts(details) }, run), outputSchema);
  };
  return guarding.makeTestable({ ...options, name, execute: call }, (args) => execute.call(options, args));
}

export function guardedTool(semel: Semel, tool: FunctionTool, policy: Policy | undefined): FunctionTool {
  const { name, parameters: schema, description, outputSchema, errorFunction } = tool;
  const isControlFlow = (error: unknown) => error instanceof NotStarted;
  const guarding = createGuard(semel, name, policy, { schema, description, isControlFlow });
  if (guarding === undefined) return tool;
  if ('on' in tool) throw agentToolError(name);
  const invoke = async (context: unknown, input: string, details?: CallDetails): Promise<unknown> => {
    const args = parseJson(input);
    // The SDK reports invalid JSON itself.
    if (args === undefined) return tool.invoke(context, input, details);
    try {
      const run = (given: unknown) => {
        // The args that a provider may have seen.
        const words = given === args ? input : JSON.stringify(given);
        return runMadeTool(tool, context, words, details, guarding.warn);
      };
      return toOutput(await guarding.call({ args, ...callFacts(details) }, run), outputSchema);
    } catch (error) {
      if (error instanceof NotStarted) return error.said;
      if (typeof errorFunction === 'function') return errorFunction(context, error, details);
      throw error;
    }
  };
  const runAlone = (args: unknown) =>
    runMadeTool(tool, undefined, JSON.stringify(args), undefined, guarding.warn);
  return guarding.makeTestable({ ...tool, invoke }, runAlone);
}

export function ownTool<Value>(semel: Semel, tool: ToolFunction<never, Value>): OwnTool<Value> {
  const guarding = guardSemelTool(semel, tool);
  const own: OwnTool<Value> = {
    type: 'function',
    name: guarding.name,
    description: tool.description ?? '',
    parameters: toJsonSchema(tool),
    strict: false,
    needsApproval: async () => false,
    isEnabled: async () => true,
    async invoke(_context, input, details?: CallDetails) {
      const answer = await guarding.call({ args: parseJson(input), ...callFacts(details) }, itself);
      return toOutput(answer, undefined) as Value;
    },
  };
  return guarding.makeTestable(own, itself);
}

/** Its guard runs it. */
const itself = () => undefined;

function callFacts(details: CallDetails | undefined) {
  return { toolCallId: details?.toolCall?.callId, signal: details?.signal };
}

/** Undefined if it is not JSON. */
function parseJson(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

/** Its run may stop for an approval, and a partial result must not be stored. */
function agentToolError(name: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `${name} is an agent, whose effects come from its own tools.`, {
    path: name,
    next: "Guard the tools of that agent, and give it the policy 'read'.",
  });
}
