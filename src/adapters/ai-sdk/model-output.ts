// What the model sees of a result: the tool's own words for it, and a line where nothing was done again; an error as data,
// so that no framework makes "please try again" of it.

import { digest } from '../../core/key/key.ts';
import { isToolError } from '../../guard/index.ts';
import type { AnyFunction, ModelOutput } from './tool-set.ts';

/** A result as the SDK asks for the model's words of it. */
export interface Shown {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

export interface ModelLines {
  /** Undefined: it was executed as it was asked for. */
  set(shown: Shown, line: string | undefined): void;
  get(shown: Shown): string | undefined;
}

/** A line is asked for again with every request that is made of the same messages. */
const most = 1_000;

/** Not by the id of the call alone: some models count them anew in each chat, and a line would be told of another call. */
export function modelLines(): ModelLines {
  const lines = new Map<string, string>();
  return {
    set(shown, line) {
      if (line === undefined) {
        if (lines.size > 0) lines.delete(nameOf(shown));
        return;
      }
      lines.set(nameOf(shown), line);
      if (lines.size > most) lines.delete(lines.keys().next().value as string);
    },
    get: (shown) => (lines.size === 0 ? undefined : lines.get(nameOf(shown))),
  };
}

function nameOf({ toolCallId, input, output }: Shown): string {
  try {
    return digest(toolCallId, textOf(input), textOf(output));
  } catch {
    // What JSON cannot write at all is no value that a replay gives.
    return toolCallId;
  }
}

export async function toModelOutput(
  own: AnyFunction | undefined,
  lines: ModelLines,
  asked: Shown,
): Promise<ModelOutput> {
  const { output } = asked;
  if (isToolError(output)) return { type: 'error-json', value: jsonOf(output) };
  const told = own === undefined ? usual(output) : ((await own(asked)) as ModelOutput);
  const line = lines.get(asked);
  return line === undefined ? told : withLine(told, line);
}

/** As the AI SDK does without `toModelOutput`. */
function usual(output: unknown): ModelOutput {
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: jsonOf(output) };
}

function jsonOf(value: unknown): unknown {
  return JSON.parse(textOf(value));
}

/** A bigint is the one kind of value that JSON refuses. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each)) ?? 'null';
}

function withLine(told: ModelOutput, line: string): ModelOutput {
  const said = { type: 'text', text: line };
  switch (told.type) {
    case 'text':
      return { type: 'text', value: `${told.value}\n\n${line}` };
    case 'json':
      return { type: 'content', value: [{ type: 'text', text: textOf(told.value) }, said] };
    case 'content':
      return { type: 'content', value: [...told.value, said] };
    default:
      return told;
  }
}
