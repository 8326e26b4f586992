// What the model sees of a result: the tool's own words for it, and a line where nothing was done again; an error as data,
// so that no framework makes "please try again" of it.

import { isToolError } from '../../guard/index.ts';
import type { AnyFunction, ModelOutput } from './tool-set.ts';

export interface ModelLines {
  set(toolCallId: string, line: string): void;
  get(toolCallId: string): string | undefined;
}

/** A line is asked for again with every request that is made of the same messages. */
const most = 1_000;

export function modelLines(): ModelLines {
  const lines = new Map<string, string>();
  return {
    set(toolCallId, line) {
      lines.set(toolCallId, line);
      if (lines.size > most) lines.delete(lines.keys().next().value as string);
    },
    get: (toolCallId) => lines.get(toolCallId),
  };
}

export async function toModelOutput(
  own: AnyFunction | undefined,
  lines: ModelLines,
  asked: { readonly toolCallId: string; readonly output: unknown },
): Promise<ModelOutput> {
  const { toolCallId, output } = asked;
  if (isToolError(output)) return { type: 'error-json', value: jsonOf(output) };
  const told = own === undefined ? usual(output) : ((await own(asked)) as ModelOutput);
  const line = lines.get(toolCallId);
  return line === undefined ? told : withLine(told, line);
}

/** As the AI SDK does without `toModelOutput`. */
function usual(output: unknown): ModelOutput {
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: jsonOf(output) };
}

function jsonOf(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value) ?? 'null');
}

function withLine(told: ModelOutput, line: string): ModelOutput {
  const said = { type: 'text', text: line };
  switch (told.type) {
    case 'text':
      return { type: 'text', value: `${told.value}\n\n${line}` };
    case 'json':
      return { type: 'content', value: [{ type: 'text', text: JSON.stringify(told.value) }, said] };
    case 'content':
      return { type: 'content', value: [...told.value, said] };
    default:
      return told;
  }
}
