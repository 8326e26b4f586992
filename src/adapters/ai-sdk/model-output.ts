// What the model sees of a result: the tool's own words for it, and a note where nothing was done again; an error as data,
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

export interface ModelNotes {
  /** Undefined: it was executed as it was asked for. */
  set(shown: Shown, note: string | undefined): void;
  get(shown: Shown): string | undefined;
}

/** A note is asked for again with every request that is made of the same messages. */
const most = 1_000;

/** Not by the id of the call alone: some models count them anew in each chat, and a note would be told of another call. */
export function createModelNotes(): ModelNotes {
  const notes = new Map<string, string>();
  return {
    set(shown, note) {
      if (note === undefined) {
        if (notes.size > 0) notes.delete(nameOf(shown));
        return;
      }
      notes.set(nameOf(shown), note);
      if (notes.size > most) notes.delete(notes.keys().next().value as string);
    },
    get: (shown) => (notes.size === 0 ? undefined : notes.get(nameOf(shown))),
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
  notes: ModelNotes,
  asked: Shown,
): Promise<ModelOutput> {
  const { output } = asked;
  if (isToolError(output)) return { type: 'error-json', value: jsonOf(output) };
  const told = own === undefined ? usual(output) : ((await own(asked)) as ModelOutput);
  const note = notes.get(asked);
  return note === undefined ? told : withNote(told, note);
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

function withNote(told: ModelOutput, note: string): ModelOutput {
  const said = { type: 'text', text: note };
  switch (told.type) {
    case 'text':
      return { type: 'text', value: `${told.value}\n\n${note}` };
    case 'json':
      return { type: 'content', value: [{ type: 'text', text: textOf(told.value) }, said] };
    case 'content':
      return { type: 'content', value: [...told.value, said] };
    default:
      return told;
  }
}
