// Runs a tool that `tool({…})` has made already. Such a tool catches what its `execute` throws and makes a text of it, so
// that text has to be told from a value, and args that the SDK refused from an effect.

import { MaybeLanded } from '../../core/signals.ts';
import type { FunctionTool } from './function-tool.ts';

/** The SDK did not call `execute`: the args did not fit. What it says of that is for the model. */
export class NotStarted extends Error {
  readonly said: unknown;
  constructor(said: unknown) {
    super('The tool was not started.');
    this.said = said;
  }
}

/** What the SDK says, by itself, for every error. */
const hidden = 'An error occurred while running the tool. Please try again.';

/** What it says, by itself, when the time of a tool is over. */
function timedOut({ name, timeoutMs }: FunctionTool): string {
  return `Tool '${name}' timed out after ${timeoutMs}ms.`;
}

export async function runFinished(
  tool: FunctionTool,
  context: unknown,
  input: string,
  details: object | undefined,
  warn: (message: string) => void,
): Promise<unknown> {
  const isStarted = startOf(details);
  const value = await tool.invoke(context, input, details);
  if (!isStarted()) throw new NotStarted(value);
  if (value === hidden) {
    warn(
      `${tool.name} threw, and the SDK hid what, so that it counts as in doubt. Give it \`errorFunction: null\`, or guard ` +
        'what `tool` takes (docs/openai-agents.md).',
    );
    throw new MaybeLanded(`${tool.name} threw, and what is hidden.`);
  }
  // Outside of the SDK's own runner the tool keeps its time itself, and so inside of the guard.
  if (tool.timeoutMs !== undefined && value === timedOut(tool)) throw new MaybeLanded(value);
  return value;
}

/** The SDK's own runner asks to be told of the args just before `execute` is called. Others: nobody knows. */
function startOf(details: object | undefined): () => boolean {
  const told = details as Record<symbol, ((input: unknown) => void) | undefined> | undefined;
  const symbol = Object.getOwnPropertySymbols(details ?? {}).find(
    ({ description }) => description === 'openai.agents.functionToolParsedInputCallback',
  );
  if (told === undefined || symbol === undefined) return () => true;
  const tell = told[symbol];
  let isStarted = false;
  told[symbol] = (input) => {
    isStarted = true;
    tell?.(input);
  };
  return () => isStarted;
}
