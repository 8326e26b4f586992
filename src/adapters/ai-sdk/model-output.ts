// What the model sees of a result: the tool's own output, and a note if nothing was done again. Errors are data, so that no
// framework turns them into "please try again".

import { digest } from '../../core/key/key.ts';
import { isToolError } from '../../guard/index.ts';
import type { AnyFunction, ModelOutput } from './tool-set.ts';

/** What the SDK passes to `toModelOutput`. */
export interface ToolResult {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

export interface ModelNotes {
  /** Undefined if the call was executed as requested. */
  set(result: ToolResult, note: string | undefined): void;
  get(result: ToolResult): string | undefined;
}

/** Notes are read again with every request that includes the same messages. */
const maxNotes = 1_000;

/** Keyed by input and output too: some models restart their call ids in each chat, and a note would reach another call. */
export function createModelNotes(): ModelNotes {
  const notes = new Map<string, string>();
  return {
    set(result, note) {
      if (note === undefined) {
        if (notes.size > 0) notes.delete(noteKey(result));
        return;
      }
      notes.set(noteKey(result), note);
      if (notes.size > maxNotes) notes.delete(notes.keys().next().value as string);
    },
    get: (result) => (notes.size === 0 ? undefined : notes.get(noteKey(result))),
  };
}

function noteKey({ toolCallId, input, output }: ToolResult): string {
  try {
    return digest(toolCallId, toText(input), toText(output));
  } catch {
    // A replay never returns a value that JSON cannot write.
    return toolCallId;
  }
}

export async function toModelOutput(
  own: AnyFunction | undefined,
  notes: ModelNotes,
  result: ToolResult,
): Promise<ModelOutput> {
  const { output } = result;
  if (isToolError(output)) return { type: 'error-json', value: toJson(output) };
  const shown = own === undefined ? defaultOutput(output) : ((await own(result)) as ModelOutput);
  const note = notes.get(result);
  return note === undefined ? shown : withNote(shown, note);
}

/** As the AI SDK does without `toModelOutput`. */
function defaultOutput(output: unknown): ModelOutput {
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: toJson(output) };
}

function toJson(value: unknown): unknown {
  return JSON.parse(toText(value));
}

/** A bigint is the one kind of value that JSON refuses. */
function toText(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each)) ?? 'null';
}

function withNote(shown: ModelOutput, note: string): ModelOutput {
  const block = { type: 'text', text: note };
  switch (shown.type) {
    case 'text':
      return { type: 'text', value: `${shown.value}\n\n${note}` };
    case 'json':
      return { type: 'content', value: [{ type: 'text', text: toText(shown.value) }, block] };
    case 'content':
      return { type: 'content', value: [...shown.value, block] };
    default:
      return shown;
  }
}
