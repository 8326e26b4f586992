// A tool that `semel.tool` made, as a tool of LangChain. LangChain's own `tool` makes it, so that nothing is imported.

import { SemelError } from '../../core/errors.ts';
import { guardSemelTool } from '../../guard/index.ts';
import type { Semel, ToolFunction } from '../../semel/index.ts';
import { wrapTool } from './guard.ts';
import { type AnyFunction, checkTool } from './tool-shape.ts';

export function toolFrom<Factory extends AnyFunction>(
  semel: Semel,
  made: ToolFunction<never, unknown>,
  tool: Factory,
): ReturnType<Factory> {
  const { contract, description, input: schema } = made;
  if (schema === undefined || !('_zod' in schema || '_def' in schema))
    throw new SemelError('CONTRACT_INVALID', `${contract.name} has no schema that LangChain can read.`, {
      path: 'input',
      next: 'Give the tool a zod object as its `input`.',
    });
  if (typeof tool !== 'function')
    throw new SemelError('CONTRACT_INVALID', 'toolFrom needs `tool` of LangChain as its third argument.', {
      path: 'tool',
      next: "Write toolFrom(semel, made, tool), with `tool` imported from 'langchain'.",
    });
  // Models take no dots in the name of a tool.
  const name = contract.name.replaceAll(/[^\w-]/g, '_');
  const bare = checkTool(tool(() => undefined, { name, description, schema }));
  // Its own `input` reads the args, and must see them as the model wrote them.
  const guarded = wrapTool(bare, guardSemelTool(semel, made), (args, { toolCall }) => toolCall?.args ?? args);
  return guarded as unknown as ReturnType<Factory>;
}
