// For your own loop over `client.messages.create`: takes a reply's calls and returns their results.

import { errorContent, toContent } from './content.ts';
import { type Any, type GuardedTool, type Outcome, outcome, type RunContext } from './runnable-tool.ts';

export interface ToolUse {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export interface ToolResult {
  type: 'tool_result';
  tool_use_id: string;
  content: string | Any[];
  is_error?: true;
}

export interface ToolResultsOptions {
  readonly signal?: AbortSignal;
  /** The messages so far. The turn is guessed from them unless `semel.within` names it. */
  readonly messages?: readonly unknown[];
}

/** Runs a reply's tool calls concurrently. Never throws. Empty if there are none. */
export function toolResults(
  tools: readonly object[],
  blocks: readonly (ToolUse | { readonly type: string })[],
  options: ToolResultsOptions = {},
): Promise<ToolResult[]> {
  const calls = blocks.filter((block): block is ToolUse => block.type === 'tool_use');
  const first = calls[0]?.id;
  return Promise.all(
    calls.map(async (call) => {
      const context: RunContext = { ...options, toolUse: call, ...(first === undefined ? {} : { first }) };
      const { content, isError } = await outcomeFor(tools as readonly Tool[], call, context);
      const result: ToolResult = { type: 'tool_result', tool_use_id: call.id, content };
      return isError ? { ...result, is_error: true as const } : result;
    }),
  );
}

type Tool = Partial<GuardedTool>;

async function outcomeFor(tools: readonly Tool[], call: ToolUse, context: RunContext): Promise<Outcome> {
  const tool = tools.find(({ name, run }) => name === call.name && run !== undefined);
  if (tool?.run === undefined) return { content: `Error: Tool '${call.name}' not found`, isError: true };
  try {
    const args = tool.parse === undefined ? call.input : tool.parse(call.input);
    const ask = tool[outcome];
    return ask === undefined
      ? { content: toContent(await tool.run(args, context)), isError: false }
      : await ask(args, context);
  } catch (error) {
    return { content: errorContent(error), isError: true };
  }
}
