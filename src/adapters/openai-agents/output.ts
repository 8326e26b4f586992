// What a call gives back. The SDK has one output for both: the run item keeps it for the code, and the model reads it as
// text, or as a list of parts. So a value of plain fields carries its text for the model where the code does not see it.

import type { ErrorValue } from '../../core/errors.ts';
import type { Answer } from '../../guard/index.ts';

/** With an output schema there is room for nothing but the value: no note, and an error is thrown. */
export function outputOf(answer: Answer, outputSchema: unknown): unknown {
  if (!answer.ok) {
    if (outputSchema !== undefined) throw asError(answer.error);
    return answer.error;
  }
  const { value, note } = answer;
  return note === undefined || outputSchema !== undefined ? value : withNote(value, note);
}

function withNote(value: unknown, note: string): unknown {
  // Chat Completions joins the parts without a space.
  const said = { type: 'text', text: `\n\n${note}` };
  if (value === undefined) return note;
  if (typeof value === 'string') return `${value}\n\n${note}`;
  if (isPlain(value) && !('type' in value) && !('text' in value)) {
    const text = `${jsonOf(value)}\n\n${note}`;
    return Object.defineProperties({ ...value }, { type: { value: 'text' }, text: { value: text } });
  }
  const parts = Array.isArray(value) ? value : [value];
  if (parts.length > 0 && parts.every(isPart)) return [...parts, said];
  return [{ type: 'text', text: jsonOf(value) }, said];
}

/** A bigint is the one kind of value that JSON refuses. */
function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Text, an image or a file, in the SDK's own form. */
function isPart(value: unknown): boolean {
  const type = (value as { type?: unknown } | null)?.type;
  return type === 'text' || type === 'image' || type === 'file';
}

function asError(error: ErrorValue): Error {
  return Object.assign(new Error(error.message), error);
}
